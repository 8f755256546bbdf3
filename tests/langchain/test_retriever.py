"""What comes back from one call."""

import copy
import json
import pickle
import warnings

import pytest
from langchain_core._api.beta_decorator import LangChainBetaWarning
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough

from langchain_posrag import CAUSRetriever, PlacementTransformer

QUERY = "the relu layer"


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_a_document_is_an_ordinary_document(retriever: CAUSRetriever) -> None:
    found = retriever.invoke(QUERY)[0]
    ordinary = Document(found.page_content, id=found.id, metadata=found.metadata)

    assert found == ordinary
    assert found.model_fields_set == ordinary.model_fields_set
    assert found.model_dump() == ordinary.model_dump()
    assert Document.model_validate_json(found.model_dump_json()) == ordinary
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == ordinary
    assert repr(found) == repr(ordinary)


def test_metadata_is_json(retriever: CAUSRetriever) -> None:
    for document in retriever.invoke(QUERY):
        assert json.loads(json.dumps(document.metadata)) == document.metadata
        assert type(document.metadata["score"]) is float


def test_scores_can_be_left_out(documents: list[Document], embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_documents(documents, embeddings, include_scores=False)

    for found in retriever.invoke(QUERY):
        assert found == next(document for document in documents if document.id == found.id)


@pytest.mark.parametrize("k", [1, 3, 14, 100])
def test_k_of_a_call(retriever: CAUSRetriever, k: int) -> None:
    assert len(retriever.invoke(QUERY, k=k)) == min(k, 14)


def test_alpha_of_a_call_decides_between_the_legs(retriever: CAUSRetriever) -> None:
    dense = retriever.invoke(QUERY, alpha=1.0, k=1)[0].metadata["posrag"]
    sparse = retriever.invoke(QUERY, alpha=0.0, k=1)[0].metadata["posrag"]

    assert (dense["dense_rank"], sparse["sparse_rank"]) == (0, 0)
    assert (dense["alpha"], sparse["alpha"]) == (1.0, 0.0)
    assert 0 <= retriever.invoke(QUERY, alpha="auto")[0].metadata["posrag"]["alpha"] <= 1


@pytest.mark.parametrize(
    "where", [{"lang": "en"}, {"lang": ["en"]}, lambda metadata: metadata["lang"] == "en"]
)
def test_a_filter_holds_in_both_legs(retriever: CAUSRetriever, where: object) -> None:
    found = retriever.invoke(QUERY, filter=where, k=14, alpha=0.5)

    assert {document.metadata["lang"] for document in found} == {"en"}
    assert len(found) == 7


def test_configurable_fields_share_the_index(
    retriever: CAUSRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = []
    search = type(retriever.index).search

    def recording(index: object, *args: object, **kwargs: object) -> object:
        searched.append(index)
        return search(index, *args, **kwargs)

    monkeypatch.setattr(type(retriever.index), "search", recording)
    configurable = retriever.configurable_fields(
        k=ConfigurableField(id="k"), psi=ConfigurableField(id="psi")
    )

    found = configurable.invoke(QUERY, config={"configurable": {"k": 3, "psi": "never"}})

    assert [document.metadata["posrag"]["gate"] for document in found] == ["shut"] * 3
    assert len(configurable.invoke(QUERY)) == 5
    assert all(index is retriever.index for index in searched)


def test_in_a_chain(retriever: CAUSRetriever) -> None:
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    answer = RunnableLambda(lambda value: value.to_string())
    context = (
        retriever
        | PlacementTransformer("u_shape")
        | (lambda docs: " ".join(document.id for document in docs))
    )
    inputs = {"context": context, "question": RunnablePassthrough()}
    chain = inputs | prompt | answer | StrOutputParser()

    assert " ".join(ids(retriever.invoke(QUERY))) in chain.invoke(QUERY)
    assert chain.batch([QUERY, "pool"]) == [chain.invoke(QUERY), chain.invoke("pool")]


def test_from_texts(embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_texts(
        ["conv", "relu"], embeddings, metadatas=[{"n": 1}, {"n": 2}], ids=["a", "b"], k=1
    )

    found = retriever.invoke("relu")[0]

    assert (found.id, found.page_content, found.metadata["n"]) == ("b", "relu", 2)


def test_tracing_parameters_name_the_parts(retriever: CAUSRetriever) -> None:
    assert retriever._get_ls_params() == {
        "ls_retriever_name": "caus",
        "ls_embedding_provider": "DeterministicFakeEmbedding",
    }


def test_the_beta_warning_of_langchain_does_not_reach_users(
    documents: list[Document], embeddings: Embeddings
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", LangChainBetaWarning)
        retriever = CAUSRetriever.from_documents(documents, embeddings)
        assert len(retriever.invoke(QUERY)) == 10

"""What is LangChain's own: documents, the options of a call, chains and configurable fields."""

import copy
import json
import pickle
import warnings
from typing import Any

import pytest
from langchain_core._api.beta_decorator import LangChainBetaWarning
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough

from langchain_posrag import CAUSRetriever, PlacementTransformer

from .conftest import WORDS

QUERY = "the relu layer"


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_a_document_is_an_ordinary_document(retriever: CAUSRetriever) -> None:
    """It is equal to one, copied and dumped alike, and its metadata is JSON."""
    for found in retriever.invoke(QUERY):
        ordinary = Document(found.page_content, id=found.id, metadata=found.metadata)
        assert found == ordinary
        assert found.model_dump() == ordinary.model_dump()
        assert Document.model_validate_json(found.model_dump_json()) == ordinary
        assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == ordinary
        assert json.loads(json.dumps(found.metadata)) == found.metadata
        assert type(found.metadata["score"]) is float


def test_scores_can_be_left_out(documents: list[Document], embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_documents(documents, embeddings, include_scores=False)
    assert all(found in documents for found in retriever.invoke(QUERY))


def test_a_document_without_an_id_gets_one_it_is_found_by(retriever: CAUSRetriever) -> None:
    document = Document("swish")
    (id_,) = retriever.add_documents([document])
    assert document.id is None
    assert retriever.get([id_])[0].page_content == "swish"
    assert id_ in ids(retriever.invoke(QUERY, k=100))


@pytest.mark.parametrize(
    "options",
    [
        {"k": 3, "alpha": 1.0},
        {"fetch_k": 2, "alpha": "auto"},
        {"filter": lambda metadata: metadata["page"] > 9, "k": 100},
    ],
)
async def test_options_of_a_call_hold_for_that_call(
    retriever: CAUSRetriever, options: dict[str, Any]
) -> None:
    """However it is called; and a function of the metadata may be the filter."""
    where = options.get("filter")
    own = {name: value for name, value in options.items() if name != "filter"}
    made = retriever.model_copy(update={**own, "k": own.get("k", 5)})
    expected = made.invoke(QUERY, filter=where)
    assert len(expected) == (4 if where else made.k)
    assert retriever.invoke(QUERY, **options) == expected
    assert await retriever.ainvoke(QUERY, **options) == expected
    assert retriever.batch([QUERY] * 2, **options) == [expected] * 2
    assert await retriever.abatch([QUERY] * 2, **options) == [expected] * 2
    assert len(retriever.invoke(QUERY)) == 5


def test_a_filter_that_is_none_is_named(retriever: CAUSRetriever) -> None:
    with pytest.raises(ValueError, match="lang"):
        retriever.invoke(QUERY, filter="lang")


def test_configurable_fields_share_the_index(retriever: CAUSRetriever) -> None:
    configurable = retriever.configurable_fields(
        k=ConfigurableField(id="k"), psi=ConfigurableField(id="psi")
    )
    config: Any = {"configurable": {"k": 20, "psi": "never"}}
    retriever.add_documents([Document("the gelu layer", id="new")])
    found = configurable.invoke(QUERY, config=config)
    assert {document.metadata["posrag"]["gate"] for document in found} == {"shut"}
    assert "new" in ids(found)
    assert len(configurable.invoke(QUERY)) == 5
    assert retriever.model_copy(update={"k": 3}).index is retriever.index


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


def test_tracing_parameters_name_the_parts(retriever: CAUSRetriever) -> None:
    assert retriever._get_ls_params() == {
        "ls_retriever_name": "caus",
        "ls_embedding_provider": "DeterministicFakeEmbedding",
    }


def test_the_beta_warning_of_langchain_does_not_reach_users(embeddings: Embeddings) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", LangChainBetaWarning)
        retriever = CAUSRetriever.from_texts(WORDS, embeddings)
        assert len(retriever.invoke(QUERY)) == 10


async def test_ainvoke_awaits_the_embedding(documents: list[Document]) -> None:
    class Native(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise AssertionError("the async twin is there")

        def embed_query(self, text: str) -> list[float]:
            raise AssertionError("the async twin is there")

        async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
            return model.embed_documents(texts)

        async def aembed_query(self, text: str) -> list[float]:
            return model.embed_query(text)

    model = DeterministicFakeEmbedding(size=16)
    native = CAUSRetriever.from_documents([], Native())
    await native.aadd_documents(documents)
    expected = CAUSRetriever.from_documents(documents, model)
    assert await native.ainvoke("relu") == expected.invoke("relu")
    assert await native.abatch(["relu", "pool"]) == expected.batch(["relu", "pool"])

"""What is LangChain's own: documents, the options of a call, configurable fields, indexing."""

import copy
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_core._api.beta_decorator import LangChainBetaWarning
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import (
    CAUSRetriever,
    GatedRetriever,
    HybridIndex,
    HybridScoreCompressor,
    NeighbourSpans,
    NeighbourSpanTransformer,
    PlacementTransformer,
    TwoRoundChain,
)
from tests.adapters.drivers import ids

from .conftest import WORDS, Awaited

QUERY = "the relu layer"


def test_a_document_is_an_ordinary_document(retriever: CAUSRetriever) -> None:
    """It is equal to one, copied and dumped alike, and its metadata is JSON."""
    for found in retriever.invoke(QUERY):
        ordinary = Document(found.page_content, id=found.id, metadata=found.metadata)
        assert found == ordinary
        assert Document.model_validate_json(found.model_dump_json()) == ordinary
        assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == ordinary
        assert json.loads(json.dumps(found.metadata)) == found.metadata
        assert type(found.metadata["score"]) is float


def test_scores_can_be_left_out(
    documents: list[Document], embeddings: Embeddings, tmp_path: Path
) -> None:
    retriever = CAUSRetriever.from_documents(documents, embeddings, include_scores=False)
    retriever.save(tmp_path / "index")
    for each in (retriever, CAUSRetriever.load(tmp_path / "index", embeddings)):
        assert all(found in documents for found in each.invoke(QUERY))


async def test_options_of_a_call_hold_for_that_call(retriever: CAUSRetriever) -> None:
    """However it is called."""
    options: Any = {"k": 3, "fetch_k": 2, "alpha": 1.0}
    expected = retriever.invoke(QUERY, **options)
    assert len(expected) == 3
    assert await retriever.ainvoke(QUERY, **options) == expected
    assert retriever.batch([QUERY] * 2, **options) == [expected] * 2
    assert await retriever.abatch([QUERY] * 2, **options) == [expected] * 2
    assert len(retriever.invoke(QUERY)) == 5


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"fetch_k": 0}, "fetch_k must be an integer >= 1, got 0"),
        ({"distinct": 0.9}, "takes k, fetch_k, alpha and filter, got distinct: .*model_copy"),
    ],
)
async def test_a_call_refuses_what_it_cannot_mean(
    retriever: CAUSRetriever, options: dict[str, Any], named: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=named):
        retriever.invoke("relu", **options)
    with pytest.raises((TypeError, ValueError), match=named):
        await retriever.ainvoke("relu", **options)
    for found in retriever.batch(["a", "b"], return_exceptions=True, **options):
        assert isinstance(found, ValueError | TypeError)


@pytest.mark.parametrize("query", [{"question": "relu"}, None])
async def test_a_query_that_is_no_text_is_told_the_way_out(
    retriever: CAUSRetriever, documents: list[Document], query: Any
) -> None:
    """The commonest slip in a chain: its whole input reaches the retriever."""
    told = r'a query is a string, got .*itemgetter\("question"\)'
    for call in (
        retriever.invoke,
        lambda query: retriever.batch([query, query]),
        lambda query: HybridScoreCompressor().compress_documents(documents, query),
    ):
        with pytest.raises(ValueError, match=told):
            call(query)
    with pytest.raises(ValueError, match=told):
        await retriever.ainvoke(query)


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


def test_the_beta_warning_of_langchain_does_not_reach_users(embeddings: Embeddings) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", LangChainBetaWarning)
        retriever = CAUSRetriever.from_texts(WORDS, embeddings)
        assert len(retriever.invoke(QUERY)) == 10


async def test_ainvoke_awaits_the_embedding(
    documents: list[Document], embeddings: Embeddings
) -> None:
    native = CAUSRetriever.from_documents([], Awaited(size=16))
    await native.aadd_documents(documents)
    expected = CAUSRetriever.from_documents(documents, embeddings)
    assert await native.ainvoke("relu") == expected.invoke("relu")
    assert await native.abatch(["relu", "pool"]) == expected.batch(["relu", "pool"])


# Options that are set later.


def test_every_step_checks_options_set_later(retriever: CAUSRetriever) -> None:
    """Set or copied; and what is refused stays as it was."""
    steps: list[Any] = [
        (retriever.model_copy(), "embeddings", None),
        (HybridScoreCompressor(), "k", 0),
        (PlacementTransformer(), "placement", PlacementTransformer("inverse")),
        (NeighbourSpanTransformer(expand=NeighbourSpans()), "expand", 3),
        (TwoRoundChain("model"), "placement", "guess"),
        (GatedRetriever.from_retriever(retriever, policy="median"), "gate", None),
    ]
    for step, name, value in steps:
        before = dict(step)
        refused = f"validation error for {type(step).__name__}"
        with pytest.raises(ValueError, match=refused):
            setattr(step, name, value)
        with pytest.raises(ValueError, match=refused):
            step.model_copy(update={name: value})
        with pytest.raises(ValueError, match="nonesuch"):
            step.model_copy(update={"nonesuch": value})
        assert dict(step) == before


# What goes in and out of an index.


def test_an_index_and_its_embeddings_belong_together(
    retriever: CAUSRetriever, documents: list[Document], tmp_path: Path
) -> None:
    store = InMemoryVectorStore.from_documents(documents, retriever.embeddings)
    stored = CAUSRetriever.from_vectorstore(store, documents)
    with pytest.raises(ValueError, match="needs embeddings"):
        CAUSRetriever(index=HybridIndex())
    with pytest.raises(ValueError, match="brings its own"):
        CAUSRetriever(index=stored.index, embeddings=retriever.embeddings)
    with pytest.raises(ValueError, match="InMemoryVectorStore keeps its own documents"):
        stored.save(tmp_path / "index")
    assert [*tmp_path.iterdir()] == []


def test_texts_with_more_or_fewer_ids_or_metadatas(embeddings: Embeddings) -> None:
    """They may come one by one."""
    metadatas = ({"n": n} for n in range(2))
    retriever = CAUSRetriever.from_texts(
        iter(["relu layer", "pool"]), embeddings, ids=iter("ab"), metadatas=metadatas
    )
    assert retriever.get(iter("b")) == [Document("pool", id="b", metadata={"n": 1})]
    with pytest.raises(ValueError, match="got 2 texts and 0 ids"):
        CAUSRetriever.from_texts(["relu", "pool"], embeddings, ids=[])
    with pytest.raises(ValueError, match="texts must be a list, got the string 'relu'"):
        CAUSRetriever.from_texts("relu", embeddings)


async def test_what_an_index_does_not_take_is_refused(retriever: CAUSRetriever) -> None:
    """What it does with the rest, LangChain's own suites assert."""
    for wrong in ("d1", None, [1], [1.7], [True]):
        for call in (retriever.get, retriever.delete):
            with pytest.raises(ValueError, match="ids"):
                call(wrong)
        for awaited in (retriever.aget, retriever.adelete):
            with pytest.raises(ValueError, match="ids"):
                await awaited(wrong)

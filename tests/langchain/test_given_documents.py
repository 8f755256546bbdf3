"""Documents as they are given: one by one, one instead of several, and what is no document."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import (
    AttentionPlacement,
    CAUSRetriever,
    ContextAwarenessGate,
    GatedRetriever,
    HybridScoreCompressor,
    NeighbourSpanTransformer,
    PlacementTransformer,
)
from langchain_posrag.sparse_leg import SparseLeg
from shared_core import BM25Index
from shared_core.sensitivity.curve import PositionalCurve
from tests.core.gating.words import INSIDE, PASSAGES
from tests.langchain.test_gating import Words

READER = Path(__file__).parents[2] / "instruments" / "biased"
WORDS = Words()
DOCUMENTS = [
    Document(text, id=str(number), metadata={"doc_id": "a", "chunk_id": number})
    for number, text in enumerate(PASSAGES)
]
STORE = InMemoryVectorStore.from_documents(DOCUMENTS, WORDS)
BEHIND = STORE.as_retriever(search_kwargs={"k": 3})
GATE = GatedRetriever.from_retriever(BEHIND, WORDS, DOCUMENTS).gate
HYBRID = HybridScoreCompressor(embeddings=WORDS)
CURVE = PositionalCurve(model="some", scores=(3.0, 1.0, 0.5, 1.0, 2.0), n=7)

Use = Callable[[Any], object]


def attention(given: Any) -> object:
    pytest.importorskip("torch")
    return AttentionPlacement(READER, curve=CURVE).compress_documents(given, INSIDE)


def found_in(leg: SparseLeg) -> object:
    return leg.search(INSIDE, 9, None)


def added(given: Any) -> object:
    leg = SparseLeg.from_documents([])
    leg.add(given, leg.check(DOCUMENTS))
    return found_in(leg)


def deleted(given: Any) -> object:
    leg = SparseLeg.from_documents(DOCUMENTS)
    leg.delete(given)
    return found_in(leg)


STEPS: dict[str, Use] = {
    "placement": lambda given: PlacementTransformer("inverse").invoke(given),
    "awaited placement": lambda given: asyncio.run(PlacementTransformer("inverse").ainvoke(given)),
    "spans": lambda given: NeighbourSpanTransformer().transform_documents(given),
    "hybrid": lambda given: HYBRID.compress_documents(given, INSIDE),
    "awaited hybrid": lambda given: asyncio.run(HYBRID.acompress_documents(given, INSIDE)),
    "attention": attention,
    "gate": lambda given: GatedRetriever(
        retriever=RunnableLambda(lambda _: given), gate=GATE, embeddings=WORDS
    ).invoke(INSIDE),
}
CORPORA: dict[str, Use] = {
    "statistics": lambda given: HybridScoreCompressor.from_documents(
        given, embeddings=WORDS
    ).compress_documents(DOCUMENTS[:3], INSIDE),
    "chunks": lambda given: NeighbourSpanTransformer.from_documents(given).invoke(DOCUMENTS[2:3]),
    "contexts": lambda given: GatedRetriever.from_retriever(BEHIND, WORDS, given).invoke(INSIDE),
    "prompt": lambda given: ContextAwarenessGate.from_retriever(BEHIND, WORDS, given).invoke(
        INSIDE
    ),
    "vector store": lambda given: CAUSRetriever.from_vectorstore(STORE, given).invoke(INSIDE),
    "leg": lambda given: found_in(SparseLeg(BM25Index.from_texts(PASSAGES), given)),
    "added": added,
    "deleted": deleted,
}


@pytest.mark.parametrize("use", [*STEPS.values(), *CORPORA.values()], ids=[*STEPS, *CORPORA])
def test_documents_may_come_one_by_one(use: Use) -> None:
    assert use(iter(DOCUMENTS)) == use(DOCUMENTS)


@pytest.mark.parametrize("use", [*STEPS.values(), *CORPORA.values()], ids=[*STEPS, *CORPORA])
@pytest.mark.parametrize(
    ("given", "told"),
    [
        (DOCUMENTS[0], r"^(documents|contexts) must be a list, got the Document\(id='0'"),
        ([DOCUMENTS[0], "abc"], r"^(documents|contexts)\[1\] must be a Document, got 'abc'$"),
        ({"documents": DOCUMENTS}, r"\[0\] must be a Document, got 'documents'$"),
    ],
)
def test_what_is_no_list_of_documents_is_named(use: Use, given: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        use(given)


@pytest.mark.parametrize("use", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("abc", "^documents must be a list, got the string 'abc'"),
        (None, "^documents must be a list, got None$"),
        (7, "^documents must be a list, got 7$"),
    ],
)
def test_a_step_tells_what_it_was_given_instead(use: Use, given: object, told: str) -> None:
    """As by a function before it in a pipe that formats the documents, or returns nothing."""
    with pytest.raises(ValueError, match=told):
        use(given)


@pytest.mark.parametrize("store", [False, True])
async def test_ids_may_come_one_by_one(store: bool) -> None:
    def fresh() -> CAUSRetriever:
        if not store:
            return CAUSRetriever.from_documents(DOCUMENTS, WORDS)
        dense = InMemoryVectorStore.from_documents(DOCUMENTS, WORDS)
        return CAUSRetriever.from_vectorstore(dense, DOCUMENTS)

    retriever = fresh()
    assert retriever.get(iter("03")) == await retriever.aget(iter("03")) == DOCUMENTS[:4:3]
    assert retriever.delete(iter("01"))["succeeded"] == ["0", "1"]
    assert (await retriever.adelete(iter("23")))["succeeded"] == ["2", "3"]
    assert retriever.get(["0", "1", "2", "3", "4"]) == DOCUMENTS[4:5]


@pytest.mark.parametrize("name", ["placement", "spans", "hybrid", "awaited hybrid", "attention"])
def test_an_empty_iterator_is_no_documents(name: str) -> None:
    assert STEPS[name](iter(())) == []

"""Documents as they are given to a step: one by one, one instead of several, and no documents."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import (
    CAUSRetriever,
    ContextAwarenessGate,
    GatedRetriever,
    HybridScoreCompressor,
    NeighbourSpanTransformer,
    PlacementTransformer,
)
from tests.core.gating.words import INSIDE, PASSAGES
from tests.langchain.test_gating import Words

WORDS = Words()
DOCUMENTS = [
    Document(text, id=str(number), metadata={"doc_id": "a", "chunk_id": number})
    for number, text in enumerate(PASSAGES)
]
STORE = InMemoryVectorStore.from_documents(DOCUMENTS, WORDS)
BEHIND = STORE.as_retriever(search_kwargs={"k": 3})
GATE = GatedRetriever.from_retriever(BEHIND, WORDS, DOCUMENTS).gate
HYBRID = HybridScoreCompressor(embeddings=WORDS)

USES: dict[str, Callable[[Any], object]] = {
    "placement": lambda given: PlacementTransformer("inverse").invoke(given),
    "awaited placement": lambda given: asyncio.run(PlacementTransformer("inverse").ainvoke(given)),
    "spans": lambda given: NeighbourSpanTransformer().transform_documents(given),
    "hybrid": lambda given: HYBRID.compress_documents(given, INSIDE),
    "awaited hybrid": lambda given: asyncio.run(HYBRID.acompress_documents(given, INSIDE)),
    "gated": lambda given: GatedRetriever(
        retriever=RunnableLambda(lambda _: given), gate=GATE, embeddings=WORDS
    ).invoke(INSIDE),
    "chunks": lambda given: NeighbourSpanTransformer.from_documents(given).invoke(DOCUMENTS[2:3]),
    "contexts": lambda given: GatedRetriever.from_retriever(BEHIND, WORDS, given).invoke(INSIDE),
    "prompt": lambda given: ContextAwarenessGate.from_retriever(BEHIND, WORDS, given).invoke(
        INSIDE
    ),
    "vector store": lambda given: CAUSRetriever.from_vectorstore(STORE, given).invoke(INSIDE),
}


@pytest.mark.parametrize("name", USES)
def test_documents_may_come_one_by_one(name: str) -> None:
    assert USES[name](iter(DOCUMENTS)) == USES[name](DOCUMENTS)


@pytest.mark.parametrize("name", USES)
def test_what_is_no_list_of_documents_is_named(name: str) -> None:
    """As of a function before it in a pipe that formats the documents."""
    for given, told in (
        (DOCUMENTS[0], r"^(documents|contexts) must be a list, got the Document\(id='0'"),
        ([DOCUMENTS[0], "abc"], r"^(documents|contexts)\[1\] must be a Document, got 'abc'$"),
    ):
        with pytest.raises(ValueError, match=told):
            USES[name](given)


@pytest.mark.parametrize("name", [*USES][:5])
def test_a_step_tells_what_it_was_given_instead(name: str) -> None:
    """Also of a function that returns nothing; no documents are none."""
    for given, told in (("abc", "the string 'abc'"), (None, "None$")):
        with pytest.raises(ValueError, match=f"^documents must be a list, got {told}"):
            USES[name](given)
    assert USES[name](iter(())) == []

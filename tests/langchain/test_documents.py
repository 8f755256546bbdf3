"""What steps make of documents: copies, of the user's own classes, told of or not."""

import copy
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import (
    CAUSRetriever,
    HybridScoreCompressor,
    NeighbourSpanTransformer,
    PlacementTransformer,
    TwoRoundChain,
)

READER = Path(__file__).parents[2] / "instruments" / "biased"
EMBEDDINGS = DeterministicFakeEmbedding(size=16)

Step = Callable[[Sequence[Document]], Sequence[Document]]


class Reviewed(Document):
    """A class of the user's own."""

    reviewer: str


def hybrid(include_scores: bool, k: int = 10) -> Step:
    compressor = HybridScoreCompressor(embeddings=EMBEDDINGS, k=k, include_scores=include_scores)
    return lambda documents: compressor.compress_documents(documents, "relu")


STEPS: dict[str, Callable[[bool], Step]] = {
    "placement": lambda told: PlacementTransformer("u_shape", include_scores=told).invoke,
    "spans": lambda told: NeighbourSpanTransformer(include_scores=told).invoke,
    "hybrid": hybrid,
}


def reviewed(count: int) -> list[Reviewed]:
    return [
        Reviewed(page_content=f"relu {i}", id=str(i), metadata={"at": [i]}, reviewer=f"r{i}")
        for i in range(count)
    ]


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_keeps_the_class_of_a_document_and_its_fields(name: str, told: bool) -> None:
    documents = reviewed(4)

    found = STEPS[name](told)(documents)

    assert sorted(document.id for document in found) == ["0", "1", "2", "3"]
    for document in found:
        assert isinstance(document, Reviewed)
        assert document.reviewer == f"r{document.id}"
        assert document.metadata["at"] == [int(document.id)]
        assert ("posrag" in document.metadata) == told
        document.metadata["at"].append("changed")
    assert documents == reviewed(4)


@pytest.mark.parametrize("name", STEPS)
def test_without_scores_what_was_said_before_is_taken_off(name: str) -> None:
    """It tells of an earlier order."""
    mine = reviewed(5)
    for k in (1, 5):
        ranked = PlacementTransformer("inverse").invoke(hybrid(True, k)(mine))
        before = copy.deepcopy(ranked)
        assert all("slot" in document.metadata["posrag"] for document in ranked)
        found = STEPS[name](False)(ranked)
        assert {document.id for document in found} == {document.id for document in ranked}
        assert all(document in mine for document in found)
        found[0].metadata["at"].append("changed")
        assert ranked == before


def test_a_span_is_a_copy_of_its_best_document_with_another_text() -> None:
    chunks = [
        Reviewed(page_content=text, metadata={"doc_id": "a", "chunk_id": n}, reviewer=text)
        for n, text in enumerate(("one", "two"))
    ]
    (span,) = NeighbourSpanTransformer().invoke(chunks)
    assert isinstance(span, Reviewed)
    assert span.page_content.split() == ["one", "two"]


def test_the_two_rounds_keep_the_class() -> None:
    pytest.importorskip("torch")
    given = reviewed(2)
    found = TwoRoundChain(READER).invoke({"question": "which?", "documents": [*given]})
    assert sorted(document.reviewer for document in found["documents"]) == ["r0", "r1"]


def test_metadata_that_has_no_copy_is_named() -> None:
    """With its document, by whichever step meets it first."""
    documents = [
        Document("fine", id="a", metadata={"tags": ["x"]}),
        Document("a text " * 20, id="b", metadata={"tags": ["x"], "guard": threading.Lock()}),
    ]
    named = r"document 'b' \('a text a text [^)]{1,30}'\): 'guard' holds a lock, .*; store its name"
    for step in (
        *(make(True) for make in STEPS.values()),
        lambda given: CAUSRetriever.from_vectorstore(InMemoryVectorStore(EMBEDDINGS), given),
    ):
        with pytest.raises(ValueError, match=named):
            step(documents)

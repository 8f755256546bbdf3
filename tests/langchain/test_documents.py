"""Copies of documents: of classes of the user's own, and of metadata that has no copy."""

import copy
import pickle
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore

from langchain_posrag import (
    AttentionPlacement,
    CAUSRetriever,
    HybridScoreCompressor,
    NeighbourSpanTransformer,
    PlacementTransformer,
    TwoRoundChain,
)
from langchain_posrag.documents import new_document
from shared_core.sensitivity.curve import PositionalCurve

READER = Path(__file__).parents[2] / "instruments" / "biased"
CURVE = PositionalCurve(model="some", scores=(3.0, 1.0, 0.5, 1.0, 2.0), n=7)
EMBEDDINGS = DeterministicFakeEmbedding(size=16)

Step = Callable[[Sequence[Document]], Sequence[Document]]


class Reviewed(Document):
    """A class of the user's own."""

    reviewer: str


def attention(include_scores: bool) -> Step:
    pytest.importorskip("torch")
    placement = AttentionPlacement(READER, curve=CURVE, include_scores=include_scores)
    return lambda documents: placement.compress_documents(documents, "relu")


def hybrid(include_scores: bool) -> Step:
    compressor = HybridScoreCompressor(embeddings=EMBEDDINGS, include_scores=include_scores)
    return lambda documents: compressor.compress_documents(documents, "relu")


STEPS: dict[str, Callable[[bool], Step]] = {
    "placement": lambda told: PlacementTransformer("u_shape", include_scores=told).invoke,
    "spans": lambda told: NeighbourSpanTransformer(include_scores=told).invoke,
    "hybrid": hybrid,
    "attention": attention,
}


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_keeps_the_class_of_a_document_and_its_fields(name: str, told: bool) -> None:
    documents = [
        Reviewed(page_content=f"relu {i}", id=str(i), metadata={"at": [i]}, reviewer=f"r{i}")
        for i in range(4)
    ]
    before = [document.model_copy(deep=True) for document in documents]

    found = STEPS[name](told)(documents)

    assert sorted(document.id for document in found) == ["0", "1", "2", "3"]
    for document in found:
        assert isinstance(document, Reviewed)
        assert document.reviewer == f"r{document.id}"
        assert document.metadata["at"] == [int(document.id)]
        assert ("posrag" in document.metadata) == told
        document.metadata["at"].append("changed")
    assert documents == before


@pytest.mark.parametrize("own", [{}, {"score": 7}])
@pytest.mark.parametrize("k", [1, 5])
@pytest.mark.parametrize("name", STEPS)
def test_without_scores_what_was_said_before_is_taken_off(
    name: str, k: int, own: dict[str, int]
) -> None:
    """It tells of an earlier order; a score of the user's own stays."""
    mine = [
        Reviewed(page_content=f"relu {i}", id=str(i), metadata={"at": [i], **own}, reviewer="r")
        for i in range(5)
    ]
    ranked = PlacementTransformer("inverse").invoke(
        HybridScoreCompressor(embeddings=EMBEDDINGS, k=k).compress_documents(mine, "relu")
    )
    before = copy.deepcopy(ranked)
    assert all("slot" in document.metadata["posrag"] for document in ranked)

    found = STEPS[name](False)(ranked)

    assert {document.id for document in found} == {document.id for document in ranked}
    assert all(document in mine for document in found)
    found[0].metadata["at"].append("changed")
    assert ranked == before


@pytest.mark.parametrize("name", STEPS)
def test_without_scores_the_user_s_own_keys_of_our_names_stay(name: str) -> None:
    mine = [
        Document(f"relu {i}", metadata={"score": 7, "posrag": {"score": 7, "mine": [i]}})
        for i in range(3)
    ]
    found = STEPS[name](False)(mine)
    assert len(found) == 3
    assert all(document in mine for document in found)


def test_a_span_is_a_copy_of_its_best_document_with_another_text() -> None:
    chunks = [
        Reviewed(
            page_content=text, metadata={"doc_id": "a", "chunk_id": n, "score": n}, reviewer=text
        )
        for n, text in enumerate(("one", "two"))
    ]

    (span,) = NeighbourSpanTransformer().invoke(chunks)

    assert isinstance(span, Reviewed)
    assert span.reviewer == "two"
    assert span.page_content.split() == ["one", "two"]


def test_the_two_rounds_keep_the_class() -> None:
    pytest.importorskip("torch")
    given = [Reviewed(page_content=text, reviewer=text) for text in ("one", "two")]
    found = TwoRoundChain(READER).invoke({"question": "which?", "documents": [*given]})
    assert sorted(document.reviewer for document in found["documents"]) == ["one", "two"]


def test_a_new_document_is_what_the_constructor_makes() -> None:
    """Though nothing is validated: equal, with the same fields set, and copied and dumped alike."""
    metadata = {"tags": ["x"]}
    made, same = new_document("a", "text", metadata), Document("text", id="a", metadata=metadata)
    assert made == same
    assert made.metadata is metadata
    assert made.model_fields_set == same.model_fields_set
    assert made.model_dump() == same.model_dump()
    assert made.model_copy(deep=True) == pickle.loads(pickle.dumps(made)) == same
    assert repr(made) == repr(same)
    assert new_document(None, "other", {}) == Document("other"), "each has fields of its own"


def test_metadata_that_has_no_copy_is_named() -> None:
    """With its document, by whichever step meets it first."""
    documents = [
        Document("fine", id="a", metadata={"tags": ["x"]}),
        Document("a text " * 20, id="b", metadata={"tags": ["x"], "guard": threading.Lock()}),
    ]
    named = r"document 'b' \('a text a text [^)]{1,30}'\): 'guard' holds a lock, .*; store its name"

    for step in (
        lambda: PlacementTransformer("u_shape").invoke(documents),
        lambda: NeighbourSpanTransformer().invoke(documents),
        lambda: HybridScoreCompressor(embeddings=EMBEDDINGS).compress_documents(documents, "x"),
        lambda: CAUSRetriever.from_documents(documents, EMBEDDINGS),
        lambda: CAUSRetriever.from_vectorstore(InMemoryVectorStore(EMBEDDINGS), documents),
    ):
        with pytest.raises(ValueError, match=named) as caught:
            step()
        assert isinstance(caught.value.__cause__, TypeError)

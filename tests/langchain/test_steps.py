"""Steps wherever LangChain takes one: in a pipe, in a compression pipeline, in a tool."""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough

from langchain_posrag import (
    CAUSRetriever,
    GatedRetriever,
    HybridScoreCompressor,
    NeighbourSpanTransformer,
    PlacementTransformer,
    TwoRoundChain,
)
from tests.adapters.drivers import LangChainModel, ids
from tests.core.gating.words import PASSAGES, embed

READER = Path(__file__).parents[2] / "instruments" / "biased"
QUESTION: Any = {"question": "What is the code?", "documents": [Document("a"), Document("b")]}
EMBEDDINGS = DeterministicFakeEmbedding(size=16)

Step = Callable[[Sequence[Document]], Sequence[Document]]


async def test_every_way_to_use_a_step_is_the_same() -> None:
    documents = [Document(f"text {i}", id=f"d{i}") for i in range(5)]
    step = PlacementTransformer("u_shape")
    field = ConfigurableField(id="way")
    configurable = PlacementTransformer("inverse").configurable_fields(placement=field)
    for placed in (
        await step.ainvoke(documents),
        step.transform_documents(documents),
        await step.atransform_documents(documents),
        configurable.invoke(documents, config={"configurable": {"way": "u_shape"}}),
    ):
        assert ids(placed) == ["d0", "d2", "d4", "d3", "d1"]


async def test_in_the_compression_retriever(retriever: CAUSRetriever) -> None:
    """In a pipeline behind the compressor."""
    compressing = ContextualCompressionRetriever(
        base_compressor=DocumentCompressorPipeline(
            transformers=[HybridScoreCompressor(k=4), PlacementTransformer("u_shape")]
        ),
        base_retriever=retriever.model_copy(update={"psi": "never"}),
    )
    found = compressing.invoke("relu layer")
    assert [document.metadata["posrag"]["rank"] for document in found] == [0, 2, 3, 1]
    assert await compressing.ainvoke("relu layer") == found


async def test_the_compressor_pipes_behind_a_retriever(retriever: CAUSRetriever) -> None:
    """Which tells the question; behind another one it is given."""
    step = HybridScoreCompressor(embeddings=EMBEDDINGS, k=3)
    expected = step.compress_documents(retriever.invoke("relu"), "relu")
    given = {"question": RunnablePassthrough(), "documents": retriever}
    for pipe in (retriever | step, given | step):
        assert pipe.invoke("relu") == await pipe.ainvoke("relu") == expected
        assert pipe.batch(["relu"]) == [expected]
    silent = retriever.model_copy(update={"include_scores": False})
    with pytest.raises(ValueError, match=r'pipe \{"question": RunnablePassthrough\(\)'):
        (silent | step).invoke("relu")
    assert step.invoke([]) == []


@pytest.mark.parametrize(
    ("step", "given"),
    [
        (PlacementTransformer("u_shape"), [Document("a")]),
        (HybridScoreCompressor(), QUESTION),
        (TwoRoundChain(READER), QUESTION),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_a_call_with_an_option_is_refused(step: Any, given: Any) -> None:
    """It would be lost: LangChain's signatures take any."""
    named = "unexpected keyword argument 'placement'"
    for call in (
        lambda: step.bind(placement="inverse").invoke(given),
        lambda: step.batch([given, given], placement="inverse"),
    ):
        with pytest.raises(TypeError, match=named):
            call()
    with pytest.raises(TypeError, match=named):
        await step.ainvoke(given, placement="inverse")


# What steps make of documents: copies, of the user's own classes, told of or not.


class Reviewed(Document):
    """A class of the user's own."""

    reviewer: str


def hybrid(include_scores: bool, k: int = 10) -> Step:
    compressor = HybridScoreCompressor(embeddings=EMBEDDINGS, k=k, include_scores=include_scores)
    return lambda documents: compressor.compress_documents(documents, "relu")


WORDS = LangChainModel(embed)
GATE = GatedRetriever.from_retriever(
    RunnableLambda(lambda question: []), WORDS, [*map(Document, PASSAGES)], policy="median"
).gate


def gated(include_scores: bool) -> Step:
    """Return the gate in front of a retriever that finds these documents."""
    return lambda documents: GatedRetriever(
        retriever=RunnableLambda(lambda question: documents),
        gate=GATE,
        embeddings=WORDS,
        include_scores=include_scores,
    ).invoke("relu")


STEPS: dict[str, Callable[[bool], Step]] = {
    "placement": lambda told: PlacementTransformer("u_shape", include_scores=told).invoke,
    "spans": lambda told: NeighbourSpanTransformer(include_scores=told).invoke,
    "hybrid": hybrid,
    "gate": gated,
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
    """It tells of an earlier order. A score of the user's own stays."""
    mine = reviewed(5)
    ranked = PlacementTransformer("inverse", psi="never").invoke(hybrid(True, 5)(mine))
    before = copy.deepcopy(ranked)
    found = STEPS[name](False)(ranked)
    assert {*ids(found)} == {*ids(ranked)}
    assert all(document in mine for document in found)
    found[0].metadata["at"].append("changed")
    assert ranked == before
    own = [Document("relu", id="a", metadata={"score": 3.5})]
    assert STEPS[name](False)(own) == own

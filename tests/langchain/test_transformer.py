"""Placement as a step of its own."""

import asyncio
import copy
from collections.abc import Callable

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableLambda

from langchain_posrag import CAUSRetriever, HybridScoreCompressor, PlacementTransformer

Way = Callable[[PlacementTransformer, list[Document]], list[Document]]
WAYS: dict[str, Way] = {
    "invoke": lambda transformer, documents: transformer.invoke(documents),
    "ainvoke": lambda transformer, documents: asyncio.run(transformer.ainvoke(documents)),
    "batch": lambda transformer, documents: transformer.batch([documents, []])[0],
    "abatch": lambda transformer, documents: asyncio.run(transformer.abatch([documents]))[0],
    "transform": lambda transformer, documents: transformer.transform_documents(documents),
    "atransform": lambda t, documents: asyncio.run(t.atransform_documents(documents)),
    "compress": lambda transformer, documents: transformer.compress_documents(documents, "q"),
    "acompress": lambda t, documents: asyncio.run(t.acompress_documents(documents, "q")),
    "pipe": lambda t, documents: (RunnableLambda(lambda _: documents) | t).invoke("q"),
    "pipeline": lambda t, documents: DocumentCompressorPipeline(
        transformers=[t]
    ).compress_documents(documents, "q"),
}


def ranked(k: int) -> list[Document]:
    return [Document(f"text {i}", id=f"d{i}", metadata={"n": [i]}) for i in range(k)]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_use_it_is_the_same(way: str) -> None:
    documents = ranked(5)
    before = copy.deepcopy(documents)

    placed = WAYS[way](PlacementTransformer("u_shape"), documents)

    assert [document.id for document in placed] == ["d0", "d2", "d4", "d3", "d1"]
    assert [document.metadata["posrag"]["slot"] for document in placed] == [0, 1, 2, 3, 4]
    assert documents == before
    placed[0].metadata["n"].append("changed")
    assert documents == before


def test_without_scores_a_later_step_ranks_by_the_order(
    retriever: CAUSRetriever, documents: list[Document]
) -> None:
    """The slots and ranks that the retriever told are gone, with its scores."""
    silent = retriever | PlacementTransformer("inverse", include_scores=False)
    found = retriever.invoke("relu")
    ranks = [document.metadata["posrag"]["rank"] for document in found]
    worst_first = [found[ranks.index(rank)].id for rank in range(4, -1, -1)]

    placed = silent.invoke("relu")

    assert [document.id for document in placed] == worst_first
    assert all(document in documents for document in placed)
    again = (silent | PlacementTransformer("inverse")).invoke("relu")
    assert [document.id for document in again] == worst_first[::-1]


def test_options_can_be_configured() -> None:
    transformer = PlacementTransformer("u_shape").configurable_fields(
        placement=ConfigurableField(id="placement")
    )

    placed = transformer.invoke(ranked(3), config={"configurable": {"placement": "inverse"}})

    assert [document.id for document in placed] == ["d2", "d1", "d0"]


async def test_in_the_compression_retriever(retriever: CAUSRetriever) -> None:
    ranked_only = retriever.model_copy(update={"psi": "never"})
    compressing = ContextualCompressionRetriever(
        base_compressor=PlacementTransformer("u_shape"), base_retriever=ranked_only
    )

    found = compressing.invoke("relu")

    assert [document.id for document in found] == [d.id for d in retriever.invoke("relu")]
    assert [document.metadata["posrag"]["rank"] for document in found] == [0, 2, 4, 3, 1]
    assert await compressing.ainvoke("relu") == found


async def test_in_a_pipeline_after_the_compressor(retriever: CAUSRetriever) -> None:
    pipeline = DocumentCompressorPipeline(
        transformers=[HybridScoreCompressor(k=4), PlacementTransformer("u_shape")]
    )
    compressing = ContextualCompressionRetriever(
        base_compressor=pipeline, base_retriever=retriever.model_copy(update={"k": 10})
    )

    found = compressing.invoke("relu layer")

    assert [document.metadata["posrag"]["rank"] for document in found] == [0, 2, 3, 1]
    scores = [document.metadata["score"] for document in found]
    assert scores[0] >= scores[3] >= scores[1] >= scores[2]
    assert await compressing.ainvoke("relu layer") == found

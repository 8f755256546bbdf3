"""Placement wherever LangChain takes a step."""

import asyncio
from collections.abc import Callable

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.documents import Document
from langchain_core.runnables import ConfigurableField, RunnableLambda

from langchain_posrag import CAUSRetriever, HybridScoreCompressor, PlacementTransformer

Way = Callable[[PlacementTransformer, list[Document]], list[Document]]
WAYS: dict[str, Way] = {
    "ainvoke": lambda transformer, documents: asyncio.run(transformer.ainvoke(documents)),
    "batch": lambda transformer, documents: transformer.batch([documents, []])[0],
    "abatch": lambda transformer, documents: asyncio.run(transformer.abatch([documents]))[0],
    "transform": lambda transformer, documents: transformer.transform_documents(documents),
    "atransform": lambda t, documents: asyncio.run(t.atransform_documents(documents)),
    "compress": lambda transformer, documents: transformer.compress_documents(documents, "q"),
    "acompress": lambda t, documents: asyncio.run(t.acompress_documents(documents, "q")),
    "pipe": lambda t, documents: (RunnableLambda(lambda _: documents) | t).invoke("q"),
    "configured": lambda t, documents: t.configurable_fields(
        placement=ConfigurableField(id="way")
    ).invoke(documents, config={"configurable": {"way": "u_shape"}}),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_use_it_is_the_same(way: str) -> None:
    documents = [Document(f"text {i}", id=f"d{i}") for i in range(5)]
    placement = "inverse" if way == "configured" else "u_shape"
    placed = WAYS[way](PlacementTransformer(placement), documents)
    assert [document.id for document in placed] == ["d0", "d2", "d4", "d3", "d1"]
    assert [document.metadata["posrag"]["slot"] for document in placed] == [0, 1, 2, 3, 4]


async def test_in_the_compression_retriever(retriever: CAUSRetriever) -> None:
    """Alone, and in a pipeline behind the compressor."""
    compressing = ContextualCompressionRetriever(
        base_compressor=PlacementTransformer("u_shape"),
        base_retriever=retriever.model_copy(update={"psi": "never"}),
    )
    found = compressing.invoke("relu")
    assert [document.id for document in found] == [d.id for d in retriever.invoke("relu")]
    assert await compressing.ainvoke("relu") == found

    compressing.base_compressor = DocumentCompressorPipeline(
        transformers=[HybridScoreCompressor(k=4), PlacementTransformer("u_shape")]
    )
    found = compressing.invoke("relu layer")
    assert [document.metadata["posrag"]["rank"] for document in found] == [0, 2, 3, 1]
    scores = [document.metadata["score"] for document in found]
    assert scores[0] >= scores[3] >= scores[1] >= scores[2]
    assert await compressing.ainvoke("relu layer") == found

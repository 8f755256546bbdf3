"""The options of a retriever, given, read, set on the retriever itself, or for one call."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from llamaindex_posrag import CAUS, CAUSRetriever, ChunkKeys, FusingRetriever, NeighbourSpans

from .checks import ids
from .doubles import QUERY, WordEmbedding, corpus

pytestmark = pytest.mark.filterwarnings("ignore:no passage says which chunk")

OTHERS: dict[str, Any] = {
    "k": 3,
    "alpha": 1.0,
    "fetch_k": 1,
    "fusion": "rrf",
    "placement": "inverse",
    "psi": "never",
    "evidence": "interval",
    "expand": NeighbourSpans(window=1),
    "chunk_keys": ChunkKeys(number="page"),
}
"""Another value of each option than those of `made`."""


def made(kind: str, **options: Any) -> CAUSRetriever | FusingRetriever:
    """Return a retriever over an index of ours, or one whose dense leg is LlamaIndex's."""
    given = options if "caus" in options else {"k": 5, "psi": "always", **options}
    if kind == "own":
        own = CAUSRetriever.from_nodes(corpus(), WordEmbedding())
        return CAUSRetriever(own.index, WordEmbedding(), **given)
    return CAUSRetriever.from_index(
        VectorStoreIndex(corpus(), embed_model=WordEmbedding()), **given
    )


def explained(nodes: list[NodeWithScore]) -> list[dict[str, Any]]:
    return [node.model_dump(include={"score", "posrag"}) for node in nodes]


@pytest.fixture(params=["own", "fusing"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_every_option_of_caus_is_one_of_the_retriever() -> None:
    """Or a new one would be set in vain."""
    assert [field.name for field in fields(CAUS)] == [*OTHERS]


@pytest.mark.parametrize("name", OTHERS)
def test_an_option_that_is_set_counts_from_the_next_query(kind: str, name: str) -> None:
    """As if the retriever had been made with it; one that is given for a call stays there."""
    retriever = made(kind)
    before = retriever.caus
    expected = explained(made(kind, **{name: OTHERS[name]}).retrieve(QUERY))
    other = retriever.using(**{name: OTHERS[name]})
    assert explained(other.retrieve(QUERY)) == expected
    assert retriever.caus is before
    setattr(retriever, name, OTHERS[name])
    assert getattr(retriever, name) == OTHERS[name]
    assert retriever.caus == replace(before, **{name: OTHERS[name]})
    assert explained(retriever.retrieve(QUERY)) == expected
    assert explained(asyncio.run(retriever.aretrieve(QUERY))) == expected


def test_filters_are_given_for_a_call_too(kind: str) -> None:
    filters = MetadataFilters(filters=[MetadataFilter(key="lang", value="en")])
    retriever = made(kind, k=12)
    found = ids(retriever.using(filters=filters).retrieve(QUERY))
    assert sorted(found) == sorted(f"n{n}" for n in range(0, 12, 2))
    retriever.filters = filters
    assert ids(retriever.retrieve(QUERY)) == found
    assert len(retriever.using(filters=None).retrieve(QUERY)) == 12
    for wrong in ({"kk": 9}, {"k": 0}):
        with pytest.raises((TypeError, ValueError), match=next(iter(wrong))):
            retriever.using(**wrong)


def test_similarity_top_k_is_k(kind: str) -> None:
    """The name in LlamaIndex's own retrievers, which would otherwise be set in vain."""
    retriever = made(kind)
    retriever.similarity_top_k = 2
    assert (retriever.k, retriever.similarity_top_k, len(retriever.retrieve(QUERY))) == (2, 2, 2)
    with pytest.raises(TypeError, match="similarity_top_k"):
        made(kind, similarity_top_k=2)


def test_the_constructor_takes_the_options_of_caus_or_a_caus(kind: str) -> None:
    """And not both, of which one would be ignored."""
    assert made(kind, caus=CAUS(k=3)).caus == CAUS(k=3)
    with pytest.raises(ValueError, match=r"give caus= or k=, alpha=, not both"):
        made(kind, caus=CAUS(), k=3, alpha=1.0)
    for wrong in ({"k": 3}, {}, "u_shape"):
        told = rf"caus must be a CAUS, as CAUS\(k=3\), got .*{wrong!r}"
        with pytest.raises(ValueError, match=told):
            made(kind, caus=wrong)
        with pytest.raises(ValueError, match=told):
            made(kind).caus = wrong  # type: ignore[assignment]


@pytest.mark.parametrize("index", [VectorStoreIndex([], embed_model=WordEmbedding()), corpus()])
def test_what_is_no_index_is_named_at_once(index: Any) -> None:
    """With the ways that take it: nodes and an index of LlamaIndex are likely slips."""
    told = r"index must be a HybridIndex, got .{4,80}; from_nodes .* nodes, .*from_index .*Vector"
    with pytest.raises(ValueError, match=told):
        CAUSRetriever(index, WordEmbedding())

"""The options of a retriever, read and set on the retriever itself."""

from __future__ import annotations

import asyncio
import math
from dataclasses import fields, replace
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import NodeWithScore
from llama_index.core.vector_stores.types import MetadataFilter, MetadataFilters

from llamaindex_posrag import CAUSRetriever, FusingRetriever
from shared_core import CAUS, HybridIndex
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import NeighbourSpans

from .checks import facts, ids
from .doubles import QUERY, WordEmbedding, corpus
from .test_neighbour_spans import row

Retriever = CAUSRetriever | FusingRetriever

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


def made(kind: str, **options: Any) -> Retriever:
    """Return a retriever over an index of ours, or one whose dense leg is LlamaIndex's."""
    given = {"k": 5, "psi": "always", **options}
    if kind == "own":
        return CAUSRetriever.from_nodes(corpus(), WordEmbedding(), **given)
    index = VectorStoreIndex(corpus(), embed_model=WordEmbedding())
    return CAUSRetriever.from_index(index, higher_is_better=True, **given)


def explained(nodes: list[NodeWithScore]) -> list[dict[str, Any]]:
    return [node.model_dump(include={"score", "posrag"}) for node in nodes]


@pytest.fixture(params=["own", "fusing"])
def kind(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def test_every_option_of_caus_is_one_of_the_retriever() -> None:
    """Or a new one would be set in vain."""
    assert [field.name for field in fields(CAUS)] == [*OTHERS]


@pytest.mark.filterwarnings("ignore:no passage says which chunk")
@pytest.mark.parametrize("name", OTHERS)
def test_an_option_that_is_set_counts_from_the_next_query(kind: str, name: str) -> None:
    """As if the retriever had been made with it, and in no other retriever."""
    retriever, beside = made(kind), made(kind)
    shared = beside.caus = retriever.caus
    assert getattr(retriever, name) == getattr(shared, name) != OTHERS[name]
    retriever.retrieve(QUERY)
    setattr(retriever, name, OTHERS[name])
    assert getattr(retriever, name) == OTHERS[name]
    assert retriever.caus == replace(shared, **{name: OTHERS[name]})
    expected = made(kind, **{name: OTHERS[name]}).retrieve(QUERY)
    assert explained(retriever.retrieve(QUERY)) == explained(expected)
    assert explained(asyncio.run(retriever.aretrieve(QUERY))) == explained(expected)
    assert facts(retriever.retrieve_batch([QUERY])[0]) == facts(expected)
    assert beside.caus is shared


@pytest.mark.parametrize(
    ("name", "value"),
    [("k", 0), ("alpha", 9), ("alpha", math.nan), ("fetch_k", 1.5), ("placement", "v_shape")],
)
def test_an_option_out_of_range_is_named_and_the_last_one_stays(
    kind: str, name: str, value: Any
) -> None:
    retriever = made(kind)
    before = retriever.caus
    with pytest.raises(ValueError, match=rf"{name}.*{value}"):
        setattr(retriever, name, value)
    assert retriever.caus is before


def test_similarity_top_k_is_called_k(kind: str) -> None:
    """It is what LlamaIndex's own retrievers have, and would do nothing here."""
    retriever = made(kind)
    with pytest.raises(AttributeError, match="called k here: set k = 2"):
        retriever.similarity_top_k = 2
    with pytest.raises(AttributeError, match="called k here"):
        assert retriever.similarity_top_k
    assert len(retriever.retrieve(QUERY)) == 5
    with pytest.raises(TypeError, match="called k here: give k=2"):
        made(kind, similarity_top_k=2)


@pytest.mark.parametrize("caus", [{"k": 3}, {}, "u_shape"])
def test_options_that_are_no_caus_are_named_at_once(kind: str, caus: Any) -> None:
    """Wherever they are given."""
    retriever = made(kind)
    with pytest.raises(ValueError, match=rf"caus must be a CAUS, as CAUS\(k=3\), got .*{caus!r}"):
        retriever.caus = caus
    with pytest.raises(ValueError, match="caus must be a CAUS"):
        CAUSRetriever(HybridIndex(), WordEmbedding(), caus=caus)
    with pytest.raises(ValueError, match="caus must be a CAUS"):
        FusingRetriever(retriever, corpus(), higher_is_better=True, caus=caus)


def constructed(kind: str, **options: Any) -> Retriever:
    """Return a retriever of the constructor alone."""
    own = CAUSRetriever.from_nodes(corpus(), WordEmbedding())
    if kind == "own":
        return CAUSRetriever(own.index, WordEmbedding(), **options)
    return FusingRetriever(own, corpus(), higher_is_better=True, **options)


def test_the_constructor_takes_the_options_of_caus_or_a_caus(kind: str) -> None:
    """As the other ways to build one do; and not both, of which one would be ignored."""
    assert constructed(kind).caus == CAUS()
    assert constructed(kind, k=3, alpha=1.0).caus == CAUS(k=3, alpha=1.0)
    assert constructed(kind, caus=CAUS(k=3)).caus == CAUS(k=3)
    with pytest.raises(ValueError, match=r"give caus= or k=, alpha=, not both"):
        constructed(kind, caus=CAUS(), k=3, alpha=1.0)
    with pytest.raises(ValueError, match="k must be an integer >= 1, got 0"):
        constructed(kind, k=0)
    with pytest.raises(TypeError, match="kk"):
        constructed(kind, kk=3)
    with pytest.raises(TypeError, match="called k here: give k=3"):
        constructed(kind, similarity_top_k=3)


@pytest.mark.parametrize(
    "index", [VectorStoreIndex([], embed_model=WordEmbedding()), corpus(), None]
)
def test_what_is_no_index_is_named_at_once(index: Any) -> None:
    """With the ways that take it: nodes and an index of LlamaIndex are likely slips."""
    told = r"index must be a HybridIndex, got .{4,80}; from_nodes .* nodes, .*from_index .*Vector"
    with pytest.raises(ValueError, match=told):
        CAUSRetriever(index, WordEmbedding())


def test_both_legs_of_an_index_of_llamaindex_are_searched_deeper() -> None:
    """By what is set later, as by what is given."""
    retriever = made("fusing", fetch_k=2, k=2, alpha=1.0)
    assert len(retriever.retrieve("zebra")) == 2
    retriever.k = 9
    assert len(retriever.retrieve("zebra")) == 9
    retriever.caus = CAUS(k=12, fetch_k=1)
    assert len(retriever.retrieve("zebra")) == 12


def test_neighbours_are_taken_in_once_expand_is_set() -> None:
    """Of the nodes that pass the filters, by the keys that are in force; and left again."""
    nodes = row("alpha zero", "beta one", "gamma two", "delta three")
    for node, lang in zip(nodes, ("en", "en", "en", "de"), strict=True):
        node.metadata["lang"] = lang
        node.excluded_embed_metadata_keys.append("lang")
    index = VectorStoreIndex(nodes, embed_model=WordEmbedding())
    filters = MetadataFilters(filters=[MetadataFilter(key="lang", value="en")])
    retriever = CAUSRetriever.from_index(index, higher_is_better=True, k=1, filters=filters)
    (alone,) = retriever.retrieve("gamma two")
    assert alone.node.get_content() == "gamma two"
    retriever.expand = NeighbourSpans(window=1)
    (span,) = retriever.retrieve("gamma two")
    assert span.node.get_content() == "beta one\ngamma two"
    retriever.expand = None
    assert ids(retriever.retrieve("gamma two")) == ids([alone])


@pytest.mark.filterwarnings("ignore:no passage says which chunk")
def test_neighbours_are_read_by_the_keys_that_are_set(kind: str) -> None:
    """Though those of other keys were there before."""
    keys = ChunkKeys(document="secret", number="page")
    retriever = made(kind, k=1, expand=NeighbourSpans(window=1))
    expected = made(kind, k=1, expand=NeighbourSpans(window=1), chunk_keys=keys).retrieve(QUERY)
    assert explained(retriever.retrieve(QUERY)) != explained(expected)
    retriever.chunk_keys = keys
    assert explained(retriever.retrieve(QUERY)) == explained(expected)

"""Metadata filters hold in both legs, with every operator of LlamaIndex."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from llamaindex_posrag import CAUSRetriever
from llamaindex_posrag.filters import where

from .checks import ids
from .doubles import QUERY, WordEmbedding

Filter = MetadataFilter
Op = FilterOperator


def nodes() -> list[BaseNode]:
    """Return nodes of which every one matches the query in both legs."""
    return [
        TextNode(
            id_=f"n{n}",
            text=f"{QUERY} {n}",
            metadata={
                "page": n,
                "lang": ("en", "de", "fr")[n % 3],
                "tags": [f"t{n % 2}", f"t{n % 5}"],
                "title": f"Chapter {n}",
            }
            | ({"empty": []} if n % 2 else {}),
        )
        for n in range(12)
    ]


FILTERS: dict[str, MetadataFilters] = {
    name: MetadataFilters(filters=[Filter(key=key, value=value, operator=operator)])
    for name, key, value, operator in [
        ("eq", "lang", "en", Op.EQ),
        ("ne", "lang", "en", Op.NE),
        ("gt", "page", 7, Op.GT),
        ("gte", "page", 7, Op.GTE),
        ("lt", "page", 3, Op.LT),
        ("lte", "page", 3, Op.LTE),
        ("in", "lang", ["en", "fr"], Op.IN),
        ("nin", "lang", ["en", "fr"], Op.NIN),
        ("any", "tags", ["t2", "t3"], Op.ANY),
        ("all", "tags", ["t1", "t3"], Op.ALL),
        ("contains", "tags", "t4", Op.CONTAINS),
        ("text_match", "title", "ter 1", Op.TEXT_MATCH),
        ("text_match_insensitive", "title", "TER 1", Op.TEXT_MATCH_INSENSITIVE),
        ("is_empty", "empty", None, Op.IS_EMPTY),
        ("absent", "nothing", "x", Op.EQ),
        ("in_nothing", "lang", [], Op.IN),
        ("eq_list", "tags", ["t1", "t1"], Op.EQ),
    ]
}
PAIR = [Filter(key="lang", value="en"), Filter(key="page", value=5, operator=Op.GT)]
EQUALITIES = [Filter(key="lang", value="en"), Filter(key="page", value=6)]
FILTERS |= {
    "and": MetadataFilters(filters=PAIR),
    "and_of_equalities": MetadataFilters(filters=EQUALITIES),
    "or_of_equalities": MetadataFilters(filters=EQUALITIES, condition=FilterCondition.OR),
    "same_key_twice": MetadataFilters(
        filters=[Filter(key="lang", value="en"), Filter(key="lang", value="de")]
    ),
    "or": MetadataFilters(filters=PAIR, condition=FilterCondition.OR),
    "not": MetadataFilters(filters=PAIR, condition=FilterCondition.NOT),
    "none_at_all": MetadataFilters(filters=[]),
}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_it_passes_what_llamaindex_passes(name: str, alpha: float) -> None:
    filters = FILTERS[name]
    theirs = VectorStoreIndex(nodes(), embed_model=WordEmbedding()).as_retriever(
        similarity_top_k=12, filters=filters
    )
    ours = CAUSRetriever.from_nodes(
        nodes(), WordEmbedding(), k=12, alpha=alpha, fetch_k=2, filters=filters
    )
    expected = sorted(ids(theirs.retrieve(QUERY)))
    assert sorted(ids(ours.retrieve(QUERY))) == expected
    assert sorted(ids(ours.retrieve_batch([QUERY])[0])) == expected


def test_the_cases_tell_nodes_apart() -> None:
    index = CAUSRetriever.from_nodes(nodes(), WordEmbedding()).index
    sizes = {}
    for name, filters in FILTERS.items():
        found = CAUSRetriever(index, WordEmbedding(), filters=filters).retrieve(QUERY)
        sizes[name] = len(found)
    assert {name for name, size in sizes.items() if size == 0} == {
        "absent",
        "in_nothing",
        "same_key_twice",
    }
    assert sizes["none_at_all"] == 10  # k, of twelve


def test_filters_may_be_nested() -> None:
    nested = MetadataFilters(
        filters=[
            Filter(key="lang", value="en"),
            MetadataFilters(
                filters=[
                    Filter(key="page", value=2, operator=Op.LT),
                    Filter(key="page", value=8, operator=Op.GT),
                ],
                condition=FilterCondition.OR,
            ),
            MetadataFilters(filters=[]),
        ]
    )
    retriever = CAUSRetriever.from_nodes(nodes(), WordEmbedding(), filters=nested)
    assert sorted(ids(retriever.retrieve(QUERY))) == ["n0", "n9"]


def test_a_value_of_the_wrong_type_is_refused() -> None:
    filters = MetadataFilters(filters=[Filter(key="lang", value=5, operator=Op.GT)])
    retriever = CAUSRetriever.from_nodes(nodes(), WordEmbedding(), filters=filters)
    with pytest.raises(TypeError):
        retriever.retrieve(QUERY)


def test_what_is_no_filter_is_named() -> None:
    with pytest.raises(ValueError, match=r"must be MetadataFilters, got \{'lang': 'en'\}"):
        CAUSRetriever.from_nodes([], WordEmbedding(), filters={"lang": "en"})  # type: ignore[arg-type]


def test_equalities_are_looked_up_by_column() -> None:
    both: Any = MetadataFilters(
        filters=[Filter(key="lang", value="en"), Filter(key="page", value=[1, 2], operator=Op.IN)]
    )
    assert where(both) == {"lang": "en", "page": [1, 2]}
    assert where(None) is None
    assert callable(where(FILTERS["gt"]))

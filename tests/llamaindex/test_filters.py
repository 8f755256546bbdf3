"""Metadata filters hold in both legs, with every operator of LlamaIndex."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from llamaindex_posrag import CAUSRetriever
from llamaindex_posrag.filters import where
from shared_core import NeighbourSpans

from .checks import ids
from .doubles import QUERY, WordEmbedding

Filter = MetadataFilter
Op = FilterOperator


def nodes() -> list[BaseNode]:
    """Return nodes of which every one matches the query in both legs; some have no source."""
    return [
        TextNode(
            id_=f"n{n}",
            text=f"{QUERY} {n}",
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"d{n % 3}")}
            if n < 9
            else {},
            metadata={
                "page": n,
                "lang": ("en", "de", "fr")[n % 3],
                "tags": [f"t{n % 2}", f"t{n % 5}"],
                "title": f"Chapter {n}",
            }
            | ({"empty": []} if n % 2 else {})
            | ({"doc_id": "d1", "ref_doc_id": None} if n % 4 == 0 else {}),
        )
        for n in range(12)
    ]


def both(*parts: Filter, condition: FilterCondition = FilterCondition.AND) -> MetadataFilters:
    return MetadataFilters(filters=[*parts], condition=condition)


ENGLISH, LATE = Filter(key="lang", value="en"), Filter(key="page", value=5, operator=Op.GT)
SIXTH = Filter(key="page", value=6)
SOURCES = [Filter(key="doc_id", value="d1"), Filter(key="ref_doc_id", value="d2")]
FILTERS = [
    *(
        both(Filter(key=key, value=value, operator=operator))
        for key, value, operator in [
            ("lang", "en", Op.EQ),
            ("lang", "en", Op.NE),
            ("page", 7, Op.GT),
            ("page", 7, Op.GTE),
            ("page", 3, Op.LT),
            ("page", 3, Op.LTE),
            ("lang", ["en", "fr"], Op.IN),
            ("lang", ["en", "fr"], Op.NIN),
            ("tags", ["t2", "t3"], Op.ANY),
            ("tags", ["t1", "t3"], Op.ALL),
            ("tags", "t4", Op.CONTAINS),
            ("title", "ter 1", Op.TEXT_MATCH),
            ("title", "TER 1", Op.TEXT_MATCH_INSENSITIVE),
            ("empty", None, Op.IS_EMPTY),
            ("nothing", "x", Op.EQ),
            ("lang", [], Op.IN),
            ("tags", ["t1", "t1"], Op.EQ),
            ("doc_id", "None", Op.EQ),
            *(
                (key, value, operator)
                for key in ("doc_id", "ref_doc_id", "document_id")
                for value, operator in [
                    ("d1", Op.EQ),
                    ("d1", Op.NE),
                    (["d1", "None"], Op.IN),
                    (["d1", "d2"], Op.NIN),
                    ("d", Op.TEXT_MATCH),
                ]
            ),
        ]
    ),
    both(),
    both(LATE, Filter(key="page", value=9, operator=Op.LT)),
    both(ENGLISH, Filter(key="lang", value="de")),
    *(
        both(*pair, condition=condition)
        for pair in ([ENGLISH, LATE], [ENGLISH, SIXTH], SOURCES)
        for condition in FilterCondition
    ),
]


def shown(filters: MetadataFilters) -> str:
    parts: Any = filters.filters
    return f" {filters.condition} ".join(f"{p.key} {p.operator.name} {p.value}" for p in parts)


@pytest.mark.parametrize("filters", FILTERS, ids=shown)
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_it_passes_what_llamaindex_passes(filters: MetadataFilters, alpha: float) -> None:
    index = VectorStoreIndex(nodes(), embed_model=WordEmbedding())
    theirs = index.as_retriever(similarity_top_k=12, filters=filters)
    fused = CAUSRetriever.from_index(
        index, higher_is_better=True, k=12, alpha=alpha, filters=filters
    )
    ours = CAUSRetriever.from_nodes(
        nodes(), WordEmbedding(), k=12, alpha=alpha, fetch_k=2, filters=filters
    )
    expected = sorted(ids(theirs.retrieve(QUERY)))
    for retriever in (ours, fused):
        assert sorted(ids(retriever.retrieve(QUERY))) == expected


def test_filters_may_be_nested() -> None:
    early = Filter(key="page", value=2, operator=Op.LT)
    late = Filter(key="page", value=8, operator=Op.GT)
    either: Any = both(early, late, condition=FilterCondition.OR)
    nested = both(ENGLISH, either, both())  # type: ignore[arg-type]
    retriever = CAUSRetriever.from_nodes(nodes(), WordEmbedding(), filters=nested)
    assert sorted(ids(retriever.retrieve(QUERY))) == ["n0", "n9"]


def test_where_numbers_are_asked_for_texts_are_none() -> None:
    above = MetadataFilters(filters=[Filter(key="lang", value=5, operator=Op.GT)])
    assert CAUSRetriever.from_nodes(nodes(), WordEmbedding(), filters=above).retrieve(QUERY) == []


def test_numbers_within_bounds_are_a_mapping_as_databases_take_them() -> None:
    above = Filter(key="page", value=2, operator=Op.GT)
    below = Filter(key="page", value=8, operator=Op.LTE)
    assert where(both(above, below)) == {"page": {"$gt": 2, "$lte": 8}}
    for other in (Filter(key="page", value=1, operator=Op.GT), Filter(key="page", value=4)):
        assert callable(where(both(above, other)))
        assert callable(where(both(above, below, other)))


def test_what_is_no_filter_is_named() -> None:
    with pytest.raises(ValueError, match=r"must be MetadataFilters, got \{'lang': 'en'\}"):
        CAUSRetriever.from_nodes([], WordEmbedding(), filters={"lang": "en"})  # type: ignore[arg-type]


def test_the_document_of_a_chunk_is_what_its_metadata_say() -> None:
    """For neighbours a ``doc_id`` of the user's own counts, and in filters that of LlamaIndex."""
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="one source")}
    parts = [
        TextNode(
            id_=f"{document}{n}",
            text=f"{document} part {n}.",
            metadata={"doc_id": document, "chunk_id": n},
            relationships=source,
        )
        for document in ("a", "b")
        for n in range(3)
    ]
    filters = MetadataFilters(filters=[Filter(key="doc_id", value="one source")])
    retriever = CAUSRetriever.from_nodes(
        parts, WordEmbedding(), k=1, filters=filters, expand=NeighbourSpans(window=5)
    )
    (found,) = retriever.retrieve("a part 1")
    assert found.node.get_content() == "a part 0.\na part 1.\na part 2."

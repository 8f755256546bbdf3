"""A fact torn over two chunks: out of reach of a reader, until its neighbour is there."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from benchmarks.span_reading import (
    BUDGET,
    GAP,
    KEYS,
    ORDERS,
    Arms,
    Collection,
    Retrieved,
    filled,
    prompts,
    retrieve,
    write_collection,
)
from shared_core.arrays import Vectors
from shared_core.evaluation import GRADERS
from shared_core.neighbour_spans import NeighbourSpans, PassageNeighbours, Seed
from tests.core.attention.readers import reader


@cache
def collection() -> Collection:
    """Documents of which no two facts have the same noun."""
    return write_collection(20, seed=0)


@cache
def found(torn: bool) -> Retrieved:
    """Search for 30 facts by their words alone: all embeddings are the same."""
    asked = [question for question in collection().questions if question.torn == torn][:30]

    def embed(texts: Sequence[str]) -> Vectors:
        return np.ones((len(texts), 1), np.float32)

    return retrieve([collection()], asked, embed)


@cache
def arms(torn: bool) -> Arms:
    """Fill the budget by every arm."""
    return filled(found(torn), reader("uniform"))


def exact_match(arm: str, *, torn: bool) -> float:
    """Let the reader answer."""
    said = reader("uniform").generate(prompts(found(torn), arms(torn)[arm], ORDERS[0]))
    pairs = zip(said, found(torn).questions, strict=True)
    return float(np.mean([GRADERS["exact"](answer, [q.answer]) for answer, q in pairs]))


@pytest.mark.parametrize("arm", ["+ neighbours", "+ continuity", "auto"])
def test_neighbours_rescue_a_torn_fact(arm: str) -> None:
    """At the same budget; without them nearly all of these questions are lost."""
    assert exact_match(arm, torn=True) > exact_match("kNN alone", torn=True) + 0.5


def test_a_whole_fact_is_read_without_neighbours() -> None:
    """So that it is the tearing that loses the others, and not the reader or the search."""
    assert exact_match("kNN alone", torn=False) > exact_match("kNN alone", torn=True) + 0.5


def test_a_document_stitched_from_its_chunks_is_the_document() -> None:
    """Else the readers would get a text that they do not know."""
    every = collection()
    first = KEYS.chunk(every.passages[0])
    whole = NeighbourSpans(window=12, token_budget=None, min_continuity=None)
    (span,) = whole.expand([Seed(first, 1.0)], PassageNeighbours(every.passages, KEYS)).spans
    assert span.text == every.documents[first.document]


@pytest.mark.parametrize("torn", [True, False])
def test_every_arm_keeps_to_the_same_budget(torn: bool) -> None:
    """Counted by the reader's own tokenizer, with what stands between the documents."""
    for arm in arms(torn).values():
        for expansion in arm:
            texts = [span.text + GAP for span in expansion.spans]
            assert sum(reader("uniform").count_tokens(text) for text in texts) <= BUDGET

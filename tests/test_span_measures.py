"""The measures of spans that the benchmarks print: against a count of characters."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.span_measures import (
    Extent,
    reference_coverage,
    rescued_by_neighbour,
    span_recall,
)


def extents() -> st.SearchStrategy[Extent]:
    edges = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(sorted)
    return st.builds(lambda name, at: Extent(name, *at), st.sampled_from("ab"), edges)


def characters(extent: Extent) -> set[tuple[str, int]]:
    return {(extent.document, at) for at in range(extent.start, extent.end)}


QUESTIONS = st.lists(
    st.tuples(
        st.lists(extents(), max_size=4),
        st.lists(extents(), max_size=4),
        extents().filter(lambda extent: extent.start < extent.end),
    ),
    min_size=1,
    max_size=5,
)


@given(QUESTIONS)
def test_the_measures_are_those_of_a_count_of_characters(
    questions: list[tuple[list[Extent], list[Extent], Extent]],
) -> None:
    """Written out the slow way, character by character."""
    returned, seeds, answers = zip(*questions, strict=True)
    wanted = [characters(answer) for answer in answers]
    whole = [
        float(any(want <= characters(span) for span in spans))
        for spans, want in zip(returned, wanted, strict=True)
    ]
    by_seed = [
        any(want <= characters(span) for span in spans)
        for spans, want in zip(seeds, wanted, strict=True)
    ]
    covered = [
        len(want & set().union(*map(characters, spans))) / len(want)
        for spans, want in zip(returned, wanted, strict=True)
    ]
    assert span_recall(returned, answers).tolist() == whole
    assert rescued_by_neighbour(returned, seeds, answers).tolist() == [
        float(there and not seed) for there, seed in zip(whole, by_seed, strict=True)
    ]
    np.testing.assert_allclose(reference_coverage(returned, answers), covered)

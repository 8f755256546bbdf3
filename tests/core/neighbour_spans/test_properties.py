"""What holds of every expansion, whatever the documents, seeds, window and budget."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shared_core.neighbour_spans import Expansion, NeighbourSpans, PassageNeighbours, Seed
from shared_core.tokens import estimate_tokens
from tests.core.neighbour_spans.making import ids, neighbours_of, prose, split, words

HEADINGS = (("A",), ("A", "1"), ("B",))


@dataclass
class Case:
    """Documents in chunks, seeds among them, and options that the best seed fits."""

    documents: dict[str, str]
    source: PassageNeighbours
    seeds: list[Seed]
    options: dict[str, Any]

    def expand(self, **options: Any) -> Expansion:
        return NeighbourSpans(**{**self.options, **options}).expand(self.seeds, self.source)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    rng = random.Random(draw(st.integers(0, 2**32)))
    overlap = draw(st.sampled_from([0, 20, 45]))
    offsets = draw(st.booleans())
    documents = {name: prose(rng.randint(5, 120)) for name in "abc"}
    chunks = []
    for name, text in documents.items():
        parts = split(text, overlap=overlap, document=name, offsets=offsets)
        headings = sorted(rng.choice(HEADINGS) for _ in parts) if draw(st.booleans()) else []
        parts = split(text, overlap=overlap, document=name, offsets=offsets, headings=headings)
        chunks += [chunk for chunk in parts if rng.random() > 0.05]
    chunks = chunks or parts
    vectors = np.random.default_rng(len(chunks)).normal(size=(len(chunks), 3))
    source = neighbours_of(chunks, vectors if draw(st.booleans()) else None)
    hits = rng.sample(chunks, min(len(chunks), draw(st.integers(1, 12))))
    seeds = [Seed(chunk, rng.choice([rng.random(), 0.5, -1.0])) for chunk in hits]
    count: Callable[[str], int] = draw(st.sampled_from([words, len, estimate_tokens]))
    least = count(max(seeds, key=lambda seed: seed.score).chunk.text)
    most = 1 + sum(count(text) for text in documents.values())
    options = {
        "window": draw(st.sampled_from([0, 1, 2, 5, "auto"])),
        "token_budget": draw(st.none() | st.integers(least, max(least, most))),
        "min_continuity": draw(st.none() | st.floats(-1, 1)),
        "order": draw(st.sampled_from(["edge_balanced", "back_first"])),
        "count_tokens": count,
    }
    return Case(documents, source, seeds, options)


@given(cases())
def test_spans_share_no_chunk_hold_the_seeds_and_keep_to_the_budget(case: Case) -> None:
    """Stretches of one document, by the tokens of the texts that are given back.

    No seed is lost without a word, none is there twice, and nothing else is called one. Where all
    fit without neighbours, all are there; and the best one always is.
    """
    expansion, budget = case.expand(), case.options["token_budget"]
    for span in expansion.spans:
        numbers = [chunk.number or 0 for chunk in span.chunks]
        assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]
        assert {chunk.document for chunk in span.chunks} == {span.document}
        assert span.seeds
        assert {seed.chunk.id for seed in span.seeds} <= {*ids(span)}
        assert span.tokens == case.options["count_tokens"](span.text)
    chunks = [id for span in expansion.spans for id in ids(span)]
    assert len({*chunks}) == len(chunks)
    assert budget is None or expansion.tokens <= budget
    held = [seed for span in expansion.spans for seed in span.seeds]
    assert sorted(seed.chunk.id for seed in [*held, *expansion.dropped]) == sorted(
        seed.chunk.id for seed in case.seeds
    )
    bare = case.expand(window=0, token_budget=None)
    if budget is None or bare.tokens <= budget:
        assert not expansion.dropped
    assert max(seed.score for seed in case.seeds) in [seed.score for seed in held]


@given(cases())
def test_no_character_stands_there_twice_and_none_is_missing(case: Case) -> None:
    """The text of a span is that of its document, except for a line break where nothing is known.

    No stretch of ten characters occurs twice in these documents, so a span's text in its document
    has one place only.
    """
    for span in case.expand().spans:
        document, text = case.documents[span.document], span.text
        if span.chunks[0].start is None:
            text, document = text.replace("\n", ""), document.replace("\n", "")
        assert text in document
        assert all(chunk.text in text for chunk in span.chunks)


@given(cases())
def test_a_budget_that_holds_everything_changes_nothing(case: Case) -> None:
    """And one that does not trims something."""
    whole = case.expand(token_budget=None)
    assert case.expand(token_budget=whole.tokens) == whole
    if any(len(span.chunks) > len(span.seeds) for span in whole.spans):
        less = case.expand(token_budget=max(1, whole.tokens - 1))
        assert less.tokens < whole.tokens
        assert less.dropped or any(span.trimmed for span in less.spans)


@given(cases())
def test_spans_come_best_first_and_the_same_every_time(case: Case) -> None:
    """Deterministic, and of distinct scores the order of the seeds is no matter."""
    expansion = case.expand()
    totals = [span.score.total for span in expansion.spans]
    assert totals == sorted(totals, reverse=True)
    assert sorted(expansion.slots) == [*range(len(totals))]
    assert case.expand() == expansion
    if len({seed.score for seed in case.seeds}) == len(case.seeds):
        case.seeds.reverse()
        assert case.expand() == expansion

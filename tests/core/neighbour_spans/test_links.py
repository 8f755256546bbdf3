"""Sources that know who comes after whom, and no numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared_core.neighbour_spans import Chunk, Neighbourhood, NeighbourSpans, Seed
from tests.core.neighbour_spans.making import all_ids, words


@dataclass
class Links:
    """Text by text the one that comes after it; follows damaged links wherever they lead."""

    after: dict[str, str]

    def around(self, seeds: list[Chunk], window: int) -> list[Neighbourhood]:
        before = {second: first for first, second in self.after.items()}
        return [
            Neighbourhood(
                seed,
                tuple(self.walk(seed, before, window)[::-1]),
                tuple(self.walk(seed, self.after, window)),
            )
            for seed in seeds
        ]

    def walk(self, seed: Chunk, links: dict[str, str], window: int) -> list[Chunk]:
        found, id = [], seed.id
        while len(found) < window and id in links:
            id = links[id]
            found.append(Chunk(id, f"text of {id}", "d"))
        return found


def linked(*names: str) -> list[Seed]:
    return [Seed(Chunk(name, f"text of {name}", "d"), 0.5) for name in names]


def test_links_do_without_numbers() -> None:
    """As LlamaIndex has them: windows that overlap or touch are recognised by their chunks."""
    source = Links({"a": "b", "b": "c", "c": "d", "d": "e", "e": "f", "f": "g"})
    spans = NeighbourSpans(window=1)
    assert all_ids(spans.expand(linked("e", "b"), source)) == [["a", "b", "c", "d", "e", "f"]]
    assert all_ids(spans.expand(linked("f", "b"), source)) == [["e", "f", "g"], ["a", "b", "c"]]


names = st.sampled_from("abcdefg")


@given(
    st.dictionaries(names, names),
    st.sets(names, min_size=1),
    st.sampled_from([0, 1, 2, 3, 4, "auto"]),
)
def test_links_that_contradict_each_other_lose_no_seed(
    after: dict[str, str], found: set[str], window: Any
) -> None:
    """Forks, confluences and loops of damaged data: each seed in one span, no chunk twice."""
    for budget in (None, 7, 20):
        spans = NeighbourSpans(window=window, token_budget=budget, count_tokens=words)
        expansion = spans.expand(linked(*sorted(found)), Links(after))
        held = [id for span in all_ids(expansion) for id in span]
        assert len({*held}) == len(held)
        assert {*held} | {seed.chunk.id for seed in expansion.dropped} >= found
        assert budget is None or expansion.tokens <= budget

"""A dense leg that lives elsewhere: pooled with the sparse one, fused and placed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from shared_core import CAUS, Arrangement, BM25Index, HybridIndex, Passage
from shared_core.foreign_leg import fuse_foreign
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import ExpandedArrangement, NeighbourSpans, PassageNeighbours
from shared_core.types import Query

TEXTS = ["relu layer", "conv layer", "pool layer relu", "norm of a layer", "drop", "relu relu"]
PASSAGES = [Passage(f"p{n}", text, {"doc_id": "d", "chunk_id": n}) for n, text in enumerate(TEXTS)]
QUERY = "relu layer"
BM25 = BM25Index.from_texts(TEXTS)


def score(rows: Sequence[int]) -> Any:
    return BM25.scores(QUERY)[rows]


def fused(
    dense: Sequence[tuple[int, float | None]],
    sparse: Sequence[int] = (),
    caus: CAUS | None = None,
    *,
    higher_is_better: bool = True,
    **options: Any,
) -> Arrangement:
    """Fuse rows of `PASSAGES`."""
    return fuse_foreign(
        caus or CAUS(),
        ((f"p{row}", row, value) for row, value in dense),
        ((f"p{row}", row) for row in sparse),
        score,
        higher_is_better=higher_is_better,
        passage_of=PASSAGES.__getitem__,
        **options,
    )


def ids(found: Arrangement) -> list[str]:
    return [passage.id for passage in found.passages]


@pytest.mark.parametrize("fusion", ["min_max", "rrf"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0, "auto"])
def test_legs_that_find_everything_give_the_answer_of_an_index(alpha: Any, fusion: Any) -> None:
    vectors = np.random.default_rng(4).standard_normal((len(TEXTS), 8))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vector = vectors[1] + vectors[4] / 2
    index = HybridIndex()
    index.add(PASSAGES, vectors)
    caus = CAUS(k=4, alpha=alpha, fusion=fusion, psi="always")
    dense = [(row, float(vectors[row] @ vector)) for row in range(len(TEXTS))]

    ours = fused(dense, range(len(TEXTS)), caus)
    assert ids(ours) == ids(caus.search(index, [Query(QUERY, vector)])[0])
    turned = fused([(row, -value) for row, value in dense], (), caus, higher_is_better=False)
    assert turned == ours


def test_a_candidate_without_a_dense_score_stands_at_the_lowest() -> None:
    """Found by the sparse leg alone, or by a dense leg that gives None or NaN."""
    found = fused([(3, 0.9), (4, None), (1, 0.2), (0, float("nan"))], [5])
    scores = dict(zip(found.ranking.indices, found.ranking.dense, strict=True))
    assert scores == {0: 0.9, 1: 0.2, 2: 0.2, 3: 0.2, 4: 0.2}
    assert {"p0", "p1", "p3", "p4", "p5"} == {*ids(found)}


def test_distances_are_turned_round_and_the_lowest_is_the_farthest() -> None:
    found = fused([(3, 0.2), (1, 0.9)], [5], CAUS(alpha=1.0), higher_is_better=False)
    assert ids(found)[0] == "p3"
    assert sorted(found.ranking.dense) == [-0.9, -0.9, -0.2]


def test_of_what_is_found_twice_the_first_counts() -> None:
    """The better hit of a dense leg that finds it twice; its own object, not the sparse leg's."""
    best, worse, other = (Passage("p", text) for text in ("best", "worse", "other"))
    found = fuse_foreign(
        CAUS(alpha=1.0),
        [("p", best, 0.9), ("p", worse, 0.1), (b"q", PASSAGES[1], 0.5)],
        [("p", other), (b"q", PASSAGES[2])],
        lambda pool: [0.0] * len(pool),
        higher_is_better=True,
        passage_of=lambda passage: passage,
    )
    assert found.ranking.passages == [best, PASSAGES[1]]
    assert found.ranking.dense == [0.9, 0.5]


def test_equal_scores_keep_the_order_in_which_they_were_found() -> None:
    """Those of the dense leg come first."""
    found = fuse_foreign(
        CAUS(),
        [("b", "b", 0.5), ("c", "c", 0.5)],
        [("a", "a"), ("c", "c")],
        lambda pool: [1.0] * len(pool),
        higher_is_better=True,
        passage_of=lambda name: Passage(name, name),
    )
    assert [passage.id for passage in found.ranking.passages] == ["b", "c", "a"]


def test_a_call_may_set_k_and_alpha_and_asks_for_no_other_passages() -> None:
    asked: list[int] = []

    def passage_of(row: int) -> Passage:
        asked.append(row)
        return PASSAGES[row]

    found = fuse_foreign(
        CAUS(k=5, alpha=0.0),
        [(f"p{row}", row, float(row)) for row in range(6)],
        [],
        score,
        higher_is_better=True,
        passage_of=passage_of,
        k=2,
        alpha=1.0,
    )
    assert asked == [5, 4]
    assert found.ranking.alpha == 1.0
    assert len(found) == 2


def test_nothing_found_is_nothing_placed() -> None:
    assert ids(fused([])) == []


def test_neighbours_are_taken_in_where_the_options_say_so() -> None:
    """From the source; without one it is an error, not a shorter answer."""
    caus = CAUS(k=1, alpha=1.0, expand=NeighbourSpans(window=1, token_budget=None))
    found = fused([(3, 0.9)], (), caus, source=PassageNeighbours.of(PASSAGES, ChunkKeys()))
    assert isinstance(found, ExpandedArrangement)
    assert [chunk.id for chunk in found.spans[0].chunks] == ["p2", "p3", "p4"]
    with pytest.raises(ValueError, match="source="):
        fused([(3, 0.9)], (), caus)

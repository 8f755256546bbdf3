"""The values that travel through the package: data without algorithms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy.typing as npt

from shared_core.arrays import Bools, Scores

Fusion: TypeAlias = Literal["theoretical_min", "min_max", "rrf"]
OrderRule: TypeAlias = Literal["gain", "psi"]

Tokenizer: TypeAlias = Callable[[str], list[str]]
"""Text in, tokens out. Any callable of this shape serves as a tokenizer."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A retrievable unit of text.

    Attributes
    ----------
    id
        Unique within an index.
    text
        What BM25 reads and what was embedded.
    metadata
        What a filter reads. An index does not copy it, so it must not change later.
    source
        The framework's own object, carried along untouched.
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source: Any = None


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for.

    Attributes
    ----------
    text
        Query of the sparse leg.
    vector
        Query of the dense leg, shape (dim,); None where the engine embeds the text itself.
    """

    text: str
    vector: npt.ArrayLike | None = None


@dataclass(frozen=True, slots=True)
class Pool:
    """What both legs found for a query, every passage scored by both, from one snapshot.

    Attributes
    ----------
    passages
        In insertion order, or for a store of others in the order found.
    dense, sparse
        Scores of the legs, shape (n,), higher is better. NaN: the leg cannot score the passage,
        which then counts with the leg's lowest score (the floor).
    dense_exact, sparse_exact
        Which of the scores are what the leg's formula gives, shape (n,); None: all but NaN.
    complete
        Whether either leg is known to have missed none of its best `depth`.
    nearest
        Best cosine of the dense leg; None where its scores are no cosines, and for an empty pool.
    query
        Text that was searched for, stripped; None where the vector was not that of a text.
    """

    passages: Sequence[Passage]
    dense: Scores
    sparse: Scores
    dense_exact: Bools | None = None
    sparse_exact: Bools | None = None
    complete: bool = True
    nearest: float | None = None
    query: str | None = None


@dataclass(frozen=True, slots=True)
class OrderDecision:
    """Whether passages are placed, and why.

    Attributes
    ----------
    opened
        True: the placement is applied. False: the ranked order is kept.
    placement
        Name of the placement that is applied; ``sequential`` where the gate is shut.
    slots
        Slot -> rank.
    psi
        Position sensitivity index (CAUS eq. 3) of the model; None where none is known.
    reason
        One sentence for the reader.
    gain
        What the best of the judged orders is expected to gain over the ranked one, in units of the
        profile's measure: 0.01 is a point. None where no profile decided by it.
    interval
        Interval (lower, upper) of the gain; None where nothing says how sure it is.
    """

    opened: bool
    placement: str
    slots: tuple[int, ...]
    psi: float | None
    reason: str
    gain: float | None = None
    interval: tuple[float, float] | None = None

    def explain(self) -> dict[str, Any]:
        """Return what every passage has: all but the slots, with ``gate``, "open" or "shut"."""
        return {
            "placement": self.placement,
            "psi": self.psi,
            "gain": self.gain,
            "gain_interval": self.interval and [*self.interval],
            "gate": "open" if self.opened else "shut",
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Ranking:
    """The best k passages in ranked order, with everything that led to the order.

    Every list runs over ranks, best first. Ranks are 0-based, scores higher-is-better.

    Attributes
    ----------
    indices
        rank -> position of the passage in the pool, or among the candidates that were given.
    scores
        Fused score, in [0, 1].
    dense, sparse
        Raw scores of the two legs (a missing one is set to its leg's lowest).
    dense_norm, sparse_norm
        The legs' contributions to the fused score before weighting, in [0, 1].
    dense_rank, sparse_rank
        Rank of the passage within the pool by that leg alone.
    alpha
        Weight of the dense leg that was used, in [0, 1].
    fusion
        How the legs were fused.
    passages
        The passages themselves where the ranking comes from an index, else empty.
    nearest
        Cosine of the query and its nearest passage, which need not be among the best k; None
        where the ranking does not come from an index that compares by cosine.
    query
        Text that was searched for, stripped, to which the cosines in `dense` and `nearest` belong;
        None where the ranking does not come from an index, or its vector was not that of a text.
    dense_exact, sparse_exact
        Which scores are what the leg's formula gives; the others are the leg's lowest, or
        approximate. Empty: all.
    complete
        See `Pool`.
    left_out
        What was left out because of each passage, as its explanation says; empty: nothing was.
    """

    indices: list[int]
    scores: list[float]
    dense: list[float]
    sparse: list[float]
    dense_norm: list[float]
    sparse_norm: list[float]
    dense_rank: list[int]
    sparse_rank: list[int]
    alpha: float
    fusion: Fusion
    passages: Sequence[Passage] = ()
    nearest: float | None = None
    query: str | None = None
    dense_exact: Sequence[bool] = ()
    sparse_exact: Sequence[bool] = ()
    complete: bool = True
    left_out: Sequence[Mapping[str, Any]] = ()

    def __len__(self) -> int:
        return len(self.indices)

    def at(self, ranks: Sequence[int]) -> Ranking:
        """Return the ranking of some of its passages, in that order."""
        picked: dict[str, Any] = {
            name: [values[rank] for rank in ranks]
            for name in BY_RANK
            if len(values := getattr(self, name))
        }
        return replace(self, **picked)


BY_RANK = (
    *("indices", "scores", "dense", "sparse", "dense_norm", "sparse_norm", "dense_rank"),
    *("sparse_rank", "passages", "dense_exact", "sparse_exact", "left_out"),
)
"""Lists of a `Ranking`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What labelled questions chose, and what it gains; see `shared_core.tuning.tune`.

    Attributes
    ----------
    questions
        How many there were.
    found
        Share of them with a relevant passage among the best ten by `alpha`, in [0, 1].
    alpha, previous
        The weight that was chosen, and that before.
    ndcg, previous_ndcg
        Mean nDCG@10, in [0, 1], of the weight that the other questions chose, and of the previous.
    interval
        95% interval (lower, upper) of their difference.
    """

    questions: int
    found: float
    alpha: float
    previous: float
    ndcg: float
    previous_ndcg: float
    interval: tuple[float, float]

    @property
    def gains(self) -> bool:
        """Whether the interval of the gain lies above zero."""
        return self.interval[0] > 0

    def __str__(self) -> str:
        gain, (lower, upper) = self.ndcg - self.previous_ndcg, self.interval
        advice = f"leave alpha={self.previous:g} as it is, or give more questions"
        if self.alpha == self.previous:
            advice = "it stays as it is"
        elif self.gains:
            advice = f"take alpha={self.alpha:g}"
        return (
            f"alpha {self.previous:g} -> {self.alpha:g} by {self.questions:,} questions, "
            f"{self.found:.0%} of them with a relevant passage found: on questions that did not "
            f"choose it, nDCG@10 {self.previous_ndcg:.3f} -> {self.ndcg:.3f}, "
            f"{gain:+.3f} [{lower:+.3f}, {upper:+.3f}]: {advice}"
        )


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A ranking put into the slots of a prompt; slot 0 comes first.

    Attributes
    ----------
    ranking
        What was arranged.
    gate
        The decision whether and how to place.
    """

    ranking: Ranking
    gate: OrderDecision

    def __len__(self) -> int:
        return len(self.slots)

    @property
    def slots(self) -> tuple[int, ...]:
        """Slot -> rank."""
        return self.gate.slots

    @property
    def placement(self) -> str:
        """Name of the placement that was applied; ``sequential`` where the gate stayed shut."""
        return self.gate.placement

    @property
    def indices(self) -> list[int]:
        """Slot -> position of the passage among the candidates."""
        return [self.ranking.indices[rank] for rank in self.slots]

    @property
    def passages(self) -> list[Passage]:
        """Slot -> passage."""
        return [self.ranking.passages[rank] for rank in self.slots]

    @property
    def scores(self) -> list[float]:
        """Slot -> fused score."""
        return [self.ranking.scores[rank] for rank in self.slots]

    def explain(self) -> list[dict[str, Any]]:
        """Return, slot by slot, everything that led to the order, as JSON-able dictionaries."""
        ranking, why = self.ranking, self.gate.explain()
        alpha, fusion = ranking.alpha, ranking.fusion
        scores, dense, sparse = ranking.scores, ranking.dense, ranking.sparse
        dense_norm, sparse_norm = ranking.dense_norm, ranking.sparse_norm
        dense_rank, sparse_rank = ranking.dense_rank, ranking.sparse_rank
        everything = [True] * len(ranking)
        dense_exact = ranking.dense_exact or everything
        sparse_exact = ranking.sparse_exact or everything
        if ranking.nearest is not None:
            # The query that the cosines belong to: an outer retriever may have been asked another.
            why |= {"nearest": ranking.nearest, "query": ranking.query}
        details: list[dict[str, Any]] = [
            {
                "score": scores[rank],
                "dense": dense[rank],
                "sparse": sparse[rank],
                "dense_norm": dense_norm[rank],
                "sparse_norm": sparse_norm[rank],
                "dense_rank": dense_rank[rank],
                "sparse_rank": sparse_rank[rank],
                "dense_exact": dense_exact[rank],
                "sparse_exact": sparse_exact[rank],
                "complete": ranking.complete,
                "rank": rank,
                "slot": slot,
                "alpha": alpha,
                "fusion": fusion,
                **why,  # last: the dictionary is sized for the keys above, and need not grow
            }
            for slot, rank in enumerate(self.slots)
        ]
        if ranking.left_out:
            for detail in details:
                detail.update(ranking.left_out[detail["rank"]])
        return details

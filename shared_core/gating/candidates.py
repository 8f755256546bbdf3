"""Vector Candidates (CAG): whether a query is as similar to the corpus as its questions are."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from typing import Self

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Embed, Rows, Scores, Vectors
from shared_core.errors import EmbeddingMismatchError
from shared_core.gating.decision import STATISTICS, Policy, RetrievalDecision
from shared_core.vectors import model_mismatch, unit_rows

PARTS = 16
"""Parts that a corpus is cut into: about as many as there are neighbouring topics."""

ASKED = 1000
"""Questions that are put to the rest: enough for a median."""

_CUT_BY = 20_000
"""Passages by which the parts are found; the others go to the nearest."""

EVERYDAY_QUESTIONS: tuple[str, ...] = tuple(
    json.loads((files(__package__) / "everyday_questions.json").read_text("utf-8"))
)
"""Questions that people ask any assistant: the foreign questions if no others are given.

A corpus may answer a few of them, as only their median counts. They are in English. For a corpus
in another language give questions in that language.
"""

LEAST_SEPARATION = 0.75
"""Separation below which `VectorCandidates.fit` warns."""

LEAST_NEGATIVES = 10
"""Fewest foreign questions for a meaningful median."""

SHARE = 0.4
"""Position of an edge between the everyday questions (0) and the pseudo-queries (1).

Generated questions repeat the words of their context, so they are about as similar to it as a text
can be. People ask for one detail in other words; their questions are anywhere down to the foreign
ones. All levels, and the edge with them, move with the corpus, its size and the embedding model.
Accuracy is flat around the constants: ``python -m benchmarks.gating``.
"""

NEIGHBOURING = 0.99
"""Share of the questions about other parts of the corpus below their level."""

RAISE = 0.5
"""How far the edge is raised towards that level, where it lies above."""

STEEPNESS = 8.0
"""Change in the log-odds that the corpus answers, from the foreign level to the near level."""

COVERAGE_WEIGHT = 4.0
"""Change in the log-odds by a share of 1 of a query's words beyond the middle."""

COVERAGE_MIDDLE = 0.5
"""Share of a query's words up to which they are no evidence.

People who use other words than the corpus does would be refused by those that are missing.
"""


def neighbouring_similarities(
    vectors: Vectors, owners: Rows, questions: Vectors
) -> tuple[Scores, Scores]:
    """Return each question's highest similarity outside its own part, and to all but its passage.

    Parameters
    ----------
    vectors
        Passages, unit vectors of shape (n, dim).
    owners, questions
        The row of the passage that each question is about, and its unit vector; of more than 1,000
        some, evenly spread, are taken.

    Returns
    -------
    tuple of ndarray
        Each ascending; empty for fewer than 4 passages.
    """
    if len(vectors) < 4 or not len(owners):
        return np.empty(0), np.empty(0)
    some = spread(len(owners), ASKED)
    owners, questions = owners[some], questions[some]
    part_of = parts(vectors)
    outside, others = np.empty((2, len(owners)))
    for part in range(int(part_of.max()) + 1):
        asked = np.flatnonzero(part_of[owners] == part)
        scores = questions[asked] @ vectors.T
        scores[np.arange(len(asked)), owners[asked]] = -1
        outside[asked] = scores[:, part_of != part].max(axis=1, initial=-1)
        others[asked] = scores.max(axis=1)
    return np.sort(outside), np.sort(others)


def spread(count: int, most: int) -> Rows:
    """Return at most `most` of `count` rows, evenly spread and ascending."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.intp)


def parts(vectors: Vectors) -> Rows:
    """Return the part of each passage, at most 16, by k-means of their directions."""
    import faiss  # loaded where it is asked for

    kmeans = faiss.Kmeans(
        vectors.shape[1],
        min(PARTS, len(vectors) // 2),
        spherical=True,
        min_points_per_centroid=1,
        seed=0,
    )
    kmeans.train(np.ascontiguousarray(vectors[spread(len(vectors), _CUT_BY)]))
    found: Rows = kmeans.assign(np.ascontiguousarray(vectors))[1]
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class VectorCandidates:
    """Decides by a query's highest similarity whether to retrieve from the corpus.

    Made by `fit`; when the corpus has changed, fit again. `dataclasses.replace` gives the same fit
    another policy or threshold.

    Attributes
    ----------
    similarities
        Similarities of the pseudo-queries to their own contexts, ascending.
    foreign_similarities
        Highest similarities of the foreign questions to the corpus, ascending.
    neighbouring
        Those of questions about other parts of the corpus; see `neighbouring_similarities`. Empty
        where they are not known: then they move nothing.
    others
        Highest similarities of the pseudo-queries to all but their own contexts, ascending; see
        `separation`. Empty where they are not known.
    text, vector
        One of the foreign questions, and its unit vector, shape (dim,); see `verify_embeddings`.
    policy
        ``"calibrated"`` lies between the foreign questions and the pseudo-queries, see `edge`. The
        others are those of the paper, one-sided: ``"density"`` is the lower edge of the shortest
        interval that holds 95% of the pseudo-queries.
    threshold
        CAG's T, in units of similarity: how far above the statistic a query must be.

    Raises
    ------
    ValueError
        If `policy` is unknown, needs more pseudo-queries, or is ``"calibrated"`` where they are no
        more similar to their contexts than foreign questions are to the corpus; or if `threshold`
        is not finite.
    """

    similarities: Scores = field(repr=False)
    foreign_similarities: Scores = field(repr=False)
    neighbouring: Scores = field(repr=False)
    others: Scores = field(repr=False)
    text: str = field(repr=False)
    vector: Vectors = field(repr=False)
    policy: Policy = "calibrated"
    threshold: float = 0.0

    def __post_init__(self) -> None:
        if self.policy not in STATISTICS:
            raise ValueError(f"policy must be one of {', '.join(STATISTICS)}, got {self.policy!r}")
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold must be finite, got {self.threshold}")
        object.__setattr__(self, "threshold", float(self.threshold))  # decisions are JSON-able
        needed, _ = STATISTICS[self.policy]
        if self.similarities.size < needed:
            raise ValueError(
                f"the policy {self.policy!r} needs at least {needed} pseudo-queries, got "
                f"{self.similarities.size}: fit more, or use policy='minimum'"
            )
        if self.policy == "calibrated" and not self._apart:
            raise ValueError(self._fault)

    @classmethod
    def fit(
        cls,
        ids: Sequence[str],
        vectors: npt.ArrayLike,
        owners: Sequence[str],
        pseudo_queries: npt.ArrayLike,
        embed: Embed,
        *,
        negatives: Sequence[str] = EVERYDAY_QUESTIONS,
        policy: Policy = "calibrated",
        threshold: float = 0.0,
    ) -> Self:
        """Fit on contexts and their pseudo-queries.

        Warns if the pseudo-queries are no nearer to their contexts than foreign questions are to
        the corpus; ``"calibrated"`` raises then. Warns, too, of a low `separation`.

        Parameters
        ----------
        ids, vectors
            The contexts: unique ids, and embeddings of shape (len(ids), dim).
        owners, pseudo_queries
            The pseudo-queries: the id of each one's context, and embeddings of shape
            (len(owners), dim). A context may have none.
        embed
            The embedding model; called once, for the foreign questions.
        negatives
            The foreign questions: at least 10 that the corpus does not answer.
        policy, threshold
            As in the class.

        Raises
        ------
        ValueError
            If ids are not unique, an owner is not among them, vectors are invalid, `negatives` are
            too few, or as in the class.
        """
        row_of = {id: row for row, id in enumerate(ids)}
        if len(row_of) < len(ids):
            raise ValueError(f"ids must be unique, got {len(ids) - len(row_of)} duplicates")
        unknown = next((owner for owner in owners if owner not in row_of), None)
        if unknown is not None:
            raise ValueError(f"a pseudo-query belongs to {unknown!r}, which is not among the ids")
        if len(negatives) < LEAST_NEGATIVES:
            raise ValueError(
                f"negatives: at least {LEAST_NEGATIVES} questions are needed, got {len(negatives)}"
            )
        rows = np.array([row_of[owner] for owner in owners], np.intp)
        foreign = unit_rows(embed([*negatives]), len(negatives), "negatives")
        dim = foreign.shape[1]
        contexts = unit_rows(vectors, len(ids), "contexts", dim=dim)
        questions = unit_rows(pseudo_queries, len(rows), "pseudo-queries", dim=dim)
        neighbouring, others = neighbouring_similarities(contexts, rows, questions)
        known = int(foreign.any(axis=1).argmax())  # a vector of zeros has no direction to compare
        fitted = cls(
            similarities=np.sort(np.vecdot(questions, contexts[rows]).astype(np.float64)),
            foreign_similarities=np.sort(
                (foreign @ contexts.T).max(axis=1, initial=-1).astype(np.float64)
            ),
            neighbouring=neighbouring,
            others=others,
            text=negatives[known],
            vector=foreign[known],
            policy=policy,
            threshold=threshold,
        )
        if not fitted._apart:
            warnings.warn(f"words of queries cannot be weighed: {fitted._fault}", stacklevel=2)
        elif fitted.separation < LEAST_SEPARATION:
            warnings.warn(
                "the gate hardly notices that a single passage is missing: of the questions made "
                "for the fit, asked with their passage and without it, it tells "
                f"{fitted.separation:.0%} apart (50% is chance), and of people's no more; of "
                "topics that the corpus lacks this says nothing",
                stacklevel=2,
            )
        return fitted

    @cached_property
    def near(self) -> float:
        """Median similarity of a pseudo-query to its own context."""
        return float(np.median(self.similarities))

    @cached_property
    def foreign(self) -> float:
        """Median over the foreign questions of the highest similarity to the corpus."""
        return float(np.median(self.foreign_similarities))

    @cached_property
    def edge(self) -> float:
        """Lower edge of the distribution under the policy (CAG's P), in units of similarity.

        For ``"calibrated"`` it is ::

            everyday = foreign + 0.4 * (near - foreign)
            edge = max(everyday, (everyday + level) / 2)

        where 99% of the `neighbouring` similarities are below the level.
        """
        if self.policy != "calibrated":
            _, statistic = STATISTICS[self.policy]
            return float(statistic(self.similarities))
        everyday = self.foreign + SHARE * (self.near - self.foreign)
        if not self.neighbouring.size:
            return everyday
        level = float(np.quantile(self.neighbouring, NEIGHBOURING))
        return max(everyday, (1 - RAISE) * everyday + RAISE * level)

    @property
    def separation(self) -> float:
        """How well pseudo-queries are told from those whose own context is left out.

        The mean of the share of the ones at or above the edge, and of the others below it, in
        [0, 1]; 0.5 is chance. People's questions are seldom told better, mostly worse. It says
        nothing of questions about topics that the corpus lacks. NaN where the others are not known.
        """
        if not self.others.size:
            return math.nan
        own, others = self.similarities >= self.edge, self.others < self.edge
        return float(own.mean() + others.mean()) / 2

    @property
    def _apart(self) -> bool:
        return self.near > self.foreign

    @property
    def _fault(self) -> str:
        return (
            f"pseudo-queries have a median similarity of {self.near:.3f} to their contexts, no "
            f"more than the {self.foreign:.3f} of questions foreign to the corpus: give "
            "pseudo-queries of these contexts, and negatives= that the corpus does not answer"
        )

    def decide(
        self, similarity: float | Sequence[float], *, coverage: float | None = None
    ) -> RetrievalDecision:
        """Decide whether to retrieve for a query.

        Parameters
        ----------
        similarity
            Cosine of the query and its nearest passage, as found by the retriever's index; or the
            cosines of several passages, of which the highest counts. Empty: no passage was found.
        coverage
            Share of the query's words in the best passages, see `WordCoverage.share`: evidence in
            addition to the similarity.

        Raises
        ------
        ValueError
            If a similarity is not a finite number, or `coverage` is outside [0, 1] or is given
            where `near` is not above `foreign`.
        """
        values = np.asarray(similarity)
        if values.dtype.kind not in "fiu":
            raise ValueError(f"a similarity must be a number, got {similarity!r:.80}")
        if not np.isfinite(values).all():
            raise ValueError(f"a similarity must be finite, got {similarity!r:.80}")
        if not values.size:
            return RetrievalDecision(
                retrieve=False,
                policy=self.policy,
                reason="the retriever returned no passage: answer without context",
            )
        nearest, edge = float(values.max()), self.edge
        margin = nearest - edge - self.threshold
        retrieve, words = margin >= 0, ""
        if coverage is not None:
            retrieve = self._log_odds(margin, coverage) >= 0
            words = f", with {coverage:.0%} of its words there"
        bar = f"{edge:.3f}" + (f" {self.threshold:+.3f}" if self.threshold else "")
        return RetrievalDecision(
            retrieve=retrieve,
            similarity=nearest,
            statistic=edge,
            interval=(edge, max(edge, float(self.similarities[-1]))),
            margin=margin,
            policy=self.policy,
            reason=(
                f"similarity {nearest:.3f} is {'not below' if margin >= 0 else 'below'} the "
                f"{self.policy} edge {bar}{words}: "
                f"{'retrieve' if retrieve else 'answer without context'}"
            ),
        )

    def _log_odds(self, margin: float, coverage: float) -> float:
        """Return the log-odds, with even prior odds, that the corpus answers the query."""
        if not 0 <= coverage <= 1:
            raise ValueError(f"coverage must lie in [0, 1], got {coverage}")
        if not self._apart:
            raise ValueError(self._fault)
        words = COVERAGE_WEIGHT * max(0.0, coverage - COVERAGE_MIDDLE)
        return STEEPNESS * margin / (self.near - self.foreign) + words

    def verify_embeddings(self, embed: Embed) -> None:
        """Check that `embed` is the model of the fit, by embedding one known question again.

        Raises
        ------
        EmbeddingMismatchError
            If the vector has another dimension or another direction.
        """
        found = model_mismatch(self.vector, np.asarray(embed([self.text])).reshape(-1))
        if found is not None:
            raise EmbeddingMismatchError(
                "the embedding model is not the one the gate was fitted with: a known question "
                f"{found}; fit the gate again"
            )

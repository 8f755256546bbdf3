"""Vector Candidates (CAG): whether a query is as similar to the corpus as its questions are."""

from __future__ import annotations

import json
import math
import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Self

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Embed, Rows, Scores, Vectors
from shared_core.checking import check_several
from shared_core.errors import EmbeddingMismatchError
from shared_core.gating.decision import (
    NEIGHBOURING,
    Levels,
    Policy,
    RetrievalDecision,
    check_policy,
)
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

_writing = threading.Lock()  # one for all gates, as they are written in moments, and copied


def neighbouring_similarities(vectors: Vectors, owners: Rows, questions: Vectors) -> Scores:
    """Return each question's highest similarity to passages outside its own part, ascending.

    Parameters
    ----------
    vectors
        Passages, unit vectors of shape (n, dim).
    owners, questions
        The row of the passage that each question is about, and its unit vector; of more than 1,000
        some, evenly spread, are taken.

    Returns
    -------
    ndarray
        Empty for fewer than 4 passages.
    """
    if len(vectors) < 4 or not len(owners):
        return np.empty(0)
    some = spread(len(owners), ASKED)
    owners, questions = owners[some], questions[some]
    part_of = parts(vectors)
    highest = np.full(len(owners), -1.0)
    for part in range(int(part_of.max()) + 1):
        asked, others = part_of[owners] == part, part_of != part
        if asked.any() and others.any():
            highest[asked] = (questions[asked] @ vectors.T)[:, others].max(axis=1)
    return np.sort(highest)


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


@dataclass(frozen=True, kw_only=True)
class FitState:
    """The state of a fit; replaced as a whole, so that other threads may decide meanwhile.

    Attributes
    ----------
    foreign, texts
        The unit vectors of the foreign questions, shape (m, dim), and their texts; there may be
        none, and no texts if only vectors were given.
    dim
        Dimension of the vectors; None before the first.
    ids
        Context id -> its row.
    owners, similarities
        Row of each pseudo-query's context, and its similarity to it, shape (n,).
    foreign_similarities
        Similarity of each context to each foreign question, shape (len(ids), m).
    neighbouring
        Highest similarities of questions about other parts of the corpus, ascending; see
        `neighbouring_similarities`. Empty where they are not known.
    """

    foreign: Vectors
    texts: Sequence[str]
    dim: int | None
    ids: Mapping[str, int] = field(default_factory=dict)
    owners: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    similarities: Scores = field(default_factory=lambda: np.empty(0))
    foreign_similarities: Vectors
    neighbouring: Scores = field(default_factory=lambda: np.empty(0))
    _levels: dict[Policy, Levels] = field(default_factory=dict, init=False)

    @classmethod
    def empty(cls, foreign: Vectors, texts: Sequence[str]) -> Self:
        """Return the state without a context."""
        count, dim = foreign.shape
        nothing = np.empty((0, count), np.float32)
        return cls(foreign=foreign, texts=texts, dim=dim or None, foreign_similarities=nothing)

    def extended(
        self, ids: Sequence[str], contexts: Vectors, rows: Rows, queries: Vectors
    ) -> FitState:
        """Return this with new contexts, and pseudo-queries of the contexts in `rows`."""
        count, dim = len(self.ids), contexts.shape[1]
        asked = self.foreign.reshape(len(self.foreign), dim)
        # One dot product per pair: unlike a matrix product it does not depend on the other rows.
        near = np.vecdot(contexts[:, None, :], asked)
        own = np.vecdot(queries, contexts[rows]).astype(np.float64)
        return replace(
            self,
            dim=dim,
            ids={**self.ids, **{id: count + row for row, id in enumerate(ids)}},
            owners=np.concatenate([self.owners, count + rows]),
            similarities=np.concatenate([self.similarities, own]),
            foreign_similarities=np.concatenate([self.foreign_similarities, near]),
        )

    def without(self, ids: Iterable[str]) -> FitState:
        """Return this without the contexts among `ids`."""
        stays = np.ones(len(self.ids), np.bool_)
        stays[[self.ids[id] for id in ids if id in self.ids]] = False
        if stays.all():
            return self
        own, moved = stays[self.owners], np.cumsum(stays) - 1
        return replace(
            self,
            ids={id: int(moved[row]) for id, row in self.ids.items() if stays[row]},
            owners=moved[self.owners[own]],
            similarities=self.similarities[own],
            foreign_similarities=self.foreign_similarities[stays],
        )

    def highest_foreign(self) -> Scores:
        """Return each foreign question's highest similarity, ascending; empty without any."""
        if not self.ids:
            return np.empty(0)
        return np.sort(self.foreign_similarities.max(axis=0).astype(np.float64))

    def levels(self, policy: Policy) -> Levels:
        """Return the levels under a policy, cached; see `VectorCandidates.levels`."""
        if policy not in self._levels:
            foreign = _quantile(self.highest_foreign(), 0.5)
            neighbouring = _quantile(self.neighbouring, NEIGHBOURING)
            own = np.sort(self.similarities)
            self._levels[policy] = Levels.of(own, foreign, neighbouring, policy)
        return self._levels[policy]


class VectorCandidates:
    """Decides by a query's highest similarity whether to retrieve from the corpus.

    It keeps the similarity of each pseudo-query to its own context, and of each context to the
    questions that are foreign to the corpus (4 bytes each). Contexts are added and deleted by id;
    the result is that of a new fit, but for the level of neighbouring questions, which stays.

    Parameters
    ----------
    policy
        See `Policy`. ``"calibrated"`` lies between the foreign questions and the pseudo-queries
        (`Levels`). The others are those of the paper, one-sided: ``"density"`` is the lower edge
        of the shortest interval that holds 95% of the pseudo-queries. None: calibrated if there
        are foreign questions, otherwise density.
    threshold
        CAG's T, in units of similarity: how far above the statistic a query must be.
    embed
        The embedding model; called once, for the foreign questions.
    negatives
        The foreign questions: at least 10 that the corpus does not answer. Texts if `embed` is
        given, by default `EVERYDAY_QUESTIONS`; otherwise vectors, shape (m, dim).

    Raises
    ------
    ValueError
        If an option is unknown or not finite, or `negatives` are too few or of the wrong kind.
    """

    def __init__(
        self,
        *,
        policy: Policy | None = None,
        threshold: float = 0.0,
        embed: Embed | None = None,
        negatives: npt.ArrayLike | None = None,
    ) -> None:
        foreign, texts = _foreign_questions(embed, negatives)
        if policy is None:
            policy = "calibrated" if len(foreign) else "density"
        self._set(FitState.empty(foreign, texts), policy, threshold)

    @classmethod
    def of(cls, fitted: FitState, policy: Policy, threshold: float) -> Self:
        """Return a gate with an existing fit."""
        candidates = cls.__new__(cls)
        candidates._set(fitted, policy, threshold)
        return candidates

    def _set(self, fitted: FitState, policy: Policy, threshold: float) -> None:
        if policy == "calibrated" and not len(fitted.foreign):
            raise ValueError(
                "policy 'calibrated' needs foreign questions: give embed= or negatives="
            )
        self._fitted = fitted
        self._policy = check_policy(policy)
        self._threshold = _check_finite(threshold, "threshold")

    @classmethod
    def fit(
        cls,
        ids: Sequence[str],
        vectors: npt.ArrayLike,
        owners: Sequence[str],
        pseudo_queries: npt.ArrayLike,
        *,
        policy: Policy | None = None,
        threshold: float = 0.0,
        embed: Embed | None = None,
        negatives: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit on contexts and their pseudo-queries; pass what does not fit in memory to `add`.

        Warns if the pseudo-queries are no nearer to their contexts than foreign questions are to
        the corpus; ``"calibrated"`` raises then.

        Parameters
        ----------
        ids, vectors
            The contexts: unique ids, and embeddings of shape (len(ids), dim).
        owners, pseudo_queries
            The pseudo-queries: the id of each one's context, and embeddings of shape
            (len(owners), dim). A context may have none.
        policy, threshold, embed, negatives
            As in the class.

        Raises
        ------
        ValueError
            If an argument is out of range, or there are too few pseudo-queries for the policy.
        """
        candidates = cls(policy=policy, threshold=threshold, embed=embed, negatives=negatives)
        candidates.add(ids, vectors, owners, pseudo_queries)
        if len(candidates._fitted.foreign):
            candidates._learn_neighbours(vectors, pseudo_queries)
        elif policy is None:
            warnings.warn(
                "no foreign questions were given, so the 95% density edge is not calibrated and "
                "users' questions will often be below it: give embed=",
                stacklevel=2,
            )
        fault = candidates.levels.fault
        if fault is not None:
            warnings.warn(f"there are no probabilities, and no coverage: {fault}", stacklevel=2)
        elif candidates.separation < LEAST_SEPARATION:
            warnings.warn(
                "questions about one part of the corpus can hardly be told from those about "
                f"another: of those made for the fit, {candidates.separation:.0%} were (50% is "
                "chance), so expect no more from people's questions about neighbouring topics",
                stacklevel=2,
            )
        return candidates

    def _learn_neighbours(self, vectors: npt.ArrayLike, pseudo_queries: npt.ArrayLike) -> None:
        fitted = self._fitted
        contexts = unit_rows(vectors, len(fitted.ids), "contexts")
        questions = unit_rows(pseudo_queries, len(fitted.owners), "pseudo-queries")
        found = neighbouring_similarities(contexts, fitted.owners, questions)
        self._fitted = replace(fitted, neighbouring=found)

    def add(
        self,
        ids: Sequence[str],
        vectors: npt.ArrayLike,
        owners: Sequence[str],
        pseudo_queries: npt.ArrayLike,
    ) -> None:
        """Add contexts with their pseudo-queries, or replace those whose id exists.

        Adds all of them or none. The parameters are those of `fit`.

        Raises
        ------
        ValueError
            If ids are not unique, an owner is not among `ids`, or vectors are invalid.
        """
        ids = list(ids)
        place = {id: row for row, id in enumerate(ids)}
        if len(place) < len(ids):
            raise ValueError(f"ids must be unique, got {len(ids) - len(place)} duplicates")
        unknown = next((owner for owner in owners if owner not in place), None)
        if unknown is not None:
            raise ValueError(f"a pseudo-query belongs to {unknown!r}, which is not among the ids")
        if not ids:
            return
        rows = np.array([place[owner] for owner in owners], np.intp)
        with _writing:
            contexts = unit_rows(vectors, len(ids), "contexts", dim=self._fitted.dim)
            dim = contexts.shape[1]
            queries = unit_rows(pseudo_queries, len(rows), "pseudo-queries", dim=dim)
            self._fitted = self._fitted.without(ids).extended(ids, contexts, rows, queries)

    def delete(self, ids: Iterable[str]) -> list[str]:
        """Delete contexts with their pseudo-queries; return the ids that existed."""
        check_several(ids)
        with _writing:
            found = [id for id in dict.fromkeys(ids) if id in self._fitted.ids]
            self._fitted = self._fitted.without(found)
        return found

    def __len__(self) -> int:
        return len(self._fitted.ids)

    def __contains__(self, id: object) -> bool:
        return id in self._fitted.ids

    def __repr__(self) -> str:
        return (
            f"VectorCandidates({len(self)} contexts, {self.similarities.size} pseudo-queries, "
            f"policy={self.policy!r})"
        )

    @property
    def fitted(self) -> FitState:
        """The state of the fit, immutable; `add` and `delete` replace it."""
        return self._fitted

    @property
    def policy(self) -> Policy:
        """The policy; see `with_policy` for another."""
        return self._policy

    @property
    def threshold(self) -> float:
        """How far above the statistic of the policy a query must be."""
        return self._threshold

    @property
    def similarities(self) -> Scores:
        """Similarities of the pseudo-queries to their own contexts, ascending."""
        return np.sort(self._fitted.similarities)

    @property
    def foreign_similarities(self) -> Scores:
        """Highest similarities of the foreign questions to the corpus, ascending."""
        return self._fitted.highest_foreign()

    @property
    def separation(self) -> float:
        """How well pseudo-queries are told from those about other parts of the corpus.

        The mean of the share of the ones at or above the edge, and of the others below it, in
        [0, 1]; 0.5 is chance. NaN where the others are not known.
        """
        own, others = self._fitted.similarities, self._fitted.neighbouring
        if not own.size or not others.size:
            return math.nan
        edge = self.levels.edge
        return float((own >= edge).mean() + (others < edge).mean()) / 2

    @property
    def levels(self) -> Levels:
        """The levels that a query is compared with.

        Raises
        ------
        ValueError
            If there are too few pseudo-queries for the policy, or, for ``"calibrated"``, they are
            no more similar to their contexts than foreign questions are to the corpus.
        """
        return self._fitted.levels(self.policy)

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
            If a similarity is not a finite number, `coverage` is outside [0, 1] or is given
            without foreign questions, or as in `levels`.
        """
        nearest = _highest(similarity)
        if nearest is None:
            return RetrievalDecision(
                retrieve=False,
                policy=str(self.policy),
                reason="the retriever returned no passage: answer without context",
            )
        return self.levels.decide(nearest, self.threshold, coverage)

    def with_policy(self, policy: Policy, threshold: float = 0.0) -> Self:
        """Return a gate with the same fit and another policy and threshold."""
        return self.of(self._fitted, policy, threshold)

    def verify_embeddings(self, embed: Embed) -> None:
        """Check that `embed` is the model of the fit, by embedding one known question again.

        Raises
        ------
        EmbeddingMismatchError
            If the vector has another dimension or another direction.
        ValueError
            If the fit has no text to check with, as it was not given `embed`.
        """
        fitted = self._fitted
        # A vector of zeros has no direction to compare.
        known = next((at for at in range(len(fitted.texts)) if fitted.foreign[at].any()), None)
        if known is None:
            raise ValueError(
                "nothing to verify with: the fit has no text of its model; fit again with embed=, "
                "or load without embed= to skip the check"
            )
        again = np.asarray(embed([fitted.texts[known]])).reshape(-1)
        found = model_mismatch(fitted.foreign[known], again)
        if found is not None:
            raise EmbeddingMismatchError(
                "the embedding model is not the one the gate was fitted with: a known question "
                f"{found}; fit the gate again"
            )


def _foreign_questions(
    embed: Embed | None, negatives: npt.ArrayLike | None
) -> tuple[Vectors, list[str]]:
    """Return the questions of `VectorCandidates`; none without `embed` and `negatives`."""
    if negatives is None:
        if embed is None:
            return np.empty((0, 0), np.float32), []
        negatives = EVERYDAY_QUESTIONS
    rows = [*np.atleast_1d(np.asarray(negatives))]
    if len(rows) < LEAST_NEGATIVES:
        raise ValueError(
            f"negatives: at least {LEAST_NEGATIVES} questions are needed, got {len(rows)}"
        )
    if all(isinstance(row, str) for row in rows) is (embed is None):
        raise ValueError("negatives must be texts where embed= is given, else their vectors")
    texts = [] if embed is None else [str(row) for row in rows]
    vectors = negatives if embed is None else embed(texts)
    return unit_rows(vectors, len(rows), "negatives"), texts


def _quantile(values: Scores, share: float) -> float | None:
    return float(np.quantile(values, share)) if values.size else None


def _highest(similarities: float | Sequence[float]) -> float | None:
    """Return the highest similarity, or None; ValueError if one is not a finite number."""
    values = np.asarray(similarities)
    if values.dtype.kind not in "fiu":
        raise ValueError(f"a similarity must be a number, got {similarities!r:.80}")
    numbers = values.reshape(-1).astype(np.float64).tolist()
    return max((_check_finite(value, "similarity") for value in numbers), default=None)


def _check_finite(value: float, name: str) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    return float(value)

"""Vector Candidates (CAG): whether a query is as similar to the corpus as its questions are."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Embed, Scores
from shared_core.checking import check_several
from shared_core.gating.background import Background
from shared_core.gating.decision import RetrievalDecision
from shared_core.gating.fit_state import FitState
from shared_core.gating.foreign_questions import foreign_questions
from shared_core.gating.levels import Levels
from shared_core.gating.policies import Policy, check_policy
from shared_core.vectors import unit_rows

BATCH = 4096
"""Contexts fitted per call of `on_contexts`."""


class VectorCandidates:
    """Decides by a query's highest similarity whether to retrieve from the corpus.

    It keeps the similarity of each pseudo-query to its own context, and the similarity to the
    corpus of questions that are foreign to it. Contexts are added and deleted by id; the result
    is that of a new fit, up to rounding among nearly equal contexts.

    Parameters
    ----------
    policy
        See `Policy`. ``"calibrated"`` lies between the foreign questions and the pseudo-queries
        (`Levels`). The others are those of the paper, one-sided: ``"density"`` is the lower edge
        of the shortest interval that holds 95% of the pseudo-queries. None: calibrated if there
        is a background, otherwise density.
    threshold
        CAG's T, in units of similarity: how far above the statistic a query must be.
    embed
        The embedding model; called once, for the background.
    negatives
        The background: at least 10 questions that the corpus does not answer. Texts if `embed` is
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
        background, known = foreign_questions(embed, negatives)
        if policy is None:
            policy = "calibrated" if background is not None else "density"
        dim = None if background is None else background.questions.shape[1]
        self._set(FitState(background, known, dim=dim), policy, threshold)

    @classmethod
    def of(cls, fitted: FitState, policy: Policy, threshold: float) -> Self:
        """Return a gate with an existing fit."""
        candidates = cls.__new__(cls)
        candidates._set(fitted, policy, threshold)
        return candidates

    def _set(self, fitted: FitState, policy: Policy, threshold: float) -> None:
        self._fitted = fitted
        self._policy = _check_policy(policy, fitted.background)
        self._threshold = _check_finite(threshold, "threshold")
        self._writing = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for ``copy`` and ``pickle``; it is immutable, so copies share it."""
        with self._writing:
            return {"fitted": self._fitted, "policy": self.policy, "threshold": self.threshold}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self._set(**kept)

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
        on_contexts: Callable[[int], None] | None = None,
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
        on_contexts
            Called with the number of contexts fitted since the last call.

        Raises
        ------
        ValueError
            If an argument is out of range, or there are too few pseudo-queries for the policy.
        """
        candidates = cls(policy=policy, threshold=threshold, embed=embed, negatives=negatives)
        candidates.add(ids, vectors, owners, pseudo_queries, on_contexts=on_contexts)
        if candidates._fitted.background is None and policy is None:
            warnings.warn(
                "no background of foreign questions was given, so the 95% density edge is not "
                "calibrated and users' questions will often be below it: give embed=",
                stacklevel=2,
            )
        fault = candidates.levels.fault
        if fault is not None:
            warnings.warn(f"there are no probabilities, and no coverage: {fault}", stacklevel=2)
        return candidates

    def add(
        self,
        ids: Sequence[str],
        vectors: npt.ArrayLike,
        owners: Sequence[str],
        pseudo_queries: npt.ArrayLike,
        *,
        on_contexts: Callable[[int], None] | None = None,
    ) -> None:
        """Add contexts with their pseudo-queries, or replace those whose id exists.

        Adds all of them or none. The parameters are those of `fit`.

        Raises
        ------
        ValueError
            If ids are not unique, an owner is not among `ids`, or vectors are invalid.
        """
        ids, owners = list(ids), list(owners)
        place = {id: row for row, id in enumerate(ids)}
        if len(place) < len(ids):
            raise ValueError(f"ids must be unique, got {len(ids) - len(place)} duplicates")
        unknown = next((owner for owner in owners if owner not in place), None)
        if unknown is not None:
            raise ValueError(f"a pseudo-query belongs to {unknown!r}, which is not among the ids")
        if not ids:
            return
        with self._writing:
            contexts = unit_rows(vectors, len(ids), "contexts", dim=self._fitted.dim)
            queries = unit_rows(
                pseudo_queries, len(owners), "pseudo-queries", dim=contexts.shape[1]
            )
            rows = np.array([place[owner] for owner in owners], np.intp)
            order = np.argsort(rows, kind="stable")
            fitted = self._fitted.without(ids)
            for start in range(0, len(ids), BATCH):
                stop = start + BATCH
                of = order[slice(*np.searchsorted(rows, [start, stop], sorter=order))]
                part = ids[start:stop]
                fitted = fitted.extended(part, contexts[start:stop], rows[of] - start, queries[of])
                if on_contexts is not None:
                    on_contexts(len(part))
            self._fitted = fitted

    def delete(self, ids: Iterable[str]) -> list[str]:
        """Delete contexts with their pseudo-queries; return the ids that existed.

        Only the nearest contexts of each background question are kept. Warns if they are all
        deleted for so many questions that the foreign level is unknown: until the gate is fitted
        again, ``"calibrated"`` then raises a `ValueError` in `levels` and `decide`, and the other
        policies give no probability.
        """
        check_several(ids)
        with self._writing:
            found = [id for id in dict.fromkeys(ids) if id in self._fitted.numbers]
            self._fitted = self._fitted.without(found)
            fitted = self._fitted
        if found:
            _warn_of_lost_level(fitted)
        return found

    def __len__(self) -> int:
        return len(self._fitted.numbers)

    def __contains__(self, id: object) -> bool:
        return id in self._fitted.numbers

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
    def background(self) -> Scores:
        """Highest similarities of the foreign questions to the corpus, ascending.

        Raises
        ------
        ValueError
            If all contexts kept for a question were deleted, see `delete`.
        """
        return self._fitted.highest_of_background()

    @property
    def levels(self) -> Levels:
        """The levels that a query is compared with.

        Raises
        ------
        ValueError
            If there are too few pseudo-queries for the policy, they are no more similar to their
            contexts than foreign questions are to the corpus, or so many contexts were deleted
            that the foreign level of ``"calibrated"`` is unknown (see `delete`).
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
            cosines of several passages, of which the highest counts. Empty: there is no passage.
        coverage
            Share of the query's words in the best passages, see `WordCoverage.share`: evidence in
            addition to the similarity.

        Raises
        ------
        ValueError
            If a similarity is not a finite number, `coverage` is outside [0, 1] or is given
            without a background, or as in `levels`.
        """
        nearest = _highest(similarity)
        if nearest is None:
            return RetrievalDecision.without_passages(str(self.policy))
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
        known = self._fitted.known
        if known is None:
            raise ValueError(
                "nothing to verify with: the fit has no text of its model; fit again with embed=, "
                "or load without embed= to skip the check"
            )
        known.check(embed)


def _warn_of_lost_level(fitted: FitState) -> None:
    try:
        fitted.foreign_level()
    except ValueError as error:
        warnings.warn(f"policy 'calibrated' cannot decide any more: {error}", stacklevel=3)


def _check_policy(policy: Policy, background: Background | None) -> Policy:
    if policy == "calibrated" and background is None:
        raise ValueError("policy 'calibrated' needs a background: give embed= or negatives=")
    return check_policy(policy)


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

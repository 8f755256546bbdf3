"""Vector Candidates (CAG): whether a query lies where questions about the corpus lie."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Embed, Scores
from shared_core.checking import check_several
from shared_core.forking import forkable
from shared_core.gating.background import Background
from shared_core.gating.decision import RetrievalDecision
from shared_core.gating.fitted import Fitted
from shared_core.gating.foreign import foreign_questions
from shared_core.gating.levels import Levels
from shared_core.gating.policies import Policy, check_policy
from shared_core.gating.similarities import finite, highest
from shared_core.vectors import unit_rows

BATCH = 4096
"""Contexts between two calls of `on_contexts`."""


class VectorCandidates:
    """Decides from a query's highest similarity whether the corpus is worth asking.

    The pseudo-queries' similarities to their own contexts are kept, one number each, and with
    them how near questions come that are foreign to the corpus. Contexts are added and deleted
    by id, and the result is that of a new fit, up to rounding among nearly equal contexts.

    Parameters
    ----------
    policy
        See `Policy`. ``"calibrated"`` lies between the foreign questions and the pseudo-queries
        (`Levels`). The others are the paper's, one-sided: ``"density"`` is the lower edge of the
        shortest interval that holds 95% of the pseudo-queries. None: calibrated where a
        background is fitted, else density.
    threshold
        CAG's T, in units of similarity: how far above the statistic a query has to be.
    embed
        The embedding model; embeds the background, once.
    negatives
        The background, questions that the corpus does not answer, at least 10: their texts where
        `embed` is given, by default `EVERYDAY_QUESTIONS`; else their vectors, shape (m, dim).

    Raises
    ------
    ValueError
        If an option is unknown or not finite, or `negatives` are too few or of the other kind.
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
        self._set(Fitted(background, known, dim=dim), policy, threshold)

    @classmethod
    def of(cls, fitted: Fitted, policy: Policy, threshold: float) -> Self:
        """Return a gate of what has been fitted already."""
        candidates = cls.__new__(cls)
        candidates._set(fitted, policy, threshold)
        return candidates

    def _set(self, fitted: Fitted, policy: Policy, threshold: float) -> None:
        self._fitted = fitted
        self._policy = _check(policy, fitted.background)
        self._threshold = finite(threshold, "threshold")
        self._writing = forkable(threading.Lock())

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy, by ``copy`` or ``pickle``, is made of; neither changes any of it."""
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
        """Fit on contexts and their pseudo-queries; what does not fit in memory goes to `add`.

        Parameters
        ----------
        ids, vectors
            The contexts: unique ids, and embeddings of shape (len(ids), dim).
        owners, pseudo_queries
            The pseudo-queries: the id of each one's context, and embeddings of shape
            (len(owners), dim). A context may have none.
        policy, threshold, embed, negatives
            As of the class.
        on_contexts
            Told how many contexts have been fitted since it was last told.

        Raises
        ------
        ValueError
            If an argument is out of range, or there are too few pseudo-queries for the policy.
        """
        candidates = cls(policy=policy, threshold=threshold, embed=embed, negatives=negatives)
        candidates.add(ids, vectors, owners, pseudo_queries, on_contexts=on_contexts)
        if candidates._fitted.background is None and policy is None:
            warnings.warn(
                "no background of foreign questions was given, so the 95% density edge stands "
                "uncorrected, and people's questions will often lie below it: give embed=",
                stacklevel=2,
            )
        _ = candidates.levels
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
        """Add contexts with their pseudo-queries, or replace those whose id is there already.

        All of them or none. The parameters are those of `fit`.

        Raises
        ------
        ValueError
            If ids are not unique, an owner is not among `ids`, or vectors do not fit.
        """
        ids, owners = list(ids), list(owners)
        place = {id: row for row, id in enumerate(ids)}
        if len(place) < len(ids):
            raise ValueError(f"ids must be unique, got {len(ids) - len(place)} twice")
        stranger = next((owner for owner in owners if owner not in place), None)
        if stranger is not None:
            raise ValueError(f"a pseudo-query belongs to {stranger!r}, which is not among the ids")
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
        """Delete contexts with their pseudo-queries; return the ids that were there.

        Only the nearest contexts of each background question are kept. Warns if they are all
        deleted for so many questions that the foreign level is no longer known: from then on
        `levels` and `decide` raise a `ValueError`, until the gate is fitted again.
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
    def fitted(self) -> Fitted:
        """What it was fitted on; `add` and `delete` put another in its place."""
        return self._fitted

    @property
    def policy(self) -> Policy:
        """The policy in force; see `with_policy` for another."""
        return self._policy

    @property
    def threshold(self) -> float:
        """How far above the policy's statistic a query has to be."""
        return self._threshold

    @property
    def similarities(self) -> Scores:
        """Similarity of each pseudo-query to its own context, ascending."""
        return np.sort(self._fitted.similarities)

    @property
    def background(self) -> Scores:
        """Highest similarity of each foreign question to the corpus, ascending.

        Raises
        ------
        ValueError
            If all nearest contexts of a question are deleted, see `delete`.
        """
        return self._fitted.highest_of_background()

    @property
    def levels(self) -> Levels:
        """What a query is compared with.

        Raises
        ------
        ValueError
            If there are too few pseudo-queries for the policy, they come no nearer to their
            contexts than foreign questions do, or so many contexts were deleted that the level of
            the foreign questions is not known (see `delete`).
        """
        return self._fitted.levels(self.policy)

    def decide(
        self, similarity: float | Sequence[float], *, coverage: float | None = None
    ) -> RetrievalDecision:
        """Decide whether to retrieve for a query.

        Parameters
        ----------
        similarity
            The cosine of the query and its nearest passage, as the retriever's index has found
            it; or those of several passages, of which the highest counts. None at all: nothing
            is there to retrieve.
        coverage
            Share of the query's words that the best passages hold, see `WordCoverage.share`; a
            second piece of evidence beside the similarity.

        Raises
        ------
        ValueError
            If a similarity is not a finite number, or `coverage` lies outside [0, 1], or
            is given where no background is fitted; and as `levels`.
        """
        nearest = highest(similarity)
        if nearest is None:
            return RetrievalDecision.without_passages(str(self.policy))
        return self.levels.decide(nearest, self.threshold, coverage)

    def with_policy(self, policy: Policy, threshold: float = 0.0) -> Self:
        """Return a copy that decides by another policy and threshold."""
        return self.of(self._fitted, policy, threshold)

    def verify_embeddings(self, embed: Embed) -> None:
        """Check that `embed` is the model of the fit, by embedding one known question again.

        Raises
        ------
        EmbeddingMismatchError
            If the vector has another dimension or points elsewhere.
        ValueError
            If the fit knows no text to try: it was not given `embed`.
        """
        known = self._fitted.known
        if known is None:
            raise ValueError(
                "nothing to verify with: the fit knows no text of its model; fit anew with "
                "embed=, or load without embed=, which verifies nothing"
            )
        known.check(embed)


def _warn_of_lost_level(fitted: Fitted) -> None:
    try:
        fitted.foreign()
    except ValueError as error:
        warnings.warn(f"the gate cannot decide any more: {error}", stacklevel=3)


def _check(policy: Policy, background: Background | None) -> Policy:
    if policy == "calibrated" and background is None:
        raise ValueError("policy 'calibrated' needs a background: give embed= or negatives=")
    return check_policy(policy)

"""A retrieval gate fitted to passages without labels, or tuned by a few labelled queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Embed, Scores, Vectors
from shared_core.checking import check_count, check_several
from shared_core.gating.candidates import ASKED, EVERYDAY_QUESTIONS, VectorCandidates, spread
from shared_core.gating.decision import STATISTICS, Policy
from shared_core.gating.gate import ContextGate
from shared_core.gating.prompts import Transform
from shared_core.gating.words import WordCoverage, plain_words, telling_words
from shared_core.types import Passage, Tokenizer

LEAST_LABELLED = 5
"""Fewest queries on each side: one for each of the default folds."""


class FitArguments(TypedDict, total=False):
    """Keyword arguments of `fit_gate` that the gates of both frameworks pass on."""

    pseudo_queries: Sequence[tuple[str, str]] | None
    negatives: Sequence[str] | None
    policy: Policy | None
    threshold: float
    transform: Transform | None
    coverage: bool | None
    tokenizer: Tokenizer | None


def fit_gate(
    ids: Sequence[str],
    texts: Sequence[str],
    vectors: npt.ArrayLike,
    embed: Embed,
    *,
    pseudo_queries: Sequence[tuple[str, str]] | None = None,
    negatives: Sequence[str] | None = None,
    policy: Policy | None = None,
    threshold: float = 0.0,
    transform: Transform | None = None,
    coverage: bool | None = None,
    tokenizer: Tokenizer | None = None,
) -> ContextGate:
    """Fit a gate on passages.

    Parameters
    ----------
    ids, texts, vectors
        The passages; vectors of shape (len(ids), dim).
    embed
        Embeds queries, as `Embedder.queries` does.
    pseudo_queries
        Pairs of a passage's id and a question it answers, as returned by `read_pseudo_queries`;
        by default the key phrases (`telling_words`) of 1,000 passages, evenly spread. A passage may
        have none.
    negatives
        Questions that the passages do not answer, instead of `EVERYDAY_QUESTIONS`, which are
        English: give some of each other language that is asked.
    policy, threshold
        As in `VectorCandidates`.
    transform
        As in `ContextGate`. Pseudo-queries and negatives go through it, too, one after another:
        HyDE, for one, makes every query similar to passages. Where it asks a model, give
        `pseudo_queries` of some hundred passages, as only their median counts.
    coverage
        Whether the query's words count in addition to its similarity; see `WordCoverage`. None:
        where the policy is calibrated. The paper's policies know similarities alone, and so does
        `choose_policy`.
    tokenizer
        Text to words, for the key phrases and the coverage; None: runs of word characters. A
        language without spaces between words needs one.

    Raises
    ------
    ValueError
        As `VectorCandidates.fit`, and if a pseudo-query is not a pair, or `negatives` is one text.
    """
    if negatives is not None:
        check_several(negatives, "negatives")
    for at, pair in enumerate(pseudo_queries or ()):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(
                f"pseudo_queries[{at}] must be the id of a passage and a question, got {pair!r}"
            )
    words = WordCoverage(plain_words if tokenizer is None else tokenizer)
    words.add(texts)
    if pseudo_queries is None:
        rows = spread(len(ids), ASKED).tolist() if ids else []
        pseudo_queries = [(ids[row], telling_words(texts[row], words)) for row in rows]
    questions = [text for _, text in pseudo_queries]
    if transform is not None:
        questions = [transform(text) for text in questions]
        foreign = EVERYDAY_QUESTIONS if negatives is None else negatives
        negatives = [transform(text) for text in foreign]
    candidates = VectorCandidates.fit(
        ids,
        vectors,
        [owner for owner, _ in pseudo_queries],
        embed(questions) if questions else [],
        policy=policy,
        threshold=threshold,
        embed=embed,
        negatives=negatives,
    )
    if coverage is None:
        coverage = candidates.policy == "calibrated"
    return ContextGate(
        candidates=candidates, transform=transform, coverage=words if coverage else None
    )


class Index(Protocol):
    """The part of `shared_core.HybridIndex` that `fit_index` needs."""

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The custom tokenizer, if it has one."""

    def embedded(self) -> tuple[list[Passage], Vectors]:
        """Return all passages and their vectors."""

    def verify_embeddings(self, embed: Callable[[str], Sequence[float]]) -> None:
        """Check that `embed` is the model of the index."""


def fit_index(
    index: Index,
    embed: Embed,
    *,
    verify: Callable[[str], Sequence[float]] | None = None,
    **fit: Unpack[FitArguments],
) -> ContextGate:
    """Fit a gate on the passages and vectors of an index.

    Parameters
    ----------
    index
        A `shared_core.HybridIndex`.
    embed, **fit
        As in `fit_gate`; `tokenizer` is by default that of the index, if it has a custom one.
    verify
        Embeds a passage, to check that it is the model of the index. None: no check.

    Raises
    ------
    ValueError
        As `fit_gate`.
    EmbeddingMismatchError
        If `verify` is not the model of the index.
    """
    if verify is not None:
        index.verify_embeddings(verify)
    passages, vectors = index.embedded()
    ids, texts = [each.id for each in passages], [each.text for each in passages]
    fit.setdefault("tokenizer", index.tokenizer)
    return fit_gate(ids, texts, vectors, embed, **fit)


@dataclass(frozen=True, kw_only=True)
class PolicyChoice:
    """A policy with its threshold, and its accuracy on queries it was not chosen by.

    Attributes
    ----------
    policy, threshold
        For `VectorCandidates.with_policy`.
    balanced_accuracy
        Mean of recall and specificity on the held-out folds, in [0, 1]; 0.5 is chance.
    uncorrected
        The same for the given gate with its present policy and threshold.
    """

    policy: Policy
    threshold: float
    balanced_accuracy: float
    uncorrected: float


def choose_policy(
    candidates: VectorCandidates,
    positives: npt.ArrayLike,
    negatives: npt.ArrayLike,
    *,
    folds: int = 5,
    seed: int = 0,
) -> PolicyChoice:
    """Choose a policy and threshold by the similarities of labelled queries.

    They are for a gate that decides by similarity alone: fit it with ``coverage=False``.

    The best balanced accuracy is reached at one similarity, which every policy can be moved to by
    a threshold. The policy that needs the smallest threshold is chosen, because its edge follows
    the corpus as that grows and the threshold does not.

    Parameters
    ----------
    candidates
        A fitted gate.
    positives, negatives
        Highest similarities of queries that the corpus answers, and of queries it does not; at
        least 5 of each.
    folds
        Folds of the cross-validation, >= 2; fewer are used if a side has fewer queries.
    seed
        Seed of the folds.

    Raises
    ------
    ValueError
        If there are too few queries, `folds` is below 2, or a similarity is not finite.
    """
    scores, labels = _join_labelled(positives, negatives)
    check_count(folds, "folds", 2)
    check_count(seed, "seed", 0)
    edges = _edges(candidates)
    parts = _folds(labels, folds, seed)
    held_out = np.zeros(labels.size, np.bool_)
    for part in range(parts.max() + 1):
        rest = parts != part
        policy, threshold = _best_policy(scores[rest], labels[rest], edges)
        held_out[~rest] = scores[~rest] >= edges[policy] + threshold
    policy, threshold = _best_policy(scores, labels, edges)
    now = scores >= candidates.levels.edge + candidates.threshold
    return PolicyChoice(
        policy=policy,
        threshold=threshold,
        balanced_accuracy=_balanced_accuracy(held_out, labels),
        uncorrected=_balanced_accuracy(now, labels),
    )


def _join_labelled(positives: npt.ArrayLike, negatives: npt.ArrayLike) -> tuple[Scores, Bools]:
    sides = {"positives": positives, "negatives": negatives}
    arrays = [np.asarray(values, np.float64).reshape(-1) for values in sides.values()]
    for name, values in zip(sides, arrays, strict=True):
        if values.size < LEAST_LABELLED:
            raise ValueError(f"{name}: at least {LEAST_LABELLED} queries, got {values.size}")
        if (bad := values[~np.isfinite(values)]).size:
            raise ValueError(
                f"{name}: similarities must be finite, got {bad[0]}: one is None where the "
                "retriever returned no passage, as below its min_similarity: measure without that"
            )
    labels = np.repeat([True, False], [values.size for values in arrays])
    return np.concatenate(arrays), labels


def _edges(candidates: VectorCandidates) -> dict[Policy, float]:
    """Return the edge of each policy that the fit has enough data for."""
    edges: dict[Policy, float] = {candidates.policy: candidates.levels.edge}
    for policy in STATISTICS:
        with suppress(ValueError):
            edges[policy] = candidates.with_policy(policy).levels.edge
    return edges


def _folds(labels: Bools, folds: int, seed: int) -> npt.NDArray[np.intp]:
    """Distribute both sides evenly over the folds."""
    rng = np.random.default_rng(seed)
    smaller = int(min(labels.sum(), (~labels).sum()))
    parts = np.zeros(labels.size, np.intp)
    for side in (labels, ~labels):
        rows = rng.permutation(np.flatnonzero(side))
        parts[rows] = np.arange(rows.size) % min(folds, smaller)
    return parts


def _best_policy(scores: Scores, labels: Bools, edges: dict[Policy, float]) -> tuple[Policy, float]:
    split = _best_split(scores, labels)
    policy = min(edges, key=lambda policy: abs(split - edges[policy]))
    return policy, split - edges[policy]


def _best_split(scores: Scores, labels: Bools) -> float:
    """Return the similarity with the best balanced accuracy; of several the middle one."""
    values = np.unique(scores)
    splits = np.concatenate([values[:1], (values[1:] + values[:-1]) / 2])
    positives, negatives = np.sort(scores[labels]), np.sort(scores[~labels])
    missed = np.searchsorted(positives, splits) / positives.size
    refused = np.searchsorted(negatives, splits) / negatives.size
    balanced = refused - missed
    best = np.flatnonzero(balanced >= balanced.max() - 1e-12)
    return float(splits[best[best.size // 2]])


def _balanced_accuracy(retrieved: Bools, labels: Bools) -> float:
    return float((retrieved[labels].mean() + (~retrieved[~labels]).mean()) / 2)

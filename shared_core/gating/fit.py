"""A retrieval gate fitted to passages without labels, or tuned by a few labelled queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Embed, Scores
from shared_core.checking import check_each
from shared_core.gating.candidates import ASKED, EVERYDAY_QUESTIONS, VectorCandidates, spread
from shared_core.gating.decision import Policy
from shared_core.gating.gate import ContextGate, Embedder
from shared_core.gating.prompts import Transform
from shared_core.gating.words import WordCoverage, plain_words, telling_words
from shared_core.index import HybridIndex
from shared_core.index.engine import Engine, tokenizer_of
from shared_core.types import Tokenizer

LEAST_LABELLED = 5
"""Fewest queries on each side of `choose_threshold`."""

Given: TypeAlias = tuple[Sequence[str], Sequence[str], npt.ArrayLike]
"""Passages: their ids, texts and vectors of shape (n, dim)."""


class FitArguments(TypedDict, total=False):
    """Keyword arguments of `fit_gate` that the gates of both frameworks pass on."""

    pseudo_queries: Sequence[tuple[str, str]] | None
    negatives: Sequence[str] | None
    policy: Policy
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
    policy: Policy = "calibrated",
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
        Pairs of a passage's id and a question it answers; by default the key phrases
        (`telling_words`) of 1,000 passages, evenly spread. A passage may have none.
    negatives
        At least 10 questions that the passages do not answer, instead of `EVERYDAY_QUESTIONS`,
        which are English: give some of each other language that is asked.
    policy, threshold
        As in `VectorCandidates`.
    transform
        As in `ContextGate`. Pseudo-queries and negatives go through it, too, one after another:
        HyDE, for one, makes every query similar to passages. Where it asks a model, give
        `pseudo_queries` of some hundred passages, as only their median counts.
    coverage
        Whether the query's words count in addition to its similarity; see `WordCoverage`. None:
        where the policy is calibrated. The paper's policies know similarities alone, and so does
        `choose_threshold`.
    tokenizer
        Text to words, for the key phrases and the coverage; None: runs of word characters. A
        language without spaces between words needs one.

    Raises
    ------
    ValueError
        As `VectorCandidates.fit`, and if there are no passages, a pseudo-query is not a pair, or
        `negatives` is one text.
    """
    if not ids:
        raise ValueError("a gate is fitted on passages, and there are none: add them first")
    foreign = check_each(EVERYDAY_QUESTIONS if negatives is None else negatives, "negatives", str)
    for at, pair in enumerate(pseudo_queries or ()):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(
                f"pseudo_queries[{at}] must be the id of a passage and a question, got {pair!r}"
            )
    words = WordCoverage.of(texts, plain_words if tokenizer is None else tokenizer)
    if pseudo_queries is None:
        rows = spread(len(ids), ASKED).tolist()
        pseudo_queries = [(ids[row], telling_words(texts[row], words)) for row in rows]
    questions = [text for _, text in pseudo_queries]
    if transform is not None:
        questions = [transform(text) for text in questions]
        foreign = [transform(text) for text in foreign]
    candidates = VectorCandidates.fit(
        ids,
        vectors,
        [owner for owner, _ in pseudo_queries],
        embed(questions) if questions else [],
        embed,
        negatives=foreign,
        policy=policy,
        threshold=threshold,
    )
    if coverage is None:
        coverage = policy == "calibrated"
    return ContextGate(
        candidates=candidates, transform=transform, coverage=words if coverage else None
    )


def fit_behind(
    engine: Engine | None,
    given: Given | None,
    embedder: Embedder,
    *,
    verify: bool,
    missing: str,
    **fit: Unpack[FitArguments],
) -> ContextGate:
    """Fit a gate on passages, by default on those of a `shared_core.HybridIndex`.

    Parameters
    ----------
    engine
        What is searched: an engine, or None where it is not known.
    given
        The passages; None: those of the index, whose vectors are taken as they are.
    embedder
        The embedding model.
    verify
        Whether to check that it is the model of the index.
    missing
        What to say if there are neither passages nor an index.
    **fit
        As in `fit_gate`; `tokenizer` is by default that of the engine, if it has a custom one.

    Raises
    ------
    ValueError
        As `fit_gate`, and if there is nothing to fit on.
    EmbeddingMismatchError
        If `embedder` is not the model of the index.
    """
    if engine is not None:
        fit.setdefault("tokenizer", tokenizer_of(engine))
    if given is None:
        if not isinstance(engine, HybridIndex):
            raise ValueError(missing)
        if verify:
            engine.verify_embeddings(lambda text: embedder.texts([text])[0])
        passages, stored = engine.embedded()
        given = [each.id for each in passages], [each.text for each in passages], stored
    ids, texts, vectors = given
    return fit_gate(ids, texts, vectors, embedder.queries, **fit)


def choose_threshold(
    candidates: VectorCandidates, positives: npt.ArrayLike, negatives: npt.ArrayLike
) -> tuple[float, float]:
    """Choose a threshold for the policy of a gate by the similarities of labelled queries.

    It is for a gate that decides by similarity alone: fit it with ``coverage=False``.

    Parameters
    ----------
    candidates
        A fitted gate; its own threshold does not count.
    positives, negatives
        Highest similarities of queries that the corpus answers, and of queries it does not; at
        least 5 of each.

    Returns
    -------
    tuple of float
        The threshold, and its balanced accuracy on these queries: the mean of recall and
        specificity, in [0, 1]; 0.5 is chance. It is not cross-validated: on other queries expect
        less, the fewer these are.

    Raises
    ------
    ValueError
        If there are too few queries, or a similarity is not finite.
    """
    scores, labels = _join_labelled(positives, negatives)
    split = _best_split(scores, labels)
    retrieved = scores >= split
    accuracy = float((retrieved[labels].mean() + (~retrieved[~labels]).mean()) / 2)
    return split - candidates.edge, accuracy


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

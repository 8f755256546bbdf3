"""Fitting a retrieval gate in one step, from a retriever's passages and its embedding model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypedDict, Unpack

import numpy.typing as npt

from shared_core.arrays import Embed, Vectors
from shared_core.checking import check_several
from shared_core.gating.candidates import ASKED, EVERYDAY_QUESTIONS, VectorCandidates, spread
from shared_core.gating.decision import Policy
from shared_core.gating.gate import ContextGate
from shared_core.gating.prompts import Transform
from shared_core.gating.words import WordCoverage, plain_words, telling_words
from shared_core.types import Passage, Tokenizer


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
        Questions that the passages do not answer, instead of `EVERYDAY_QUESTIONS`.
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

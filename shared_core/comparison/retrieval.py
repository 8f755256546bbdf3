"""The passages that each question is answered from, by pipeline and number of passages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from time import perf_counter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Embed
from shared_core.comparison.questions import ComparisonData, Question, RankedCase
from shared_core.comparison.result import Layout, setting_name
from shared_core.generation.templates import PromptTemplate
from shared_core.index import HybridIndex, PassageIndex
from shared_core.neighbour_spans import (
    ChunkKeys,
    NeighbourSpans,
    PassageNeighbours,
    Span,
    expand_passages,
)
from shared_core.neighbour_spans.budget import admit_chunks
from shared_core.placement import Place
from shared_core.scoring.fusion import Alpha
from shared_core.selection import chosen
from shared_core.sensitivity.questions import check_repeats
from shared_core.tokens import estimate_tokens
from shared_core.types import Passage
from shared_core.wording import counted

SPANNED = "+spans"
"""Ends the name of such a pipeline; and the key under which a span's metadata name its passages."""

KEYS = ChunkKeys()
"""Where a passage of a comparison says what it is a part of."""


GIVEN = "given"

SPARSE = "sparse"

ALPHAS: Mapping[str, Alpha] = {"dense": 1.0, "hybrid": None}
"""Weight of the dense leg by pipeline."""

PIPELINES = (GIVEN, "dense", SPARSE, "hybrid")

RERANKED, DISTINCT, PER_SOURCE = "+rerank", "+distinct", "+per_source"

STEPS = (RERANKED, DISTINCT, PER_SOURCE, SPANNED)
"""Any may follow the name of a pipeline, in this order: a reranker, near-duplicates out, one
passage per document, neighbours."""

ALIKE = 0.95
"""Share of their words from which two passages are near-duplicates."""

DEFAULT_K = 10
"""Default number of passages, where there are as many."""

FETCHED = 50
"""Depth of each leg's search before fusion, and of the ranking that steps are taken on."""

Reranker: TypeAlias = Callable[[str, Sequence[str]], Sequence[float]]
"""(question, texts) -> relevance of each text; higher is better."""


def neighbours_of(passages: Sequence[Passage]) -> PassageNeighbours:
    """Return the neighbours among the passages of a collection.

    Raises
    ------
    ValueError
        If a passage does not give its place in its document.
    """
    for passage in passages:
        if KEYS.numbered(passage) is None:
            raise ValueError(
                f'{SPANNED} needs the fields "document" and "number" of every passage (doc_id and '
                f"chunk_id in its metadata); passage {passage.id!r} has {dict(passage.metadata)}"
            )
    return PassageNeighbours(passages, KEYS)


def as_spans(case: RankedCase, neighbours: PassageNeighbours, method: NeighbourSpans) -> RankedCase:
    """Return a case whose passages are spans with their neighbours, the best span first.

    A span has the ids of its passages, joined by ``+``, and names them in its metadata. Its score
    is the one that spans are ranked by.
    """
    ranks = range(len(case.passages), 0, -1)
    scores = ranks if method.token_budget is None else case.relevance
    spans = expand_passages(case.passages, scores, method, KEYS, neighbours)[0].spans
    return replace(
        case,
        passages=tuple(map(_passage, spans)),
        scores=tuple(span.score.total for span in spans),
    )


def fitting(case: RankedCase, token_budget: int) -> RankedCase:
    """Return a case with the passages that fit into a budget, best first."""
    chunks = [*map(KEYS.chunk, case.passages)]
    kept = admit_chunks(chunks, {}, lambda piece: estimate_tokens(piece[0].text), token_budget)
    return case.at(rank for rank, chunk in enumerate(chunks) if chunk.id in kept)


def members(passage: Passage) -> Sequence[str]:
    """Return the ids of the passages of a span; for any other passage, its own id."""
    found: Sequence[str] = passage.metadata.get(SPANNED, (passage.id,))
    return found


def _passage(span: Span) -> Passage:
    ids, (document, number) = [chunk.id for chunk in span.chunks], span.chunks[0].place
    return Passage(
        "+".join(ids), span.text, {SPANNED: ids, KEYS.document: document, KEYS.number: number}
    )


def places_of(passages: Sequence[Passage]) -> list[Place]:
    """Return document and number of each passage; one without them is its own document."""
    return [KEYS.chunk(passage).place for passage in passages]


def parse_pipeline(name: str) -> tuple[str, tuple[str, ...]]:
    """Return where the passages of a pipeline come from, in `PIPELINES`, and its steps, in `STEPS`.

    Raises
    ------
    ValueError
        If there is no pipeline of that name.
    """
    base, *named = name.split("+")
    steps = tuple(step for step in STEPS if step[1:] in named)
    if base not in PIPELINES or name != base + "".join(steps):
        raise ValueError(
            f"no pipeline {name!r}; there are {', '.join(PIPELINES)}, each also with some of "
            f"{', '.join(STEPS)}, in this order"
        )
    return base, steps


@dataclass(frozen=True, kw_only=True)
class RetrievalSetting:
    """The passages of one pipeline and one k, question by question, best first.

    Strategies are compared within one.
    """

    pipeline: str
    k: int
    cases: tuple[RankedCase, ...]
    layout: Layout = "after"

    @property
    def name(self) -> str:
        """Pipeline, k and layout, for a person."""
        return setting_name(self.pipeline, self.k, self.layout)

    def laid_out(self, layout: Layout, template: PromptTemplate) -> RetrievalSetting:
        """Return the same in another prompt."""
        cases = tuple(replace(case, template=template) for case in self.cases)
        return replace(self, cases=cases, layout=layout)


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """Ranks the passages of some data for its questions.

    Attributes
    ----------
    data
        Questions and passages.
    embed
        For the pipelines with a dense leg.
    reranker
        For the pipelines with ``+rerank``.
    token_budget
        Most tokens of the passages of a prompt (`estimate_tokens`); None: no limit.
    seconds
        Step -> median time it took for a question; of several pipelines the longest, as a reranker
        may know what it has scored. `settings` fills it.
    """

    data: ComparisonData
    embed: Embed | None
    reranker: Reranker | None
    token_budget: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def settings(
        self, pipelines: Sequence[str] | None, ks: Sequence[int] | None
    ) -> tuple[RetrievalSetting, ...]:
        """Retrieve for every pipeline and k.

        Parameters
        ----------
        pipelines
            Names; if None, ``"given"`` where every question has documents, else ``"hybrid"``.
        ks
            Numbers of passages; there may be fewer spans, since passages that touch are joined. If
            None, `DEFAULT_K`, or as many as every pipeline finds for some question.

        Raises
        ------
        ValueError
            If there is no pipeline, or one needs what is not given, or finds the same for two
            questions with the same answers; if no question has two passages, or as many as the
            largest k, which would repeat a smaller one under another name.
        """
        questions = self.data.questions
        if pipelines is None:
            pipelines = (GIVEN,) if all(each.ranking for each in questions) else ("hybrid",)
        retrieving = [name for name in pipelines if parse_pipeline(name)[0] != GIVEN]
        if retrieving:
            _check_retrievable(retrieving[0], questions)
        # A smaller k is the beginning of the largest one's ranking.
        most = DEFAULT_K if ks is None else max(ks)
        ranked = {name: self.rankings(name, most) for name in pipelines}
        return tuple(
            RetrievalSetting(
                pipeline=name,
                k=k,
                cases=tuple(self._expanded(name, [each.top(k) for each in rankings])),
            )
            for name, rankings in ranked.items()
            for k in _reached(ranked, ks)
        )

    def rankings(self, pipeline: str, k: int) -> list[RankedCase]:
        """Return the best `k` passages of each question, not expanded, or as many as there are.

        Raises
        ------
        ValueError
            If the pipeline needs what is not given, or the reranker does not return one number
            per text.
        """
        base, steps = parse_pipeline(pipeline.removesuffix(SPANNED))
        if PER_SOURCE in steps and not any(map(KEYS.document_of, self.data.passages)):
            raise ValueError(
                f'{PER_SOURCE} needs the field "document" of the passages, and none has it; '
                f"passage {self.data.passages[0].id!r} has {dict(self.data.passages[0].metadata)}"
            )
        found = self._found(base, max(k, FETCHED) if steps else k)
        for step in steps:
            found = self._timed(step, partial(self._taken, step), found)
        return [case.top(k) for case in found]

    def _taken(self, step: str, case: RankedCase) -> RankedCase:
        if step == RERANKED:
            return self._reranked(case)
        distinct, per_source = (ALIKE, None) if step == DISTINCT else (None, 1)
        return case.at(chosen(case.passages, len(case.passages), distinct, per_source, None, KEYS))

    def _reranked(self, pool: RankedCase) -> RankedCase:
        if self.reranker is None:
            raise ValueError(f"{RERANKED} needs a reranker; give one (reranker=, or --reranker)")
        scores = np.asarray(self.reranker(pool.question, pool.documents), np.float64)
        there = len(pool.passages)
        if scores.shape != (there,) or not np.isfinite(scores).all():
            raise ValueError(
                f"the reranker must return one finite number for each of {there} texts, "
                f"got shape {scores.shape}"
            )
        order = np.argsort(-scores, kind="stable")
        return replace(pool.at(order), scores=tuple(scores[order].tolist()))

    def _expanded(self, pipeline: str, rankings: list[RankedCase]) -> list[RankedCase]:
        if pipeline.endswith(SPANNED):
            spans = NeighbourSpans(token_budget=None)
            if self.token_budget is not None:
                spans = NeighbourSpans(window="auto", token_budget=self.token_budget)
            neighbours = self._neighbours
            return self._timed(SPANNED, lambda case: as_spans(case, neighbours, spans), rankings)
        if self.token_budget is None:
            return rankings
        return [fitting(case, self.token_budget) for case in rankings]

    def _timed(
        self, step: str, take: Callable[[RankedCase], RankedCase], cases: Sequence[RankedCase]
    ) -> list[RankedCase]:
        """Take a step for each question, and note how long it takes."""
        taken, times = [], [perf_counter()]
        for case in cases:
            taken.append(take(case))
            times.append(perf_counter())
        self.seconds[step] = max(self.seconds.get(step, 0.0), float(np.median(np.diff(times))))
        return taken

    def _found(self, base: str, k: int) -> list[RankedCase]:
        if base == GIVEN:
            return [self._given(question, k) for question in self.data.questions]
        if base == SPARSE:
            return [self._by_words(text, k) for text in self._texts]
        ranked = self._index.search_batch(
            self._texts, self._vectors, k=k, fetch_k=FETCHED, alpha=ALPHAS[base]
        )
        return [
            RankedCase(question=text, passages=tuple(each.passages), scores=tuple(each.scores))
            for text, each in zip(self._texts, ranked, strict=True)
        ]

    def _given(self, question: Question, k: int) -> RankedCase:
        if not question.ranking:
            raise ValueError(
                f"pipeline 'given' takes each question's own documents, and "
                f"{question.question!r} has none"
            )
        passages = tuple(self.data.by_id[id] for id in question.ranking[:k])
        return RankedCase(question=question.question, passages=passages)

    def _by_words(self, text: str, k: int) -> RankedCase:
        found = self._words.best(text, k)
        return RankedCase(
            question=text,
            passages=tuple(passage for passage, _ in found),
            scores=tuple(score for _, score in found),
        )

    @property
    def _texts(self) -> list[str]:
        return [question.question for question in self.data.questions]

    @cached_property
    def _neighbours(self) -> PassageNeighbours:
        return neighbours_of(self.data.passages)

    @cached_property
    def _words(self) -> PassageIndex:
        index = PassageIndex()
        index.add(self.data.passages)
        return index

    @cached_property
    def _index(self) -> HybridIndex:
        index = HybridIndex()
        index.add(self.data.passages, self._embedded([each.text for each in self.data.passages]))
        return index

    @cached_property
    def _vectors(self) -> npt.NDArray[np.float32]:
        return self._embedded(self._texts)

    def _embedded(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        if self.embed is None:
            raise ValueError(
                "pipelines with a dense leg need embed=, a function from texts to vectors; "
                f"{SPARSE!r} does not"
            )
        return np.asarray(self.embed(texts), np.float32)


def _check_retrievable(pipeline: str, questions: Sequence[Question]) -> None:
    """Raise ValueError if only their given passages tell two questions apart."""
    try:
        check_repeats((each.question, frozenset(each.answers)) for each in questions)
    except ValueError as error:
        raise ValueError(
            f"{error}, or compare over {GIVEN!r} alone: {pipeline!r} finds the same for both"
        ) from error


def _reached(ranked: Mapping[str, Sequence[RankedCase]], ks: Sequence[int] | None) -> Sequence[int]:
    """Return the numbers of passages; raise ValueError if a pipeline never finds as many."""
    longest = {name: max(len(each.passages) for each in found) for name, found in ranked.items()}
    name = min(longest, key=longest.__getitem__)
    there = longest[name]
    if ks is None:
        ks = (max(2, min(DEFAULT_K, there)),)
    if there < max(ks):
        raise ValueError(
            f"k={max(ks)} (--k), but no question has more than {counted(there, 'passage')} ({name})"
        )
    return ks

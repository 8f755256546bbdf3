"""What a model attends to by position: figures 2 and 3 of GoodPositions, for any local model.

Every question is read twice, as the paper reads its benchmarks: *unordered*, with its passages
shuffled, and *ordered*, the most relevant next to the question. The same answers give the document
scores (section 3.3) and the positional curve (section 4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from shared_core.arrays import Scores
from shared_core.attention.reading import POSITIONAL, answer_with_attention
from shared_core.attention.rendering import RenderedPrompt, render_prompt
from shared_core.attention.scores import LayerSet, RowSet, document_scores
from shared_core.checking import check_count, check_fractions
from shared_core.evaluation.intervals import bootstrap_interval
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.sensitivity.curve import PositionalCurve
from shared_core.sensitivity.provenance import provenance
from shared_core.sensitivity.questions import ProbeQuestion, check_context, check_questions
from shared_core.sensitivity.records import Interval
from shared_core.sensitivity.region import TENTHS, over_middle, relative_scores

Order = Literal["unordered", "ordered"]
READ: tuple[tuple[RowSet, LayerSet], ...] = (
    ("answer", "all"),
    ("answer", "lower"),
    ("answer", "upper"),
    ("edges", "lower"),
)
"""Rows and layers of the document scores: those of figures 2a, 2b (two) and 3."""

POINTS = 100
"""Parts of a curve: fine enough for a document of 1 % of the region."""

BAND_RESAMPLES = 1_000
"""Resamples for each point of a band: enough for a drawing, on which no decision rests."""


@dataclass(frozen=True, kw_only=True)
class DocumentScores:
    """Document scores (eq. 2) by position, averaged over questions.

    Attributes
    ----------
    mean
        Score of the document in each position, first position first, in [0, 1]; higher is more
        attended.
    band
        Interval (lower, upper) of each separately.
    """

    mean: tuple[float, ...]
    band: tuple[Interval, ...]


@dataclass(frozen=True, kw_only=True)
class AttentionByPosition:
    """Where a model looked while it answered.

    Attributes
    ----------
    documents
        Document scores by order, rows and layers. Figure 2 shows those of the answer's rows:
        ``"all"`` layers of both orders, and both halves of the unordered one; figure 3 those of
        the ``"edges"``, t_b and t_e, in the lower layers.
    curves
        The same edges by order, token by token over the document region.
    """

    documents: Mapping[tuple[Order, RowSet, LayerSet], DocumentScores]
    curves: Mapping[Order, PositionalCurve]

    @property
    def curve(self) -> PositionalCurve:
        """The curve to place by: the unordered one, which does not depend on relevance."""
        return self.curves["unordered"]


def attention_by_position(
    model: HuggingFaceModel,
    questions: Sequence[ProbeQuestion],
    *,
    k: int = 10,
    template: PromptTemplate | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    task: str | None = None,
    on_answer: Callable[[int], None] | None = None,
) -> AttentionByPosition:
    """Read where a model looks while it answers, by position in the prompt.

    Unordered, the gold passage is in each position equally often, and the others are shuffled.
    Ordered, it comes last, after the distractors, of which the first is nearest to it: the order of
    a question's passages is taken as their ranking. Intervals are `bootstrap_interval` over
    questions.

    Parameters
    ----------
    model
        A local model. Each question costs it two answers.
    questions
        What to ask, as for `Probe`; at least 2.
    k
        Number of passages in the context, >= 3.
    template
        The prompt; that of the probe by default.
    confidence, seed
        Coverage of the intervals, and the seed of the shuffling and the resampling.
    task
        Kind of questions, for the record.
    on_answer
        Called with the number of prompts that have been answered since the last call.

    Raises
    ------
    ValueError
        If `k` is below 3, there are fewer than 2 questions, one cannot be asked, or a prompt is
        longer than the model's context; before anything is answered.
    GenerationError
        If the model's attention cannot be read.
    """
    check_context(k)
    check_count(seed, "seed", 0)
    check_fractions({"confidence": confidence})
    check_questions(questions, k)
    if len(questions) < 2:
        raise ValueError(f"an interval needs at least 2 questions, got {len(questions)}")
    chosen = ANSWER if template is None else template
    prompts = {
        order: _prompts(model, chosen, questions, arranged)
        for order, arranged in _arranged(questions, k, seed).items()
    }
    documents: dict[tuple[Order, RowSet, LayerSet], DocumentScores] = {}
    curves: dict[Order, PositionalCurve] = {}
    for order, asked in prompts.items():
        scores, regions = _read(model, asked, on_answer or (lambda count: None))
        for (rows, layers), values in scores.items():
            documents[order, rows, layers] = DocumentScores(
                mean=tuple(values.mean(axis=0).tolist()), band=_band(values, confidence, seed)
            )
        curves[order] = replace(
            _curve(model.name, relative_scores(regions, POINTS), confidence, seed),
            **provenance(k=k, template=chosen, task=task, seed=seed, identity=model.fingerprint),
        )
    return AttentionByPosition(documents=documents, curves=curves)


def _arranged(
    questions: Sequence[ProbeQuestion], k: int, seed: int
) -> dict[Order, list[list[str]]]:
    rng = np.random.default_rng(seed)
    slots = rng.permutation(len(questions)) % k
    unordered, ordered = [], []
    for question, slot in zip(questions, slots.tolist(), strict=True):
        ranked = question.passages(0, k)
        others = [ranked[1:][at] for at in rng.permutation(k - 1)]
        unordered.append([*others[:slot], question.gold, *others[slot:]])
        ordered.append(ranked[::-1])
    return {"unordered": unordered, "ordered": ordered}


def _prompts(
    model: HuggingFaceModel,
    template: PromptTemplate,
    questions: Sequence[ProbeQuestion],
    arranged: Sequence[Sequence[str]],
) -> list[RenderedPrompt]:
    prompts = [
        render_prompt(model.encoder, template, passages, question.question)
        for question, passages in zip(questions, arranged, strict=True)
    ]
    model.check_room([prompt.ids for prompt in prompts], room=[model.max_new_tokens] * len(prompts))
    return prompts


def _read(
    model: HuggingFaceModel,
    prompts: Sequence[RenderedPrompt],
    on_answer: Callable[[int], None],
) -> tuple[dict[tuple[RowSet, LayerSet], Scores], list[Scores]]:
    """Return document scores, shape (n, k), and the positional scores of each prompt's region."""
    documents: dict[tuple[RowSet, LayerSet], list[Scores]] = {read: [] for read in READ}
    regions = []
    for start in range(0, len(prompts), model.batch_size):
        batch = prompts[start : start + model.batch_size]
        readings = answer_with_attention(
            model, [prompt.ids for prompt in batch], wanted=[*READ, POSITIONAL]
        )
        for prompt, reading in zip(batch, readings, strict=True):
            begin, end = prompt.region
            regions.append(reading.scores[POSITIONAL][begin:end])
            for read, rows in documents.items():
                rows.append(document_scores(reading.scores[read], prompt.contents))
        on_answer(len(batch))
    return {read: np.array(rows) for read, rows in documents.items()}, regions


def _curve(model: str, rows: Scores, confidence: float, seed: int) -> PositionalCurve:
    """Average curves of single prompts, shape (n, points), and add confidence intervals."""
    tenths = relative_scores(list(rows), TENTHS)
    intervals = {
        end: bootstrap_interval(
            tenths / tenths.max(),
            lambda means, end=end: over_middle(means)[end],  # type: ignore[misc]
            confidence=confidence,
            seed=seed,
        )
        for end in over_middle(tenths)
    }
    return PositionalCurve(
        model=model,
        scores=tuple(rows.mean(axis=0).tolist()),
        n=len(rows),
        band=_band(rows, confidence, seed),
        intervals=intervals,
        confidence=confidence,
    )


def _band(rows: Scores, confidence: float, seed: int) -> tuple[Interval, ...]:
    """Interval of each column's mean separately."""
    band = []
    for column in rows.T:
        most = float(column.max()) or 1.0
        lower, upper = bootstrap_interval(
            column[:, None] / most,
            lambda means: means[:, 0],
            confidence=confidence,
            resamples=BAND_RESAMPLES,
            seed=seed,
        )
        band.append((lower * most, upper * most))
    return tuple(band)

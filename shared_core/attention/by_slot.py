"""How much attention a passage gets in each position of the prompt.

For figures 2 and 3 of GoodPositions every question is read twice, as the paper reads its
benchmarks: *unordered*, with its passages shuffled, and *ordered*, the most relevant next to the
question. The same answers give the document scores (section 3.3) and the positional curve (section
4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from shared_core.arrays import Scores
from shared_core.attention.prompt import RenderedPrompt, render_prompt
from shared_core.attention.reading import POSITIONAL, answer_with_attention, in_batches
from shared_core.attention.relevance import LayerSet, Recorded, RowSet, document_scores
from shared_core.checking import check_count, check_fractions
from shared_core.evaluation.intervals import bootstrap_interval
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.sensitivity.curve import TENTHS, PositionalCurve, over_middle, relative_scores
from shared_core.sensitivity.position_sensitivity import index_interval
from shared_core.sensitivity.profile import PositionProfile
from shared_core.sensitivity.questions import (
    ProbeQuestion,
    check_context,
    check_questions,
    mean_tokens,
)
from shared_core.sensitivity.records import Interval, provenance

Order = Literal["unordered", "ordered"]
READ: tuple[Recorded, ...] = (
    ("answer", "all"),
    ("answer", "lower"),
    ("answer", "upper"),
    POSITIONAL,
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
    _check(questions, k, confidence, seed)
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
        read = in_batches(partial(_read, model), asked, model, on_answer)
        for number, (rows, layers) in enumerate(READ):
            values = np.array([scores[number] for scores, _ in read])
            documents[order, rows, layers] = DocumentScores(
                mean=tuple(values.mean(axis=0).tolist()), band=_band(values, confidence, seed)
            )
        regions = relative_scores([region for _, region in read], POINTS)
        curves[order] = replace(
            _curve(model.name, regions, confidence, seed),
            **provenance(k=k, template=chosen, task=task, seed=seed, identity=model.fingerprint),
        )
    return AttentionByPosition(documents=documents, curves=curves)


def attention_profile(
    model: HuggingFaceModel,
    questions: Sequence[ProbeQuestion],
    *,
    k: int = 10,
    template: PromptTemplate | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    task: str | None = None,
    on_answer: Callable[[int], None] | None = None,
) -> PositionProfile:
    """Return the share of attention that the gold passage gets in each slot.

    The passage visits every slot as in `Probe`. Its value there is its part of the attention that
    the answer's tokens give to all passages, by mean over tokens, heads and all layers
    (GoodPositions, eqs. 1 and 2). No grading: a model may look where it does not read.

    Parameters
    ----------
    model
        A local model.
    questions
        What to ask, as for `Probe`.
    k
        Number of passages in the context, >= 3.
    template
        The prompt; that of the probe by default.
    confidence, seed
        Coverage of the index's bootstrap interval, and the seed of its resampling.
    task
        Kind of questions, for the record.
    on_answer
        Called with the number of prompts that have been read since the last call.

    Raises
    ------
    ValueError
        If `k` is below 3, or a question cannot be asked.
    GenerationError
        If the model's attention cannot be read.
    """
    _check(questions, k, confidence, seed)
    chosen = ANSWER if template is None else template
    rows = []
    for question in questions:
        turned = [question.passages(slot, k) for slot in range(k)]
        rows.append(_shares(model, _prompts(model, chosen, [question] * k, turned)))
        if on_answer is not None:
            on_answer(k)
    values = np.array(rows)
    return PositionProfile(
        model=model.name,
        accuracy=tuple(values.mean(axis=0).tolist()),
        interval=index_interval(values, range(k), k, confidence=confidence, seed=seed),
        n=len(values),
        source="posrag probe",
        outcomes=tuple(tuple(row) for row in values.tolist()),
        confidence=confidence,
        measure="attention",
        tokens=mean_tokens(questions, k),
        window=model.window,
        **provenance(k=k, template=chosen, task=task, seed=seed, identity=model.fingerprint),
    )


def _check(questions: Sequence[ProbeQuestion], k: int, confidence: float, seed: int) -> None:
    check_context(k)
    check_count(seed, "seed", 0)
    check_fractions({"confidence": confidence})
    check_questions(questions, k)


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
    model: HuggingFaceModel, prompts: Sequence[RenderedPrompt]
) -> list[tuple[list[Scores], Scores]]:
    """Return of each prompt the document scores by `READ`, and the region's positional scores."""
    readings = answer_with_attention(model, prompts, wanted=READ)
    return [
        (
            [document_scores(reading.scores[read], prompt.contents) for read in READ],
            reading.scores[POSITIONAL][slice(*prompt.region)],
        )
        for prompt, reading in zip(prompts, readings, strict=True)
    ]


def _shares(model: HuggingFaceModel, prompts: Sequence[RenderedPrompt]) -> list[float]:
    """Return the gold passage's part of the attention; it is in slot 0, 1, ... of the prompts."""
    wanted: Recorded = ("answer", "all")
    shares = []
    readings = answer_with_attention(model, prompts, wanted=[wanted])
    for slot, (prompt, reading) in enumerate(zip(prompts, readings, strict=True)):
        scores = document_scores(reading.scores[wanted], prompt.contents)
        shares.append(float(scores[slot] / scores.sum()))
    return shares


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

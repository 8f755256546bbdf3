"""The position profile by attention: how much attention a passage gets in each slot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from shared_core.attention.reading import answer_with_attention
from shared_core.attention.rendering import RenderedPrompt, render_prompt
from shared_core.attention.scores import document_scores
from shared_core.checking import check_count, check_fractions
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.sensitivity import ANSWER, PositionProfile, ProbeQuestion, PromptTemplate
from shared_core.sensitivity.position_sensitivity import index_interval
from shared_core.sensitivity.provenance import provenance
from shared_core.sensitivity.questions import check_context, check_questions


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
    check_context(k)
    check_count(seed, "seed", 0)
    check_fractions({"confidence": confidence})
    check_questions(questions, k)
    chosen = ANSWER if template is None else template
    rows = []
    for question in questions:
        prompts = [
            render_prompt(model.encoder, chosen, question.passages(slot, k), question.question)
            for slot in range(k)
        ]
        rows.append(_shares(model, prompts))
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
        **provenance(k=k, template=chosen, task=task, seed=seed, identity=model.fingerprint),
    )


def _shares(model: HuggingFaceModel, prompts: Sequence[RenderedPrompt]) -> list[float]:
    readings = answer_with_attention(
        model, [prompt.ids for prompt in prompts], wanted=[("answer", "all")]
    )
    shares = []
    for slot, (prompt, reading) in enumerate(zip(prompts, readings, strict=True)):
        scores = document_scores(reading.scores["answer", "all"], prompt.contents)
        shares.append(float(scores[slot] / scores.sum()))
    return shares

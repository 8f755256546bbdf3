"""The probe of a model on this machine."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from shared_core.sensitivity import Probe, ProbeQuestion
from tests.core.attention.readers import reader


@pytest.mark.parametrize("measure", ["accuracy", "logprob"])
def test_a_prompt_that_is_too_long_is_named_before_anything_is_asked(measure: str) -> None:
    """By its question, though it would be asked last."""
    filler = ("one.", "two.", "three.")
    questions = [
        ProbeQuestion(question=f"q{at}?", answers=("a",), gold=gold, distractors=filler)
        for at, gold in enumerate(["short."] * 40 + ["The code of old tower is lamp. " * 90])
    ]
    asked: list[int] = []
    message = r"question 'q40\?': prompt 0 has \d+ tokens, .*more than the 512 that biased reads"
    with pytest.raises(ValueError, match=message):
        Probe(k=3, measure=measure).run(reader(), questions, on_answer=asked.append)  # type: ignore[arg-type]
    assert asked == []

"""What a model attends to by position: the arrangements, the numbers, the pictures."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")


from shared_core.attention import (
    attention_by_position,
    attention_profile,
    draw_document_scores,
    draw_positional_curve,
)
from shared_core.attention.by_slot import READ, AttentionByPosition, _arranged
from shared_core.attention.prompt import render_prompt
from shared_core.attention.reading import answer_with_attention
from shared_core.attention.relevance import document_scores
from shared_core.sensitivity import ANSWER, ProbeQuestion, PromptTemplate, read_questions
from shared_core.sensitivity.curve import relative_scores
from tests.core.attention.readers import READERS, reader


def questions(n: int) -> list[ProbeQuestion]:
    return read_questions(READERS / "questions.jsonl")[:n]


@cache
def measured(name: str, n: int, k: int = 10) -> AttentionByPosition:
    return attention_by_position(reader(name), questions(n), k=k)


def test_gold_stands_everywhere_equally_often_among_shuffled_passages() -> None:
    """Unordered, position would otherwise be confounded with relevance; ordered, it stands last."""
    asked, k = questions(20), 5
    arranged = _arranged(asked, k, seed=0)
    slots, moved = [], 0
    for question, shuffled, ordered in zip(asked, *arranged.values(), strict=True):
        ranked = [question.gold, *question.distractors[: k - 1]]
        assert ordered == ranked[::-1]
        assert sorted(shuffled) == sorted(ranked)
        slots.append(shuffled.index(question.gold))
        moved += [text for text in shuffled if text != question.gold] != ranked[1:]
    assert Counter(slots) == dict.fromkeys(range(k), 4)
    assert slots != sorted(slots)
    assert moved > 15


def test_the_numbers_are_those_of_the_attention_that_is_read() -> None:
    """Ordered, where nothing is drawn: eq. 2 over rows and layers, and the curve's scores."""
    asked, k, model = questions(2), 4, reader("uniform")
    template = PromptTemplate(ANSWER.text, separator=" Nobody knows why. ")  # no passage's own
    found = attention_by_position(model, asked, k=k, template=template)
    prompts = [
        render_prompt(model.encoder, template, [*each.distractors[2::-1], each.gold], each.question)
        for each in asked
    ]
    readings = answer_with_attention(model, prompts, wanted=READ)
    assert {*READ} >= {("answer", layers) for layers in ("all", "lower", "upper")}
    for rows, layers in READ:
        values = [
            [reading.scores[rows, layers][slice(*span)].mean() for span in prompt.contents]
            for prompt, reading in zip(prompts, readings, strict=True)
        ]
        got = found.documents["ordered", rows, layers].mean
        assert got == pytest.approx(np.mean(values, axis=0), abs=1e-6)
    regions = [
        reading.scores["edges", "lower"][slice(*prompt.region)]
        for prompt, reading in zip(prompts, readings, strict=True)
    ]
    expected = relative_scores(regions, 100).mean(axis=0)
    assert found.curves["ordered"].scores == pytest.approx(expected, rel=1e-4)
    assert found.curve is found.curves["unordered"], "which owes nothing to relevance"
    assert (found.curve.n, found.curve.k, found.curve.template) == (2, k, template.text)


@pytest.mark.parametrize("name", ["biased", "uniform"])
def test_the_biased_readers_curve_is_a_u_and_the_other_ones_flat(name: str) -> None:
    """By intervals that leave out 1 by far, or have no room for a large difference.

    Ordered, the best passage adds to the end alone, which is section 4's reason to place by the
    curve: for the rest it is what the positions get.
    """
    found = measured(name, 100)
    intervals, ordered = found.curve.intervals, found.curves["ordered"]
    assert {*intervals} == {"start", "end", "edges"}
    assert all(low < getattr(found.curve, end) < high for end, (low, high) in intervals.items())
    for scores in found.documents.values():
        inside = zip(scores.mean, scores.band, strict=True)
        assert all(lower <= value <= upper for value, (lower, upper) in inside)
    assert intervals["start"][0] < ordered.start < intervals["start"][1]
    assert ordered.end > intervals["end"][1]
    if name == "uniform":
        assert all(0.7 < lower < 1 < upper < 1.3 for lower, upper in intervals.values())
    else:
        assert min(intervals["start"][0], intervals["end"][0]) > 1.2
        everything = found.documents["unordered", "answer", "all"].mean
        assert min(everything[0], everything[-1]) > 1.4 * max(everything[1:-1])


def test_bad_input_is_named_before_anything_is_answered() -> None:
    """A prompt that is too long among them, though the first ones are not."""
    model, seen, three = reader("uniform"), [], questions(3)
    long = replace(three[2], gold="The code of old tower is lamp. " * 90)
    cases: list[tuple[Any, Any, dict[str, Any], str]] = [
        (attention_by_position, three[:1], {}, "at least 2 questions, got 1"),
        (attention_by_position, three, {"k": 11}, "has 9 distractors, and k=11 passages take 10"),
        (attention_by_position, [*three[:2], long], {"k": 4}, r"prompt 2 has \d+ tokens, .* 512"),
        (attention_profile, three, {"k": 2}, "k must be an integer >= 3, got 2"),
    ]
    for measure, asked, options, message in cases:
        with pytest.raises(ValueError, match=message):
            measure(model, asked, on_answer=seen.append, **options)
    assert seen == []


@pytest.mark.parametrize("draw", [draw_document_scores, draw_positional_curve])
def test_figures_are_written(draw: Any, tmp_path: Path) -> None:
    """In the format that the suffix says; a name may look like a formula."""
    pytest.importorskip("matplotlib")
    found = measured("uniform", 6, 4)
    odd = {**found.curves, "unordered": replace(found.curve, model="a$b$c")}
    assert "<svg" in draw(replace(found, curves=odd), tmp_path / "new" / "f.svg").read_text("utf-8")


# --- the profile ---


def test_every_value_of_a_profile_is_a_share_and_the_same_each_time() -> None:
    """Of the attention to all passages, of which the gold one visits every slot."""
    asked, k, model = questions(6), 5, reader("uniform")
    profile = attention_profile(model, asked, k=k)
    assert profile.outcomes is not None
    assert (len(profile.outcomes), len(profile.outcomes[0])) == (6, k)
    assert (profile.measure, profile.n, profile.k) == ("attention", 6, k)
    assert attention_profile(model, asked, k=k).outcomes == profile.outcomes
    for slot, share in enumerate(profile.outcomes[0]):
        passages = asked[0].passages(slot, k)
        prompt = render_prompt(model.encoder, ANSWER, passages, asked[0].question)
        [reading] = answer_with_attention(model, [prompt], wanted=[("answer", "all")])
        scores = document_scores(reading.scores["answer", "all"], prompt.contents)
        assert share == pytest.approx(scores[slot] / sum(scores), abs=1e-5)

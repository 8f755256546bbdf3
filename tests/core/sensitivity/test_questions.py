"""Questions of the probe: made on the fly, read from a file, drawn from PyTorch's documentation."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from shared_core.sensitivity import (
    KEY_VALUE,
    ProbeQuestion,
    PromptTemplate,
    key_value_questions,
    read_questions,
)

WHOLE = {"question": "q", "answers": ["a"], "gold": "g", "distractors": ["d1", "d2"]}


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def test_key_value_prompts_are_the_published_ones() -> None:
    """nelson-liu/lost-in-the-middle: a JSON object of UUIDs, one asked for."""
    (question,) = key_value_questions(1, k=75, seed=1)
    prompt = KEY_VALUE.render(question.passages(37, 75), question.question)
    assert prompt.startswith(
        "Extract the value corresponding to the specified key in the JSON object below.\n\n"
        'JSON data:\n{"'
    )
    assert prompt.endswith(f'}}\n\nKey: "{question.question}"\nCorresponding value:')
    records = json.loads(prompt[prompt.index("{") : prompt.rindex("}") + 1])
    assert len(records) == 75
    assert list(records)[37] == question.question
    assert (records[question.question],) == question.answers
    for text in (*records, *records.values()):
        assert uuid.UUID(text).version == 4


def test_key_value_questions_are_seeded_and_never_the_same_twice() -> None:
    """The same seed gives the same, another seed shares nothing with it."""
    first = key_value_questions(20, k=5, seed=3)
    assert first == key_value_questions(30, k=5, seed=3)[:20], "journalled answers serve"
    other = key_value_questions(20, k=5, seed=4)
    assert not {question.question for question in first} & {each.question for each in other}
    assert len({question.gold for question in first}) == 20


def test_a_file_is_read_with_its_optional_parts(tmp_path: Path) -> None:
    """One string is a list of one answer; blank lines and other fields are passed over."""
    path = written(tmp_path / "q.jsonl", WHOLE, {**WHOLE, "answers": "b", "id": 7})
    path.write_text(path.read_text() + "\n  \n" + json.dumps({**WHOLE, "hard_distractor": "h"}))
    first, second, third = read_questions(path)
    assert first == ProbeQuestion(question="q", answers=("a",), gold="g", distractors=("d1", "d2"))
    assert second.answers == ("b",)
    assert third.hard_distractor == "h"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ([WHOLE] * 500, r'not one array, got \[{"question": .{60,70}\.\.\.$'),
        ({**WHOLE, "gold": ["x"] * 500}, r'gold must be a string, got \["x", .{60,75}\.\.\.$'),
        ({**WHOLE, "gold": ""}, "has no gold passage"),
        ({"q": "q", "answer": "a"}, 'no field "question"; it has q, answer'),
        ({**WHOLE, "answers": []}, "has no answers"),
        ({**WHOLE, "distractors": "d"}, "distractors must be a list of strings"),
        ({**WHOLE, "question": None}, "question must not be blank"),
        ({**WHOLE, "hard_distractor": " "}, "the hard_distractor of question 'q' is blank"),
    ],
)
def test_a_bad_line_is_named(line: object, message: str, tmp_path: Path) -> None:
    """By file and number."""
    path = written(tmp_path / "q.jsonl", WHOLE, line)
    with pytest.raises(ValueError, match=message) as caught:
        read_questions(path)
    assert "q.jsonl, line 2: " in str(caught.value)


def test_a_file_without_questions_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    """Nothing to ask is not an empty probe."""
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(ValueError, match=r"empty\.jsonl holds no questions"):
        read_questions(empty)
    empty.write_text("not json")
    with pytest.raises(ValueError, match=r"empty\.jsonl, line 1: "):
        read_questions(empty)


@pytest.mark.parametrize("name", ["answers", "distractors"])
def test_a_string_is_not_taken_for_a_list_of_its_letters(name: str) -> None:
    given: dict[str, Any] = {"answers": ("a",), "distractors": ("b",), name: "C007"}
    with pytest.raises(ValueError, match=rf"{name} must be a list, got the string 'C007'; give"):
        ProbeQuestion(question="What code?", gold="g", **given)


@pytest.mark.parametrize("text", ["{context}", "{question}", "{context}{context}{question}", ""])
def test_a_template_needs_both_places_once(text: str) -> None:
    """Or the model would not see what it is asked about."""
    with pytest.raises(ValueError, match="a prompt template holds"):
        PromptTemplate(text)


def test_what_is_put_into_a_template_is_not_read_as_one() -> None:
    """Braces and backslashes in passages and questions stay."""
    template = PromptTemplate("{context}|{question}")
    assert template.render(["{question}", r"\1"], "{context}") == "{question}\n\n\\1|{context}"

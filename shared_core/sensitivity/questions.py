"""What a probe asks: questions whose one gold passage can take any slot."""

from __future__ import annotations

import random
import uuid
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared_core.checking import check_count, check_several
from shared_core.files import check_fields, read_lines, shorten_json
from shared_core.tokens import estimate_tokens
from shared_core.wording import counted

LEAST_K = 3
"""Fewest passages of a context whose edges are compared with its middle."""

_REQUIRED = ("question", "answers", "gold", "distractors")
_FIELDS = (*_REQUIRED, "hard_distractor")


@dataclass(frozen=True, kw_only=True)
class ProbeQuestion:
    """A question, its answer, and the passages around it.

    Attributes
    ----------
    question
        What is asked.
    answers
        Accepted answers; for the keyword grader, the keywords that must all be there.
    gold
        The passage that holds the answer.
    distractors
        Passages that do not; a context of k passages takes the first k-1.
    hard_distractor
        A passage that seems to answer and does not; only ``measure="distraction"`` reads it.

    Raises
    ------
    ValueError
        If the question, the gold passage, an answer or the hard distractor is blank, there is no
        answer, or answers or distractors are a string.
    """

    question: str
    answers: tuple[str, ...]
    gold: str
    distractors: tuple[str, ...]
    hard_distractor: str | None = None

    def __post_init__(self) -> None:
        check_several(self.answers, "answers")
        check_several(self.distractors, "distractors")
        if not self.question.strip():
            raise ValueError(f"question must not be blank, got {self.question!r}")
        if not self.gold.strip():
            raise ValueError(f"question {self.question!r} has no gold passage")
        if not self.answers or not all(answer.strip() for answer in self.answers):
            raise ValueError(f"question {self.question!r} has no answers, got {self.answers!r}")
        if self.hard_distractor is not None and not self.hard_distractor.strip():
            raise ValueError(f"the hard_distractor of question {self.question!r} is blank")

    def passages(self, slot: int, k: int, *, gold: str | None = None) -> list[str]:
        """Return `k` passages, the gold one (or the one given instead) in `slot`.

        There must be k-1 distractors at least, as `check_questions` checks.
        """
        others = self.distractors[: k - 1]
        return [*others[:slot], self.gold if gold is None else gold, *others[slot:]]


def read_questions(path: str | Path) -> list[ProbeQuestion]:
    """Read questions from JSON lines with the fields of `ProbeQuestion`; others are ignored.

    ``answers`` may be one string. Blank lines are skipped.

    Raises
    ------
    ValueError
        If a line is not such an object, or there are none; the message names file and line.
    OSError
        If the file cannot be read.
    """
    questions = [*read_lines(Path(path), _parse)]
    if not questions:
        raise ValueError(f"{path} holds no questions")
    return questions


def _parse(data: Mapping[str, Any]) -> ProbeQuestion:
    check_fields(data, _REQUIRED)
    values = {name: data[name] for name in _FIELDS if data.get(name) is not None}
    if isinstance(values.get("answers"), str):
        values["answers"] = [values["answers"]]
    for name in ("question", "gold", "hard_distractor"):
        if not isinstance(values.get(name, ""), str):
            raise ValueError(f"{name} must be a string, got {shorten_json(values[name])}")
    for name in ("answers", "distractors"):
        if not _are_strings(values.get(name, [])):
            raise ValueError(f"{name} must be a list of strings, got {shorten_json(values[name])}")
        values[name] = tuple(values.get(name, ()))
    return ProbeQuestion(**{"question": "", "gold": "", **values})


def _are_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def key_value_questions(n: int, *, k: int = 10, seed: int = 0) -> list[ProbeQuestion]:
    """Make key-value retrieval questions; they need no knowledge and no download.

    Each asks for the value of one of `k` keys, all of them random UUIDs, in the form that
    Liu et al. (2024, "Lost in the Middle", section 3) published. Ask them with the template
    `KEY_VALUE`.

    Raises
    ------
    ValueError
        If `n` or `k` is not an integer >= 1.
    """
    check_count(n, "n")
    check_count(k, "k")
    generator = random.Random(seed)

    def identifier() -> str:
        return str(uuid.UUID(int=generator.getrandbits(128), version=4))

    questions = []
    for _ in range(n):
        pairs = [(identifier(), identifier()) for _ in range(k)]
        gold, *others = [f'"{key}": "{value}"' for key, value in pairs]
        key, value = pairs[0]
        questions.append(
            ProbeQuestion(question=key, answers=(value,), gold=gold, distractors=tuple(others))
        )
    return questions


def check_context(k: int) -> None:
    """Raise ValueError if a context of `k` passages has no middle to compare its edges with."""
    check_count(k, "k", LEAST_K)


def check_questions(questions: Sequence[ProbeQuestion], k: int) -> None:
    """Check that every question can fill a context of `k` passages.

    Raises
    ------
    ValueError
        If there are no questions, or one is repeated, has too few distractors, or has its gold
        passage among them.
    """
    if not questions:
        raise ValueError("no questions to ask; give at least one")
    check_repeats((question.question, question.gold) for question in questions)
    fewest = min(len(question.distractors) for question in questions)
    for question in questions:
        if len(question.distractors) < k - 1:
            way_out = f"give k={fewest + 1} (--k {fewest + 1}) or less"
            if fewest + 1 < LEAST_K:
                way_out = f"give each question at least {LEAST_K - 1}"
            raise ValueError(
                f"question {question.question!r} has "
                f"{counted(len(question.distractors), 'distractor')}, and k={k} passages take "
                f"{k - 1}; {way_out}"
            )
        if question.gold in question.distractors[: k - 1]:
            raise ValueError(
                f"the gold passage of question {question.question!r} is also among its distractors"
            )


def mean_tokens(questions: Sequence[ProbeQuestion], k: int) -> float:
    """Return how many tokens the passages of a prompt have in the mean."""
    texts = [question.passages(0, k) for question in questions]
    return sum(estimate_tokens(text) for each in texts for text in each) / len(texts)


def check_repeats(asked: Iterable[tuple[str, Hashable]], way_out: str = "leave one out") -> None:
    """Raise ValueError if a pair is repeated: a question, and what distinguishes its namesakes."""
    seen: dict[tuple[str, Hashable], int] = {}
    for number, key in enumerate(asked, start=1):
        first = seen.setdefault(key, number)
        if first != number:
            raise ValueError(
                f"question {number} repeats question {first}, {key[0]!r}, which would make the "
                f"interval too narrow; {way_out}"
            )

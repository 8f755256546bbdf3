"""Held-out questions as the project's own types."""

from __future__ import annotations

import random

from instruments.corpus import held_out_questions
from shared_core.attention import Case
from shared_core.sensitivity import ProbeQuestion


def probe_questions(n: int, *, k: int = 10, seed: int) -> list[ProbeQuestion]:
    """Return questions for a probe, on keys that training never showed."""
    return [
        ProbeQuestion(
            question=str(each["question"]),
            answers=tuple(each["answers"]),
            gold=str(each["gold"]),
            distractors=tuple(each["distractors"]),
        )
        for each in held_out_questions(n, k=k, seed=seed)
    ]


def shuffled_cases(
    n: int, *, k: int = 10, seed: int
) -> tuple[list[Case], list[list[str]], list[int]]:
    """Return cases with shuffled documents, their answers, and where the gold document stands."""
    generator = random.Random(seed)
    cases, answers, gold = [], [], []
    for each in held_out_questions(n, k=k, seed=seed):
        documents = [str(each["gold"]), *map(str, each["distractors"])]
        generator.shuffle(documents)
        cases.append(Case(question=str(each["question"]), documents=documents))
        answers.append(list(each["answers"]))
        gold.append(documents.index(str(each["gold"])))
    return cases, answers, gold

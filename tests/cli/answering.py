"""Models for the command, named as module:attribute."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence


def _read(prompt: str) -> tuple[int, int, str]:
    records = json.loads(prompt[prompt.index("{") : prompt.rindex("}") + 1])
    key = prompt.rpartition('Key: "')[2].partition('"')[0]
    return list(records).index(key), len(records), records[key]


def edges(prompts: Sequence[str]) -> list[str]:
    """Answer right at the edges always, and half of the time in between."""
    answers = []
    for slot, k, value in map(_read, prompts):
        lucky = slot in (0, k - 1) or random.Random(value).random() < 0.5
        answers.append(value if lucky else "unknown")
    return answers


def even(prompts: Sequence[str]) -> list[str]:
    """Answer right in four of five cases, whatever the slot."""
    return [v if random.Random(v).random() < 0.8 else "" for _, _, v in map(_read, prompts)]


def nothing(prompts: Sequence[str]) -> list[str]:
    """Never answer right."""
    return ["no idea"] * len(prompts)


number = 5

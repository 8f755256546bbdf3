"""What ``posrag demo`` asks of a framework, although the core knows none of them.

A framework registers a `FrameworkOrder` under the entry point group ``posrag.demo``. It builds the
framework's own chain over the passages, asks it the question, and reads from the prompt that the
language model got in which order the passages stood there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from shared_core.arrays import Vectors
from shared_core.caus import CAUS
from shared_core.types import Passage

GROUP = "posrag.demo"
"""The entry point group."""

Embed: TypeAlias = Callable[[Sequence[str]], Vectors]
"""Texts to one vector each."""

_MARK = re.compile(r"^\[passage (\S+)\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DemoTask:
    """What a framework is asked to do.

    Attributes
    ----------
    passages
        The corpus, in the order in which it is to be indexed.
    embed
        Texts to vectors; a passage's text costs a look-up, not a run of the model.
    query
        The question.
    caus
        The options of the retriever.
    """

    passages: Sequence[Passage]
    embed: Embed
    query: str
    caus: CAUS


class FrameworkOrder(Protocol):
    """A framework's entry point into the demo."""

    def __call__(self, task: DemoTask) -> list[str]:
        """Return the ids of the passages in the order in which they stood in the prompt."""
        ...


def mark(passage_id: str) -> str:
    """Return the line by which `ids_in_prompt` knows a passage; it stands above its text."""
    return f"[passage {passage_id}]"


def ids_in_prompt(prompt: str) -> list[str]:
    """Return the ids of the marked passages in the order of the prompt."""
    return _MARK.findall(prompt)

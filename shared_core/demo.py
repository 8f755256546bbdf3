"""The interface between ``posrag demo`` and the frameworks, none of which the core imports.

A framework registers a `FrameworkOrder` under the entry point group ``posrag.demo``. It builds the
framework's own chain over the passages, asks it the question, and reads the order of the passages
from the prompt that the language model received.
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

EmbedTexts: TypeAlias = Callable[[Sequence[str]], Vectors]
"""Texts to an array with one row per text; narrower than `shared_core.arrays.Embed`."""

_MARK = re.compile(r"^\[passage (\S+)\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DemoTask:
    """What a framework is asked to do.

    Attributes
    ----------
    passages
        The corpus, in the order in which it is to be indexed.
    embed
        Texts to vectors; those of passages are looked up, not computed again.
    query
        The question.
    caus
        The options of the retriever.
    """

    passages: Sequence[Passage]
    embed: EmbedTexts
    query: str
    caus: CAUS


class FrameworkOrder(Protocol):
    """A framework's entry point into the demo."""

    def __call__(self, task: DemoTask) -> list[str]:
        """Return the ids of the passages in the order of the prompt."""
        ...


def mark(passage_id: str) -> str:
    """Return the line, to go above a passage's text, by which `ids_in_prompt` finds it."""
    return f"[passage {passage_id}]"


def ids_in_prompt(prompt: str) -> list[str]:
    """Return the ids of the marked passages in the order of the prompt."""
    return _MARK.findall(prompt)

"""How the frameworks take part in the demo, although the core knows none of them.

A framework registers a function under the entry point group ``posrag.demo``. The function builds
the framework's own chain over the passages, asks it the question, and reads from the prompt that
the language model got in which order the passages stood there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol, TypeAlias

import numpy as np

from shared_core import CAUS, MissingExtraError, Passage
from shared_core.cli.demo.model import Vectors

GROUP = "posrag.demo"
TITLES = {"langchain": "LangChain", "llamaindex": "LlamaIndex"}
Embed: TypeAlias = Callable[[Sequence[str]], Vectors]

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


def framework_orders(task: DemoTask) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Ask every registered framework.

    Returns
    -------
    orders
        title -> ids in the order of the prompt.
    absent
        title -> what is missing, for the frameworks that are not installed.
    """
    orders: dict[str, list[str]] = {}
    absent: dict[str, str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        title = TITLES.get(point.name, point.name)
        try:
            order: FrameworkOrder = point.load()
        except MissingExtraError as error:
            absent[title] = str(error)
            continue
        except ImportError as error:
            absent[title] = f"{error}; run: pip install 'posrag[{point.name}]'"
            continue
        orders[title] = order(task)
    return orders, absent


class StoredEmbedding:
    """Embeds texts whose vectors are known by looking them up, and others by the model.

    Parameters
    ----------
    vectors
        text -> vector.
    embed
        What embeds any other text.
    """

    def __init__(self, vectors: Mapping[str, Vectors], embed: Embed) -> None:
        self._vectors = vectors
        self._embed = embed

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text."""
        missing = [text for text in texts if text not in self._vectors]
        fresh = dict(zip(missing, self._embed(missing), strict=True)) if missing else {}
        rows = [fresh[text] if text in fresh else self._vectors[text] for text in texts]
        return np.asarray(rows, dtype=np.float32)

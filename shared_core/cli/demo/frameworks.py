"""How the frameworks that are installed take part in the demo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points

import numpy as np

from shared_core import MissingExtraError
from shared_core.arrays import Vectors
from shared_core.demo import GROUP, DemoTask, EmbedTexts, FrameworkOrder

TITLES = {"langchain": "LangChain", "llamaindex": "LlamaIndex"}


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

    def __init__(self, vectors: Mapping[str, Vectors], embed: EmbedTexts) -> None:
        self._vectors = vectors
        self._embed = embed

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text."""
        missing = [text for text in texts if text not in self._vectors]
        fresh = dict(zip(missing, self._embed(missing), strict=True)) if missing else {}
        rows = [fresh[text] if text in fresh else self._vectors[text] for text in texts]
        return np.asarray(rows, dtype=np.float32)

"""The embedding model and the reranker of the command; neither does anything twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shared_core import PosragError
from shared_core._extras import require
from shared_core.arrays import Vectors
from shared_core.cli.console import Console, quiet_transformers
from shared_core.cli.demo.model import EmbeddingModel
from shared_core.generation.loading import first_line


class Embedding:
    """An embedding model that remembers what it has embedded.

    Parameters
    ----------
    name
        Folder or hub name of a sentence-transformers model; it is loaded at the first use.
    console
        Where it says what it is about to embed.
    """

    def __init__(self, name: str, console: Console) -> None:
        self._model = EmbeddingModel(name)
        self._console = console
        self._known: dict[str, Vectors] = {}

    @property
    def label(self) -> str:
        """Name of the model, without folders."""
        return self._model.label

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, shape (len(texts), dim)."""
        new = [*dict.fromkeys(text for text in texts if text not in self._known)]
        if new:
            self._console.say(f"Embedding {len(new):,} texts with {self.label}")
            self._known.update(zip(new, self._model.embed(new), strict=True))
        return np.stack([self._known[text] for text in texts])


class CrossEncoder:
    """A cross-encoder of sentence-transformers that remembers what it has scored.

    Parameters
    ----------
    name
        Folder or hub name; it is loaded at the first use.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._model: Any = None
        self._known: dict[tuple[str, str], float] = {}

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how relevant each text is to the question; higher is better."""
        pairs = [(question, text) for text in texts]
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if new:
            scores = self._loaded().predict(new, show_progress_bar=False)
            self._known.update(zip(new, map(float, scores), strict=True))
        return [self._known[pair] for pair in pairs]

    def _loaded(self) -> Any:
        if self._model is None:
            quiet_transformers()
            package: Any = require("sentence_transformers", extra="models")
            try:
                self._model = package.CrossEncoder(self._name)
            except Exception as error:  # what a missing model raises differs with the cause
                raise PosragError(
                    f"cannot load the reranker {self._name!r} ({first_line(error)}); give the "
                    "folder or hub name of a cross-encoder"
                ) from error
        return self._model

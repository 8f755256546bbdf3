"""The embedding model and the reranker of the commands; neither does anything twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shared_core import PosragError
from shared_core._extras import require
from shared_core.arrays import Vectors
from shared_core.cli.console import Console, quiet_transformers
from shared_core.cli.demo.corpus import ensure_writable
from shared_core.cli.demo.journal import EmbeddingJournal
from shared_core.cli.demo.model import EmbeddingModel
from shared_core.comparison.pipelines import RERANKED, Pipeline
from shared_core.comparison.wording import counted
from shared_core.embeddings import other_model
from shared_core.generation.loading import first_line


class Embedding:
    """An embedding model whose vectors are kept, so that no text is embedded twice.

    Parameters
    ----------
    name
        Folder or hub name of a sentence-transformers model; it is loaded when there is something
        to embed.
    cache
        Folder of what is kept, for all models; each has a folder of its own in it.
    console
        Where it says what it is about to embed.
    """

    def __init__(self, name: str, cache: Path, console: Console) -> None:
        self._model = EmbeddingModel(name)
        self._cache = cache
        self._console = console
        self._known: dict[str, Vectors] = {}
        self._kept: tuple[str, Vectors] | None = None
        self._checked = False

    @property
    def label(self) -> str:
        """Name of the model, without folders."""
        return self._model.label

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, shape (len(texts), dim).

        Raises
        ------
        PosragError
            If the model cannot be loaded, or is not the one that made the vectors kept under its
            name, or nothing can be kept.
        """
        new = [*dict.fromkeys(text for text in texts if text not in self._known)]
        if new:
            self._known.update(zip(new, self._vectors(new), strict=True))
        return np.stack([self._known[text] for text in texts])

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        journal = EmbeddingJournal(self._folder)
        kept = journal.kept(texts)
        self._kept = next(iter(kept.items()), self._kept)
        if len(kept) < len(texts):
            ensure_writable(self._folder, self._cache)
            self._check_model(journal)
            self._model.load()
            before = f", {len(kept):,} others are kept from before" if kept else ""
            self._console.say(
                f"Embedding {counted(len(texts) - len(kept), 'text')} with {self.label}{before}"
            )
        return journal.embed(texts, self._model.embed, self._console)

    def _check_model(self, journal: EmbeddingJournal) -> None:
        """Raise PosragError if what is kept is of another model, before vectors are mixed."""
        if self._kept is None or self._checked:
            return
        text, vector = self._kept
        found = other_model(vector, self._model.embed([text])[0])
        if found is not None:
            journal.clear()
            raise PosragError(
                f"the embedding model {self.label} has changed since its vectors were kept in "
                f"{self._folder} (a text {found}); they are removed now: run again"
            )
        self._checked = True

    @property
    def _folder(self) -> Path:
        name = re.sub(r"[^\w.+-]", "-", self.label)
        return self._cache / f"{name}_{self._model.fingerprint[:12]}" / "vectors"


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


def open_reranker(name: str | None, pipelines: Sequence[str]) -> CrossEncoder | None:
    """Return the reranker of ``--reranker``, if there is one.

    Raises
    ------
    ValueError
        If it has nothing to do, as none of the pipelines is reranked.
    """
    if name is None:
        return None
    if not any(Pipeline(each).reranked for each in pipelines):
        raise ValueError(
            f"--reranker {name} is for pipelines with {RERANKED}, and there is none; give "
            f"--pipelines given{RERANKED}, hybrid{RERANKED} or another"
        )
    return CrossEncoder(name)

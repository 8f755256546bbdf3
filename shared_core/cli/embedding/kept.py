"""Embedding with every vector kept from one command to the next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from shared_core import PosragError
from shared_core.arrays import Vectors
from shared_core.cli.console import Console
from shared_core.cli.embedding.journal import EmbeddingJournal
from shared_core.cli.embedding.model import EmbeddingModel
from shared_core.cli.files import ensure_writable
from shared_core.vectors import model_mismatch
from shared_core.wording import counted, is_or_are


class Embedding:
    """An embedding model whose vectors are kept, so that no text is embedded twice.

    Parameters
    ----------
    name
        Folder or hub name of a sentence-transformers model; it is loaded when there is something
        to embed.
    cache
        Folder for all models; each has its own folder in it.
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
        if not texts:
            return np.empty((0, 0), np.float32)
        new = [*dict.fromkeys(text for text in texts if text not in self._known)]
        if new:
            self._known.update(zip(new, self._vectors(new), strict=True))
        return np.stack([self._known[text] for text in texts])

    def _vectors(self, texts: Sequence[str]) -> Vectors:
        journal = EmbeddingJournal(self._folder)
        kept = journal.kept(texts)
        self._kept = next(iter(kept.items()), self._kept)
        if len(kept) < len(texts):
            self._model.load()
            ensure_writable(self._folder, self._cache)
            self._check_model(journal)
            others = f"{counted(len(kept), 'other')} {is_or_are(len(kept))}"
            before = f"; {others} kept from before" if kept else ""
            self._console.say(
                f"Embedding {counted(len(texts) - len(kept), 'text')} with {self.label}{before}"
            )
        return journal.embed(texts, self._model.embed, self._console)

    def _check_model(self, journal: EmbeddingJournal) -> None:
        """Raise PosragError if what is kept is of another model, before vectors are mixed."""
        if self._kept is None or self._checked:
            return
        text, vector = self._kept
        found = model_mismatch(vector, self._model.embed([text])[0])
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

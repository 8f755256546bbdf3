"""Embedding that survives an interruption: each batch is on disk before the next one starts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from shared_core.cli.console import Console
from shared_core.cli.demo.model import Vectors

BATCH = 32


class EmbeddingJournal:
    """Batches of vectors in a folder, for texts that are the same at every run.

    Parameters
    ----------
    folder
        Made when the first batch is written. It must belong to these texts and this model.
    texts
        What is embedded.
    """

    def __init__(self, folder: Path, texts: Sequence[str]) -> None:
        self._folder = folder
        self._texts = texts
        # Texts of like length share a batch: a batch costs as much as its longest text.
        self._order = sorted(range(len(texts)), key=lambda row: (-len(texts[row]), row))

    def embed(self, embed: Callable[[Sequence[str]], Vectors], console: Console) -> Vectors:
        """Return one vector a text, computing only the batches that are not there yet.

        Raises
        ------
        KeyboardInterrupt
            If interrupted, with a message that says what is kept.
        """
        rows: list[Vectors] = []
        done = 0
        try:
            with console.progress() as bar:
                task = bar.add_task("embedding", total=len(self._texts))
                for number, batch in enumerate(self._batches()):
                    rows.append(self._batch(number, batch, embed))
                    done += len(batch)
                    bar.advance(task, len(batch))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"{done:,} of {len(self._texts):,} embedded passages are kept in {self._folder}: "
                "a run without --rebuild goes on from there"
            ) from None
        vectors = np.vstack(rows)
        restored = np.empty_like(vectors)
        restored[self._order] = vectors
        return restored

    def kept(self) -> int:
        """Return the number of texts whose vectors are on disk."""
        batches = enumerate(self._batches())
        return sum(len(batch) for number, batch in batches if self._file(number).exists())

    def clear(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _batches(self) -> Iterator[list[int]]:
        for start in range(0, len(self._order), BATCH):
            yield self._order[start : start + BATCH]

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:05}.npy"

    def _batch(
        self, number: int, batch: list[int], embed: Callable[[Sequence[str]], Vectors]
    ) -> Vectors:
        with suppress(OSError, ValueError):  # absent or damaged: embed it
            vectors: Vectors = np.load(self._file(number), allow_pickle=False)
            if len(vectors) == len(batch):
                return vectors
        vectors = embed([self._texts[row] for row in batch])
        self._write(number, vectors)
        return vectors

    def _write(self, number: int, vectors: Vectors) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._folder / f"{number:05}.{os.getpid()}.tmp"
        with temporary.open("wb") as file:
            np.save(file, vectors, allow_pickle=False)
        temporary.replace(self._file(number))

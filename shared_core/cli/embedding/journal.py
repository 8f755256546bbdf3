"""Embedding that survives an interruption: each batch is on disk before the next one starts."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from shared_core.arrays import Vectors
from shared_core.atomic import replacing
from shared_core.cli.console import Console
from shared_core.wording import counted

BATCH = 32


class EmbeddingJournal:
    """Batches of vectors in a folder, each vector under a hash of its text.

    Parameters
    ----------
    folder
        Made when the first batch is written. It must belong to one embedding model.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def embed(
        self, texts: Sequence[str], embed: Callable[[Sequence[str]], Vectors], console: Console
    ) -> Vectors:
        """Return one vector a text, computing only those that are not there yet.

        Raises
        ------
        KeyboardInterrupt
            If interrupted, with a message that says what is kept.
        OSError
            If a batch cannot be written, with the same.
        """
        found = self.kept(texts)
        done = len(found)
        try:
            with console.progress() as bar:
                task = bar.add_task("embedding", total=len({*texts}), completed=done)
                for batch in _batches({*texts} - {*found}):
                    vectors = embed(batch)
                    self._keep(batch, vectors, f"{done:,} of {counted(len({*texts}), 'text')}")
                    found.update(zip(batch, vectors, strict=True))
                    done += len(batch)
                    bar.advance(task, len(batch))
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"{done:,} of {counted(len({*texts}), 'text')} embedded and kept in "
                f"{self._folder}: the next run goes on from there"
            ) from None
        return np.stack([found[text] for text in texts])

    def kept(self, texts: Sequence[str]) -> dict[str, Vectors]:
        """Return the vectors of those texts whose vectors are on disk."""
        by_key = {_key(text): text for text in texts}
        found: dict[str, Vectors] = {}
        for file in sorted(self._folder.glob("*.npy")):
            # The texts of a damaged file are embedded again.
            with suppress(OSError, ValueError, IndexError, EOFError):
                records = np.load(file, allow_pickle=False)
                for at, key in enumerate(records["key"].tolist()):
                    if key in by_key:
                        found[by_key[key]] = records["vector"][at]
        return found

    def clear(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _keep(self, texts: Sequence[str], vectors: Vectors, before: str) -> None:
        try:
            self._write(texts, vectors)
        except OSError as error:
            raise OSError(
                f"vectors cannot be kept ({error}); {before} embedded before are: make room and "
                "run again to go on from there, or choose another folder with --cache"
            ) from error

    def _write(self, texts: Sequence[str], vectors: Vectors) -> None:
        keys = [_key(text) for text in texts]
        form = [("key", "S32"), ("vector", np.float32, vectors.shape[1:])]
        records = np.empty(len(texts), form)
        records["key"], records["vector"] = keys, vectors
        # A batch that is embedded again, such as a damaged one, replaces its file.
        name = hashlib.sha256(b"".join(keys)).hexdigest()[:16]
        with replacing(self._folder / f"{name}.npy") as file:
            np.save(file, records, allow_pickle=False)


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    # Texts of similar length share a batch, since its longest text decides its cost.
    ordered = sorted(texts, key=lambda text: (-len(text), text))
    for start in range(0, len(ordered), BATCH):
        yield ordered[start : start + BATCH]


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32].encode()

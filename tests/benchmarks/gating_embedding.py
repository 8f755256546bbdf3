"""Embeddings that are kept text by text, so that a run that was interrupted goes on."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cached_property
from pathlib import Path

import numpy as np

from shared_core.cli.console import Console
from shared_core.cli.demo.model import EmbeddingModel, default_model

PART = 256
"""Texts that are embedded, and kept, at a time."""

TABLE = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, value BLOB)"

ASKED = 500
"""Keys in one question to the database."""


class KeptEmbeddings:
    """all-MiniLM-L6-v2, which embeds no text twice.

    Parameters
    ----------
    folder
        Holds the file of vectors, which lie under a hash of the model and the text.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "embeddings.sqlite"
        self._model = EmbeddingModel(default_model())

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, shape (len(texts), dim)."""
        keys = [self._key(text) for text in texts]
        with closing(sqlite3.connect(self._path, timeout=60)) as database:
            database.execute(TABLE)
            kept = _kept(database, [*dict.fromkeys(keys)])
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in kept}
            for key, vector in self._embedded(missing, database):
                kept[key] = vector
        return np.stack([np.frombuffer(kept[key], np.float32) for key in keys])

    def _embedded(
        self, texts: dict[bytes, str], database: sqlite3.Connection
    ) -> Iterator[tuple[bytes, bytes]]:
        """Embed, and keep part by part; the shortest first, so that a part pads little."""
        if not texts:
            return
        console, keys = Console(), sorted(texts, key=lambda key: len(texts[key]))
        if len(keys) > PART:
            console.say(f"embedding {len(keys):,} texts")
        with console.progress() as bar:
            for part in bar.track([keys[at : at + PART] for at in range(0, len(keys), PART)]):
                vectors = self._model.embed([texts[key] for key in part])
                rows = [(key, vector.tobytes()) for key, vector in zip(part, vectors, strict=True)]
                with database:
                    database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
                yield from rows

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._fingerprint}\n{text}".encode()).digest()[:16]

    @cached_property
    def _fingerprint(self) -> str:
        return self._model.fingerprint


def _kept(database: sqlite3.Connection, keys: list[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for start in range(0, len(keys), ASKED):
        part = keys[start : start + ASKED]
        places = ", ".join("?" * len(part))
        found |= database.execute(f"SELECT * FROM vectors WHERE key IN ({places})", part)
    return found

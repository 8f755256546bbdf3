"""Collections of databases named on the command line: opened, filled and described."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shared_core.arrays import Embed
from shared_core.cli.console import Console
from shared_core.engines import Engine, connect
from shared_core.engines.collection import CollectionEngine, rows_to_write
from shared_core.types import Passage, Query
from shared_core.vectors import SAME_MODEL

BATCH = 128
"""Passages embedded and added at once: as many are lost by an interruption."""


@contextmanager
def opened(url: str, collection: str, *, read: bool = False) -> Iterator[CollectionEngine]:
    """Open a collection for a block; only the error says why a database cannot be reached.

    To `read` a collection no folder is made: an address that leads to none is a ValueError.
    """
    scheme, _, path = url.partition("://")
    here = scheme == "lancedb" or (scheme in ("qdrant", "milvus") and path.startswith("/"))
    if read and here and not Path(path).expanduser().exists():
        raise ValueError(f"there is no database in {url}: mend the address, or run posrag index")
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    with closing(connect(url, collection)) as engine:
        yield engine


def fill(
    engine: CollectionEngine, passages: Sequence[Passage], embed: Embed, console: Console
) -> int:
    """Add the passages that are not there with the same text and metadata; return their number.

    Raises
    ------
    ValueError
        If the collection was filled with another embedding model.
    EngineError
        If the database does not answer.
    """
    added = 0
    if engine.count():
        _check_model(engine, embed, passages[0].text)
    with console.counting("indexing", len(passages)) as advance:
        for start in range(0, len(passages), BATCH):
            batch = passages[start : start + BATCH]
            new = [batch[at] for at in rows_to_write(engine, batch)]
            if new:
                engine.add(new, embed([passage.text for passage in new]))
            added += len(new)
            advance(len(batch))
    engine.take_up_mean()
    return added


def described(engine: CollectionEngine) -> dict[str, Any]:
    """Return what a collection holds and was made with, or raise ValueError if it is not there."""
    found = engine.describe()
    if found is None:
        raise ValueError(
            f"there is no collection {engine.collection!r} in {engine.shown}: give --collection "
            "the name of another, or make it with posrag index"
        )
    return found


def show(url: str, collection: str) -> int:
    """Show each number and option of a collection; return 0, or 1 if something is amiss."""
    console = Console()
    with opened(url, collection, read=True) as engine:
        found = described(engine)
    console.show(f"{collection} in {engine.shown}", whole=True)
    amiss = found.pop("amiss", None)
    for name, value in found.items():
        if value is not None:
            console.show(f"  {name:<12} {value}")
    if not found["passages"]:
        amiss = amiss or "it is empty: posrag index fills it."
    if amiss:
        console.show(f"\nAmiss: {amiss}")
    return 1 if amiss else 0


def _check_model(engine: Engine, embed: Embed, text: str) -> None:
    """Raise ValueError unless the model embeds a passage that is there as it was embedded."""

    def nearest(text: str) -> tuple[Passage, float]:
        (found,) = engine.search_leg("dense", Query(text, np.asarray(embed([text]))[0]), 1)
        return found

    near, _ = nearest(text)
    same, cosine = nearest(near.text)
    if cosine < SAME_MODEL:
        raise ValueError(
            f"{engine!r} was filled with another embedding model: by this one, nothing there is as "
            f"the text of {near.id!r} ({same.id!r} comes nearest, with cosine {cosine:.3f}); name "
            "that model by --embedding, or another --collection"
        )

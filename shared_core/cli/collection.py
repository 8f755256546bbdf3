"""Collections of databases named on the command line: opened, filled and described."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from shared_core.cli.console import Console
from shared_core.cli.installed import EXTRAS
from shared_core.cli.options import Options
from shared_core.demo import EmbedTexts
from shared_core.engines import Engine, connect, named_by
from shared_core.engines.collection import CollectionEngine, rows_to_write
from shared_core.types import Passage, Query
from shared_core.vectors import SAME_MODEL
from shared_core.wording import counted, is_or_are

URL_HELP = "address of a database, such as postgresql://user@host:5432/database"

BATCH = 128
"""Passages embedded and added at once: as many are lost by an interruption."""

LINES = {
    "passages": "{:,}",
    "mean_length": "{:,.1f} words a passage",
    "words": "{:,} different ones",
    "dim": "vectors of dimension {}",
    "metric": "{}",
    "dense": "{}",
    "k1": "{}",
    "b": "{}",
}
"""What is shown of `CollectionEngine.describe`, where it is there, and how."""


def add_collection(parser: Options, more: str = "") -> None:
    """Add the name of the collection; `more` says what becomes of it."""
    parser.add_argument("--collection", default="posrag", help=f"name of the collection in the "
        f"database{more} (default: posrag)")  # fmt: skip


def packages(url: str) -> tuple[str, ...]:
    """Return the modules that the database of an address needs."""
    module, _ = named_by(url)
    return EXTRAS[module][0]


@contextmanager
def opened(url: str, collection: str) -> Iterator[CollectionEngine]:
    """Open a collection for a block; only the error says why a database cannot be reached."""
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    with closing(connect(url, collection)) as engine:
        yield engine


def fill(
    engine: CollectionEngine, passages: Sequence[Passage], embed: EmbedTexts, console: Console
) -> int:
    """Add the passages that are not there with the same text and metadata; return their number.

    Raises
    ------
    ValueError
        If the collection was filled with another embedding model.
    EngineError
        If the database does not answer.
    KeyboardInterrupt
        If interrupted, with a message that says what is there.
    """
    done = added = 0
    if engine.count():
        _check_model(engine, embed, passages[0].text)
    try:
        with console.counting("indexing", len(passages)) as advance:
            for start in range(0, len(passages), BATCH):
                batch = passages[start : start + BATCH]
                new = [batch[at] for at in rows_to_write(engine, batch)]
                if new:
                    engine.add(new, embed([passage.text for passage in new]))
                done, added = done + len(batch), added + len(new)
                advance(len(batch))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{done:,} of {counted(len(passages), 'document')} {is_or_are(done)} in the "
            "collection: the next run goes on from there"
        ) from None
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


def show(found: Mapping[str, Any], console: Console) -> str:
    """Show each number and option of a collection; return what is amiss, "" if nothing is."""
    for name, line in LINES.items():
        if found.get(name) is not None:
            console.show(f"  {name.replace('_', ' '):<12} {line.format(found[name])}")
    return found.get("amiss") or (
        "" if found["passages"] else "it is empty: posrag index fills it."
    )


def _check_model(engine: Engine, embed: EmbedTexts, text: str) -> None:
    """Raise ValueError unless the model embeds a passage that is there as it was embedded."""

    def nearest(text: str) -> tuple[Passage, float]:
        (found,) = engine.search_leg("dense", Query(text, embed([text])[0]), 1)
        return found

    near, _ = nearest(text)
    same, cosine = nearest(near.text)
    if cosine < SAME_MODEL:
        raise ValueError(
            f"{engine!r} was filled with another embedding model: by this one, nothing there is as "
            f"the text of {near.id!r} ({same.id!r} comes nearest, with cosine {cosine:.3f}); name "
            "that model by --embedding, or another --collection"
        )

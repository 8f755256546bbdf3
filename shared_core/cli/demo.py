"""``posrag demo``: ask the PyTorch API a question and see why its passages are placed so."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from shared_core import CAUS, Arrangement
from shared_core._extras import require
from shared_core.cli import collection, options
from shared_core.cli.console import Console, empty_table
from shared_core.cli.embedding import EmbeddingCache, EmbeddingModel, default_model, indexed
from shared_core.cli.options import path
from shared_core.comparison.reading import read_passages
from shared_core.corpora import torch_api_passages
from shared_core.corpora.own_files import SUFFIXES, folder_passages, questions_from
from shared_core.engines import Engine
from shared_core.types import Passage, Query
from shared_core.wording import counted

if TYPE_CHECKING:
    from rich.table import Table


# Dense search alone ranks the right API, torch.nn.functional.interpolate, sixth.
DEFAULT_QUERY = 'How do I resize an image tensor with mode="bicubic"?'

QUESTIONS = 3
"""Questions that are made from ``--data``."""


DESCRIPTION = (
    "Search the documentation of the installed PyTorch, or your own files, by meaning and by "
    "words, place the passages, and show why each is placed where it is."
)


_COLUMNS = (
    "slot",
    "fused\nrank",
    "fused\nscore",
    "dense\nscore",
    "dense\nrank",
    "BM25\nscore",
    "BM25\nrank",
)

FOOTNOTE = (
    "Slot 1 opens the prompt. Slots and ranks count from 1; dense and BM25 ranks are those within "
    "the pool of candidates that both searches fetched."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the passages, the question and how it is searched."""
    group = parser.add_argument_group
    add = group("passages and question").add_argument
    add("--data", type=path, help="your own passages: a folder of text and Markdown "
        "files, or JSON lines with id and text (default: the API of the installed "
        "PyTorch)")  # fmt: skip
    add("--query", help=f"the question (default: {DEFAULT_QUERY}; of --data, {QUESTIONS} that are "
        "made from its headings and first sentences)")  # fmt: skip
    add("-k", "--k", type=int, default=10, help="number of passages (default: 10)")
    add("--engine", metavar="URL", help=f"{options.URL_HELP}: search the passages there, in the "
        "collection posrag_demo, and compare with memory")  # fmt: skip
    embedded = group("embedding")
    embedded.add_argument("--model", default=default_model(), help=options.EMBEDDING_HELP)
    options.add(embedded, "cache")


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0, or 1 if a database's order is not that in memory."""
    if arguments.query is not None and not arguments.query.strip():
        raise ValueError(f"--query must not be blank, got {arguments.query!r}")
    caus = CAUS(k=arguments.k, psi="always")
    console = Console()
    passages, name = _passages(arguments.data, console)
    asked = [arguments.query or DEFAULT_QUERY]
    if arguments.data is not None and arguments.query is None:
        asked = questions_from(passages, QUESTIONS)
        if not asked:
            raise ValueError(f"no question can be made from {arguments.data}: give --query")
    embed = EmbeddingCache(EmbeddingModel(arguments.model), arguments.cache, console)
    index = indexed(passages, embed)
    *others, query = map(Query, asked, embed(asked))
    for other in others:
        _answer(console, caus, index, other)
    if arguments.engine is None:
        _answer(console, caus, index, query)
        return 0
    (memory,) = caus.search(index, [query])
    name = "posrag_demo_" + re.sub(r"\W", "_", name)  # whose passages they are
    with collection.opened(arguments.engine, name) as engine:
        collection.fill(engine, passages, embed, console)
        stored = _answer(console, caus, engine, query)
    same = [one.id for one in stored.passages] == [one.id for one in memory.passages]
    console.show(f"\nThe order in the database {'is' if same else 'is NOT'} that in memory.")
    return 0 if same else 1


def _passages(data: Path | None, console: Console) -> tuple[list[Passage], str]:
    """Return the passages to search, and what they are called."""
    if data is None:
        version = require("torch", extra="models").__version__
        passages = torch_api_passages()
        console.say(f"{len(passages):,} documented entries in the API of torch {version}.")
        return passages, version
    try:
        passages = folder_passages(data) if data.is_dir() else read_passages(data)
    except ValueError as error:
        if data.suffix.lower() not in SUFFIXES:
            raise
        raise ValueError(f"{error}; of text files, give the folder") from error
    console.say(f"{counted(len(passages), 'passage')} of {data}.")
    return passages, data.resolve().name


def _answer(console: Console, caus: CAUS, engine: Engine, query: Query) -> Arrangement:
    (arrangement,) = caus.search(engine, [query])
    ((by_meaning, _),) = engine.search_leg("dense", query, 1)
    console.show(f"\nQuery: {query.text}", table(arrangement), FOOTNOTE)
    console.show(f"\n{gate_line(arrangement)}", why_line(arrangement, by_meaning.id))
    return arrangement


def table(arrangement: Arrangement) -> Table:
    """Return the passages slot by slot, with the scores and ranks that put them there."""
    built = empty_table()
    for column in _COLUMNS:
        built.add_column(column, justify="right", no_wrap=True)
    built.add_column("passage", overflow="fold")
    for why, passage in zip(arrangement.explain(), arrangement.passages, strict=True):
        cells = [
            str(why["slot"] + 1),
            str(why["rank"] + 1),
            f"{why['score']:.3f}",
            f"{why['dense']:.3f}",
            str(why["dense_rank"] + 1),
            f"{why['sparse']:.2f}",
            str(why["sparse_rank"] + 1),
        ]
        built.add_row(*cells, passage.id)
    return built


def gate_line(arrangement: Arrangement) -> str:
    """Return the gate's decision, its reason and what came of it."""
    gate, placed = arrangement.gate, f"are placed by {arrangement.placement}"
    came = placed if gate.opened else "stay in ranked order"
    return f"Gate: {gate.explain()['gate']} ({gate.reason}), so the passages {came}."


def why_line(arrangement: Arrangement, dense_first: str) -> str:
    """Return why the best passage is the best, and why it is placed where it is.

    Parameters
    ----------
    arrangement
        At least one passage.
    dense_first
        Id of the passage that dense search alone ranks first.
    """
    slot = arrangement.slots.index(0)
    why = arrangement.explain()[slot]
    best = arrangement.passages[slot].id
    where = f"goes into slot {slot + 1} of {len(arrangement)}"
    if slot == 0:
        where = "opens the prompt (slot 1)"
    words = f"the query's exact words put it at rank {why['sparse_rank'] + 1} of BM25"
    if why["sparse"] == 0:
        words = "no word of the query occurs in it"
    weights = f"{why['alpha']:.2f} dense + {1 - why['alpha']:.2f} BM25"
    sentence = (
        f"{best} is at rank {why['dense_rank'] + 1} by meaning alone; {words}, and the fused "
        f"score ({weights}) puts it at rank 1, so it {where}."
    )
    if dense_first != best:
        sentence += f" Dense search alone would have ranked {dense_first} first."
    return f"Why: {sentence}"

"""``posrag tune``: the fusion weight that labelled questions choose."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from shared_core.caus import CAUS
from shared_core.cli import collection, options
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingCache, EmbeddingModel, indexed
from shared_core.cli.options import path
from shared_core.comparison.reading import read_passages
from shared_core.engines import Engine
from shared_core.files import check_fields, read_lines, shorten_json
from shared_core.tuning import FOLDS, tune
from shared_core.types import Query
from shared_core.wording import counted

DESCRIPTION = (
    "Choose the weight of the dense leg by labelled questions, of which some twenty are enough to "
    "begin with, and say what it gains on questions that did not choose it. In Python, "
    "retriever.tune does the same and returns the tuned retriever."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the questions, and what is searched."""
    data = parser.add_argument_group("data")
    data.add_argument("--data", type=path, required=True, help="JSON lines with question, and "
        "gold: the id of a document that answers it, or several")  # fmt: skip
    where = data.add_mutually_exclusive_group(required=True)
    options.add(where, "documents")
    where.add_argument("--engine", metavar="URL", help=options.URL_HELP)
    options.add(data, "collection")
    options.add(parser.add_argument_group("embedding"), "embedding", "cache")


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    console = Console()
    labelled = [*read_lines(arguments.data, _labelled)]
    if (n := len(labelled)) < FOLDS:
        raise ValueError(f"{arguments.data} holds {counted(n, 'question')}: give at least {FOLDS}")
    embed = EmbeddingCache(EmbeddingModel(arguments.embedding), arguments.cache, console)
    with _opened(arguments, embed) as engine:
        texts = [question for question, _ in labelled]
        queries = [*map(Query, texts, embed(texts))]
        tuned = tune(CAUS(), engine, queries, [gold for _, gold in labelled])
    console.show(str(tuned.tuning), "\nThe order gate's chances, with psi=PROFILE:")
    console.show(f"    hit_rates={[round(rate, 3) for rate in tuned.hit_rates or ()]}", whole=True)
    return 0


@contextmanager
def _opened(arguments: argparse.Namespace, embed: EmbeddingCache) -> Iterator[Engine]:
    if arguments.engine is None:
        yield indexed(read_passages(arguments.documents), embed)
        return
    with collection.opened(arguments.engine, arguments.collection, read=True) as engine:
        collection.described(engine)
        yield engine


def _labelled(data: Mapping[str, Any]) -> tuple[str, list[str]]:
    check_fields(data, ("question", "gold"))
    question, gold = data["question"], data["gold"]
    gold = gold if isinstance(gold, list) else [gold]
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"question must be a text, got {shorten_json(question)}")
    if not gold or not all(isinstance(id, str) for id in gold):
        raise ValueError(f"gold must be the id of a document, or several, got {shorten_json(gold)}")
    return question, gold

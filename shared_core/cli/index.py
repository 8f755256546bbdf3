"""``posrag index``: documents into a collection of a database."""

from __future__ import annotations

import argparse

from shared_core.cli import collection, options
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingModel
from shared_core.cli.options import path
from shared_core.comparison.reading import read_passages
from shared_core.wording import counted

DESCRIPTION = (
    "Embed documents and put them into a collection, which both frameworks search by "
    "CAUSRetriever.from_url. An interrupted run goes on where it stopped: documents that are there "
    "with the same text and metadata are not embedded again, changed ones are replaced, and none "
    "is deleted."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the documents, their embedding and where they go."""
    data = parser.add_argument_group("data")
    add = data.add_argument
    add("--data", type=path, required=True, help="JSON lines with id and text, and perhaps "
        "metadata, an object")  # fmt: skip
    add("--engine", metavar="URL", required=True, help=options.URL_HELP)
    options.add(data, "collection")
    options.add(parser.add_argument_group("embedding"), "embedding")


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    console = Console()
    passages = read_passages(arguments.data)
    model = EmbeddingModel(arguments.embedding)
    with collection.opened(arguments.engine, arguments.collection) as engine:
        added = collection.fill(engine, passages, model.embed, console)
        there = engine.count()
    console.show(
        f"{counted(added, 'document')} of {len(passages):,} added; the collection "
        f"{arguments.collection} holds {there:,}. Search it with the same embedding model, "
        f"{model.label}:",
        f'    CAUSRetriever.from_url(URL, MODEL, collection="{arguments.collection}")',
    )
    return 0

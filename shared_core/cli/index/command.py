"""The ``index`` subcommand: its options, and the job from a file to a collection."""

from __future__ import annotations

import argparse

from shared_core.cli import filling, options
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingModel, default_model
from shared_core.cli.installed import EMBEDDING, TABLES, check_installed
from shared_core.comparison.reading import read_passages
from shared_core.wording import counted


def add_parser(subcommands: options.Subparsers, purpose: str) -> None:
    """Add ``index`` and its options."""
    parser = subcommands.add_parser(
        "index",
        help=purpose,
        description="Embed documents and put them into a collection, which both frameworks search "
        "by CAUSRetriever.from_url. An interrupted run goes on where it stopped: documents that "
        "are there with the same text and metadata are not embedded again, changed ones are "
        "replaced, and none is deleted.",
    )
    add = parser.add_argument
    add("--data", type=options.path, required=True, help="JSON lines with id and text, and "
        "perhaps metadata, an object")  # fmt: skip
    add("--engine", metavar="URL", required=True, help=filling.URL_HELP)
    add("--collection", default="posrag", help=f"{filling.COLLECTION_HELP}, made if it is not "
        "there (default: posrag)")  # fmt: skip
    add("--embedding", default=default_model(), help=options.EMBEDDING_HELP)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    check_installed({**TABLES, **EMBEDDING})
    console = Console()
    passages = read_passages(arguments.data)
    model = EmbeddingModel(arguments.embedding)
    with filling.opened(arguments.engine, arguments.collection) as engine:
        added = filling.fill(engine, passages, model.embed, console)
        there = engine.count()
    console.show(
        f"{counted(added, 'document')} of {len(passages):,} added; the collection "
        f"{arguments.collection} holds {there:,}. Search it with the same embedding model, "
        f"{model.label}:"
    )
    console.show(f'    CAUSRetriever.from_url(URL, MODEL, collection="{arguments.collection}")')
    return 0

"""``posrag engine``: what a collection of a database holds."""

from __future__ import annotations

import argparse

from shared_core.cli import collection, options
from shared_core.cli.console import Console
from shared_core.cli.installed import check_installed

DESCRIPTION = (
    "Show how much a collection holds, the options it was made with, and what to do if something "
    "is amiss (the exit status is then 1)."
)


def add_options(parser: options.Options) -> None:
    """Add the collection and where it is."""
    parser.add_argument("url", metavar="URL", help=collection.URL_HELP)
    collection.add_collection(parser)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0, or 1 if something is amiss."""
    check_installed("rich", *collection.packages(arguments.url))
    console = Console()
    with collection.opened(arguments.url, arguments.collection) as engine:
        found = collection.described(engine)
    console.show(f"{arguments.collection} in {engine.shown}", whole=True)
    amiss = collection.show(found, console)
    if amiss:
        console.show(f"\nAmiss: {amiss}")
    return 1 if amiss else 0

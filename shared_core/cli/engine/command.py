"""The ``engine`` subcommand: its options, and a look at a collection."""

from __future__ import annotations

import argparse

from shared_core.cli import collection_report as report
from shared_core.cli import filling, options
from shared_core.cli.console import Console
from shared_core.cli.installed import TABLES, check_installed


def add_parser(subcommands: options.Subparsers, purpose: str) -> None:
    """Add ``engine`` and its options."""
    parser = subcommands.add_parser(
        "engine",
        help=purpose,
        description="Show how much a collection holds, the options it was made with, and what to "
        "do if something is amiss (the exit status is then 1).",
    )
    parser.add_argument("url", metavar="URL", help=filling.URL_HELP)
    parser.add_argument("--collection", default="posrag", help=f"{filling.COLLECTION_HELP} "
        "(default: posrag)")  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0, or 1 if something is amiss."""
    check_installed(TABLES)
    console = Console()
    with filling.opened(arguments.url, arguments.collection) as engine:
        found = engine.describe()
    if found is None:
        raise ValueError(
            f"there is no collection {arguments.collection!r} in {engine.shown}: give --collection "
            "the name of another, or make it with posrag index"
        )
    console.show(f"{arguments.collection} in {engine.shown}", whole=True)
    for line in report.lines(found):
        console.show(line)
    advice = report.advice(found)
    if advice:
        console.show(f"\nAmiss: {advice}")
    return 1 if advice else 0

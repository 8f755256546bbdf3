"""``posrag engine``: what a collection of a database holds."""

from __future__ import annotations

import argparse

from shared_core.cli import collection, options

DESCRIPTION = (
    "Show how much a collection holds, the options it was made with, and what to do if something "
    "is amiss (the exit status is then 1)."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the collection and where it is."""
    parser.add_argument("url", metavar="URL", help=options.URL_HELP)
    options.add(parser.add_argument_group("data"), "collection")


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0, or 1 if something is amiss."""
    return collection.show(arguments.url, arguments.collection)

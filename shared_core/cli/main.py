"""Entry point of the ``posrag`` command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from shared_core import PosragError, __version__
from shared_core.cli.console import fail
from shared_core.cli.streams import ReaderGoneError, writing_results

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    Parameters
    ----------
    argv
        Arguments without the program's name; those of the process by default.

    Returns
    -------
    int
        0: done, or nobody reads the results any more. 1: done, and the answer is no. 2: bad input
        or a missing part, said in one line on stderr. 130: interrupted. Where stderr cannot be
        written, nothing is said there, and the status is the same.
    """
    try:
        return _run(argv)
    except KeyboardInterrupt as interrupt:
        fail(f"interrupted{''.join(f'; {detail}' for detail in interrupt.args)}")
        return EXIT_INTERRUPTED
    except ReaderGoneError:
        return 0
    except (PosragError, ValueError, OSError) as error:
        fail(str(error))
        return EXIT_ERROR


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parser().parse_args(argv)
        status: int = arguments.run(arguments)
        return status
    finally:
        with writing_results():
            pass  # what argparse has printed is still in the buffer


class _Parser(argparse.ArgumentParser):
    """Takes no option for another one that it begins: ``--n`` is never ``--name``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)


def _parser() -> argparse.ArgumentParser:
    # Here, because an interrupt may come while they are imported.
    from shared_core.cli import attention, compare, demo, probe, reproduce

    parser: argparse.ArgumentParser = _Parser(
        prog="posrag", description="Where retrieved passages go in a prompt, and why."
    )
    parser.add_argument("--version", action="version", version=f"posrag {__version__}")
    subcommands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (demo, probe, attention, compare, reproduce):
        command.add_parser(subcommands)
    return parser

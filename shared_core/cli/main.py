"""Entry point of the ``posrag`` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from shared_core import PosragError, __version__
from shared_core.cli import attention, compare, demo, probe, reproduce
from shared_core.cli.console import fail

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
        0: done. 1: done, and the answer is no. 2: bad input or a missing part, said in one line
        on stderr. 130: interrupted.
    """
    arguments = _parser().parse_args(argv)
    try:
        status: int = arguments.run(arguments)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except KeyboardInterrupt as interrupt:
        fail(f"interrupted{''.join(f'; {detail}' for detail in interrupt.args)}")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has gone, as in `posrag demo | head`; keep the exit from flushing again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (PosragError, ValueError, OSError) as error:
        fail(str(error))
        return EXIT_ERROR


class _Parser(argparse.ArgumentParser):
    """Takes no option for another one that it begins: ``--n`` is never ``--name``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)


def _parser() -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = _Parser(
        prog="posrag", description="Where retrieved passages go in a prompt, and why."
    )
    parser.add_argument("--version", action="version", version=f"posrag {__version__}")
    subcommands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    demo.add_parser(subcommands)
    probe.add_parser(subcommands)
    attention.add_parser(subcommands)
    compare.add_parser(subcommands)
    reproduce.add_parser(subcommands)
    return parser

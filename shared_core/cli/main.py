"""Entry point of the ``posrag`` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from shared_core import PosragError, __version__
from shared_core.cli.console import fail
from shared_core.cli.streams import ReaderGoneError, show_unencodable, writing_results

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
        or a missing part, reported in one line on stderr. 130: interrupted. The status is the same
        if stderr cannot be written.
    """
    show_unencodable()
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
    arguments = _parser().parse_args(argv)
    status: int = arguments.run(arguments)
    return status


class _Parser(argparse.ArgumentParser):
    """Does not accept abbreviated options: ``--n`` is never ``--name``."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse the arguments; those that a subcommand does not know are its own error."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse prints everything by this method, and ignores errors of writing.
        if file is None or file is not sys.stdout:
            super()._print_message(message, file)
            return
        with writing_results():
            file.write(message)


def _parser() -> argparse.ArgumentParser:
    # Imported here, since an interrupt may come meanwhile.
    from shared_core.cli import attention, compare, demo, probe, reproduce
    from shared_core.native import kernels

    by = "compiled kernels" if kernels.built else "kernels by numpy, as none were compiled"
    parser: argparse.ArgumentParser = _Parser(
        prog="posrag", description="Where retrieved passages go in a prompt, and why."
    )
    parser.add_argument("--version", action="version", version=f"posrag {__version__} ({by})")
    subcommands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (demo, probe, attention, compare, reproduce):
        command.add_parser(subcommands)
    return parser

"""Entry point of the ``posrag`` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from textwrap import fill
from typing import Any

from shared_core import __version__
from shared_core.cli.console import ReaderGoneError, fail, show_unencodable, writing_results
from shared_core.errors import PosragError

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130

COMMANDS = {
    "demo": ("ask the PyTorch API, or your own files, a question", "demo --data FOLDER"),
    "probe": ("measure a model's position sensitivity", "probe my_app:llm --k 3,5,10"),
    "attention": (
        "measure where a local model looks, and save its positional curve",
        "attention Qwen/Qwen2.5-0.5B-Instruct --n 20",
    ),
    "compare": (
        "compare orders of the passages on your own questions",
        "compare --data mine.jsonl --model my_app:llm --output report",
    ),
    "tune": (
        "choose the fusion weight by labelled questions",
        "tune --data labelled.jsonl --documents documents.jsonl",
    ),
    "reproduce": ("run the experiments of a paper", "reproduce caus"),
    "index": (
        "put documents into a collection of a database",
        "index --data documents.jsonl --engine qdrant://localhost:6333",
    ),
    "engine": ("show what a collection of a database holds", "engine postgresql://localhost/app"),
    "doctor": ("show what is installed, and check an index, a profile or a database", "doctor"),
}
"""Subcommand -> what it does, and an example.

Each is a module with a ``DESCRIPTION``, ``add_options`` and ``run``, imported once it is named.
"""


FIRST = """\
what to do first:
  posrag demo --data FOLDER          what hybrid search and placement do, on your own files
  posrag probe my_app:llm            where does my model read?
  posrag compare --data mine.jsonl --model my_app:llm --output report
                                     does another order help, on my questions?
  posrag doctor                      what is installed here, and what is missing?
"""


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
        fail(_noted(interrupt, "interrupted", *interrupt.args))
        return EXIT_INTERRUPTED
    except ReaderGoneError:
        return 0
    except OSError as error:
        fail(_noted(error, f"{error.filename}: {error.strerror}" if error.filename else str(error)))
        return EXIT_ERROR
    except (PosragError, ValueError) as error:
        fail(_noted(error, str(error)))
        return EXIT_ERROR


def _noted(error: BaseException, *told: str) -> str:
    """Return what is told of an error, and what was noted on its way."""
    return "; ".join([*told, *getattr(error, "__notes__", ())])


def _run(argv: Sequence[str] | None) -> int:
    arguments = [*(sys.argv[1:] if argv is None else argv)] or ["--help"]
    parsed = _parser(arguments[0]).parse_args(arguments)
    status: int = parsed.run(parsed)
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


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Say what does the searching, too: without a compiler it is slower, but silent."""
        from shared_core.native import kernels

        by = "compiled kernels" if kernels.built else "kernels by numpy, as none were compiled"
        parser._print_message(f"posrag {__version__} ({by})\n", sys.stdout)
        parser.exit()


def _parser(first: str) -> argparse.ArgumentParser:
    """Return the parser of a command line that begins with `first`."""
    parser: argparse.ArgumentParser = _Parser(
        prog="posrag",
        description="Where retrieved passages go in a prompt, and why.",
        epilog=FIRST,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    subcommands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, (purpose, example) in COMMANDS.items():
        subparser = subcommands.add_parser(name, help=purpose)
        if name == first:
            command = import_module(f"shared_core.cli.{name}")
            told = fill(command.DESCRIPTION, 80)
            subparser.description = f"example: posrag {example}\n\n{told}"
            subparser.formatter_class = argparse.RawDescriptionHelpFormatter
            subparser.set_defaults(run=command.run)
            command.add_options(subparser)
    return parser

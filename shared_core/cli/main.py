"""Entry point of the ``posrag`` command."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from textwrap import fill

from shared_core import __version__
from shared_core.cli.console import ReaderGoneError, fail, show_unencodable, writing_results
from shared_core.errors import PosragError

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130

RESUMED = (
    "the next run goes on with the answers, vectors and documents that are kept (posrag attention "
    "keeps none)"
)
"""Said of an interruption that does not tell by itself what is kept."""

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
        0: done, or nobody reads the results any more, as in ``posrag demo | head``. 1: done, and
        the answer is no. 2: bad input or a missing part, reported in one line on stderr. 130:
        interrupted.
    """
    show_unencodable()
    try:
        try:
            arguments = [*(sys.argv[1:] if argv is None else argv)] or ["--help"]
            parsed = _parser(arguments[0]).parse_args(arguments)
            status: int = parsed.run(parsed)
            return status
        finally:
            with writing_results():
                pass
    except KeyboardInterrupt as interrupt:
        told = _noted(interrupt, *interrupt.args) or RESUMED
        fail(f"interrupted; {told}")
        return EXIT_INTERRUPTED
    except ReaderGoneError:  # the interpreter flushes once more, on exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        fail(_noted(error, f"{error.filename}: {error.strerror}" if error.filename else str(error)))
    except (PosragError, ValueError) as error:
        fail(_noted(error, str(error)))
    except ImportError as error:
        fail(f"{error}; posrag doctor shows what is missing")
    return EXIT_ERROR


def _noted(error: BaseException, *told: str) -> str:
    """Return what is told of an error, and what was noted on its way."""
    return "; ".join([*told, *getattr(error, "__notes__", ())])


def _parser(first: str) -> argparse.ArgumentParser:
    """Return the parser of a command line that begins with `first`."""
    parser = argparse.ArgumentParser(
        prog="posrag",
        description="Where retrieved passages go in a prompt, and why.",
        epilog=FIRST,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"posrag {__version__}")
    subcommands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, (purpose, example) in COMMANDS.items():
        subparser = subcommands.add_parser(name, help=purpose, allow_abbrev=False)
        if name == first:
            command = import_module(f"shared_core.cli.{name}")
            told = fill(command.DESCRIPTION, 80)
            subparser.description = f"example: posrag {example}\n\n{told}"
            subparser.formatter_class = argparse.RawDescriptionHelpFormatter
            subparser.set_defaults(run=command.run)
            command.add_options(subparser)
    return parser

"""Options that several subcommands share, and how their values are read."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TypeAlias

from shared_core.cli.embedding import default_model
from shared_core.cli.files import default_cache
from shared_core.cli.models import UNNOTICED
from shared_core.evaluation.graders import MEANINGS
from shared_core.files import not_utf8
from shared_core.generation.responses import MAX_FAILED
from shared_core.generation.templates import ABSTENTION, PromptTemplate

Options: TypeAlias = "argparse._ActionsContainer"
"""What options are added to: a parser, or a group of one."""

GRADERS_HELP = "graders, from 0 (wrong) to 1 (right):\n" + "".join(
    f"  {name:8} {meaning}\n" for name, meaning in MEANINGS.items()
)
"""Printed below the options of a command that grades; see `shared_core.evaluation.GRADERS`."""


EMBEDDING_HELP = "embedding model: a folder or a hub name (default: all-MiniLM-L6-v2)"
DOCUMENTS_HELP = "JSON lines with id and text: what to retrieve from"
TEMPLATE_HELP = "file with a prompt that contains {context} and {question}"


def add_asking(parser: Options) -> None:
    """Add the options of how a model is asked."""
    add = parser.add_argument
    add("--concurrency", type=int, help="calls in parallel (default: depends on the model)")
    add("--attempts", type=int, default=8, help="attempts at a call that fails for a temporary "
        "reason, such as a rate limit (default: 8)")  # fmt: skip
    add("--max-failed", type=float, default=MAX_FAILED, help="share of the questions that the "
        f"model may fail on; they are left out (default: {MAX_FAILED:g})")  # fmt: skip
    add("--batch-size", type=int, help="prompts per call (default: depends on the model)")
    add("--max-new-tokens", type=int, default=64, help="longest answer of a Hugging Face model or "
        "an endpoint, in tokens (default: 64)")  # fmt: skip
    add_endpoint(parser)


def add_endpoint(parser: Options) -> None:
    """Add the address of an endpoint, and how long it may take."""
    add = parser.add_argument
    add("--base-url", help="address of an OpenAI-compatible endpoint, such as "
        "http://localhost:8000/v1 (default: $OPENAI_BASE_URL, or else OpenAI's)")  # fmt: skip
    add("--timeout", type=seconds, default=60.0, help="seconds that an answer of an endpoint may "
        "take; where answers time out, raise it or lower --concurrency (default: 60)")  # fmt: skip


def add_embedding(parser: Options) -> None:
    """Add the embedding model, and where its vectors are kept."""
    add = parser.add_argument
    add("--embedding", default=default_model(), help=EMBEDDING_HELP)
    add_cache(parser)


def add_cache(parser: Options) -> None:
    """Add the folder of the vectors."""
    parser.add_argument("--cache", type=path, default=default_cache(), help="folder where vectors "
        "are kept (default: posrag in $XDG_CACHE_HOME or ~/.cache)")  # fmt: skip


def add_name(parser: Options) -> None:
    """Add what the model is called."""
    parser.add_argument("--name", type=given, help="name to use for the model (default: its own)")


def add_psi(parser: Options) -> None:
    """Add what is known of the model that reads the passages."""
    parser.add_argument("--psi", type=number_or_name, default="always", help="what is known of "
        "the model that reads the passages: its position sensitivity index, a saved profile (path "
        "or name), or always or never to place them (default: always)")  # fmt: skip


def add_fresh_and_plan(parser: Options) -> None:
    """Add the option that asks again, and the one that stops before anything is asked."""
    parser.add_argument("--fresh", action="store_true", help="begin a new file of the "
        f"model's answers, as after a change in {UNNOTICED}; a change in the model's own module or "
        "settings is noticed without it. The former file is kept beside it, with the date in its "
        "name")  # fmt: skip
    parser.add_argument("--plan", action="store_true", help="only report what asking the model "
        "would cost")  # fmt: skip


def check_plan(arguments: argparse.Namespace) -> None:
    """Raise ValueError if answers are to be asked afresh although nothing is asked."""
    if arguments.plan and arguments.fresh:
        raise ValueError("--plan asks nothing, and --fresh asks all again: take one of them")


def add_abstain_template(parser: Options, use: str) -> None:
    """Add the prompt that lets the model abstain; `use` says what for."""
    parser.add_argument("--abstain-template", type=path, help="file with a prompt that contains "
        "{context} and {question} and allows the model to abstain by saying "
        f"{ABSTENTION}, for {use} (default: posrag's own)")  # fmt: skip


def open_template(file: Path | None) -> PromptTemplate | None:
    """Return the prompt in a file, if one is given.

    Raises
    ------
    ValueError
        If its text is not a prompt with a place for the passages and one for the question.
    OSError
        If it cannot be read.
    """
    if file is None:
        return None
    try:
        return PromptTemplate(file.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        reason = not_utf8(error) if isinstance(error, UnicodeDecodeError) else error
        raise ValueError(f"{file}: {reason}") from error


def given(text: str) -> str:
    """Read a text that is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def path(text: str) -> Path:
    """Read a path; an empty one would become the working directory."""
    return Path(given(text))


def seconds(text: str) -> float:
    """Read a time that is not over at once, and not endless."""
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if not 0 < time < math.inf:
        raise argparse.ArgumentTypeError(f"a positive number of seconds, got {text!r}")
    return time


def names(text: str) -> tuple[str, ...]:
    """Read comma-separated names."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def numbers(text: str) -> tuple[int, ...]:
    """Read comma-separated whole numbers."""
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers, as in 5,10, got {text!r}") from None


def number_or_name(text: str) -> float | str:
    """Read a number, or a text that names something instead."""
    try:
        return float(text)
    except ValueError:
        return text

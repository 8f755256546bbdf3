"""Options that several subcommands share, and how their values are read."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeAlias

from shared_core.cli.embedding import default_model
from shared_core.cli.models import RERANKER_HELP, UNNOTICED
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
URL_HELP = "address of a database, such as postgresql://user@host:5432/database"

ENDPOINT = ("base-url", "timeout")
"""Where an endpoint is, and how long it may take."""

ASKING = ("concurrency", "attempts", "max-failed", "batch-size", "max-new-tokens", *ENDPOINT)
"""How a model is asked."""

COST = ("fresh", "plan")


def path(text: str) -> Path:
    """Read a path; an empty one, as of a shell's variable that is not set, would be the folder."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


def prompt(text: str) -> PromptTemplate:
    """Read a prompt from a file.

    Raises
    ------
    argparse.ArgumentTypeError
        If its text is not a prompt with a place for the passages and one for the question.
    OSError
        If it cannot be read.
    """
    try:
        return PromptTemplate(Path(text).read_text(encoding="utf-8-sig"))
    except ValueError as error:
        reason = not_utf8(error) if isinstance(error, UnicodeDecodeError) else error
        raise argparse.ArgumentTypeError(f"{text}: {reason}") from error


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


SHARED: Mapping[str, Mapping[str, Any]] = {
    "n": {"type": int, "help": "number of questions (default: all)"},
    "seed": {"type": int, "default": 0, "help": "seed of questions, shuffles and intervals "
        "(default: 0)"},
    "documents": {"type": path, "help": "JSON lines with id and text: what to retrieve from"},
    "template": {"type": prompt, "help": "file with a prompt that contains {context} and "
        "{question}"},
    "abstain-template": {"type": prompt, "dest": "abstain", "help": "file with a prompt that "
        "contains {context} and {question} and allows the model to abstain by saying "
        f"{ABSTENTION}, for distracting effects (default: posrag's own)"},
    "embedding": {"default": default_model(), "help": EMBEDDING_HELP},
    "cache": {"type": path, "help": "folder where vectors are kept "
        "(default: posrag in $XDG_CACHE_HOME or ~/.cache)"},
    "reranker": {"help": RERANKER_HELP},
    "collection": {"default": "posrag", "help": "name of the collection in the database (default: "
        "posrag)"},
    "name": {"help": "name to use for the model, under which profile and answers are kept "
        "(default: its own)"},
    "fresh": {"action": "store_true", "help": "begin a new file of the model's answers, as after "
        f"a change in {UNNOTICED}; a change in the model's own module or settings is noticed "
        "without it. The former file is kept beside it, with the date in its name"},
    "plan": {"action": "store_true", "help": "only report what asking the model would cost"},
    "concurrency": {"type": int, "help": "calls in parallel (default: depends on the model)"},
    "attempts": {"type": int, "default": 8, "help": "attempts at a call that fails for a "
        "temporary reason, such as a rate limit (default: 8)"},
    "max-failed": {"type": float, "default": MAX_FAILED, "help": "share of the questions that the "
        f"model may fail on; they are left out (default: {MAX_FAILED:g})"},
    "batch-size": {"type": int, "help": "prompts per call (default: depends on the model)"},
    "max-new-tokens": {"type": int, "default": 64, "help": "longest answer of a Hugging Face "
        "model or an endpoint, in tokens (default: 64)"},
    "base-url": {"help": "address of an OpenAI-compatible endpoint, such as "
        "http://localhost:8000/v1 (default: $OPENAI_BASE_URL, or else OpenAI's)"},
    "timeout": {"type": float, "default": 60.0, "help": "seconds that an answer of an endpoint "
        "may take; where answers time out, raise it or lower --concurrency (default: 60)"},
}  # fmt: skip
"""Name of an option -> what argparse is told of it."""


def add(parser: Options, *names: str) -> None:
    """Add options of `SHARED`."""
    for name in names:
        parser.add_argument(f"--{name}", **SHARED[name])


def fields_of(made: type, arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that are fields of what is made by them, of those that are given."""
    given = vars(arguments)
    return {
        each.name: given[each.name] for each in fields(made) if given.get(each.name) is not None
    }

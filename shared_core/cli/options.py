"""Options that several subcommands share, and how their values are read."""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import fill
from typing import Any, TypeAlias

from shared_core.cli.console import UNNOTICED
from shared_core.cli.embedding import default_model
from shared_core.cli.files import check_readable, default_cache
from shared_core.evaluation.answers import MEANINGS
from shared_core.generation.templates import ABSTENTION, PromptTemplate
from shared_core.json_lines import not_utf8

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
"""What a subcommand is added to; argparse has no public name for it."""

GRADERS_HELP = "graders, from 0 (wrong) to 1 (right):\n" + "".join(
    f"  {name:8} {meaning}\n" for name, meaning in MEANINGS.items()
)
"""Stands below the options of a command that grades; see `shared_core.evaluation.GRADERS`."""


BASE_URL = (
    "address of an OpenAI-compatible endpoint, such as http://localhost:8000/v1 (default: "
    "$OPENAI_BASE_URL, else OpenAI's)"
)
"""Help of the option that names a server."""


def with_graders(description: str) -> dict[str, Any]:
    """Return what a parser takes to show a description, and the graders below its options."""
    return {
        "description": fill(description, 80),
        "epilog": GRADERS_HELP,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def add_asking(parser: argparse.ArgumentParser) -> None:
    """Add the options of how a model is asked."""
    add = parser.add_argument
    add("--concurrency", type=int, help="calls at once (default: what suits the model)")
    add("--attempts", type=int, default=8, help="tries of a call that fails for a passing reason, "
        "such as a rate limit (default: 8)")  # fmt: skip
    add("--batch-size", type=int, help="prompts in a call (default: what suits the model)")
    add("--max-new-tokens", type=int, default=64, help="longest answer of a Hugging Face model or "
        "an endpoint, in tokens (default: 64)")  # fmt: skip
    add("--base-url", help=BASE_URL)


def add_embedding(parser: argparse.ArgumentParser, cached: str) -> None:
    """Add the embedding model, and a folder; `cached` says what of the model's is there."""
    add = parser.add_argument
    add("--embedding", default=default_model(), help="embedding model: a folder or a hub name "
        "(default: all-MiniLM-L6-v2)")  # fmt: skip
    add("--cache", type=path, default=default_cache(), help=f"folder {cached} (default: posrag in "
        "$XDG_CACHE_HOME or ~/.cache)")  # fmt: skip


def add_fresh(parser: argparse.ArgumentParser) -> None:
    """Add the option that asks again."""
    parser.add_argument("--fresh", action="store_true", help="ask again what has been answered "
        f"before: a change of {UNNOTICED} is not noticed, one of the model's own module or "
        "settings is")  # fmt: skip


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the option that stops before the model is asked."""
    parser.add_argument("--plan", action="store_true", help="only say what asking the model would "
        "cost")  # fmt: skip


def check_plan(arguments: argparse.Namespace) -> None:
    """Raise ValueError if what is kept is to be forgotten, and nothing asked."""
    if arguments.plan and arguments.fresh:
        raise ValueError("--plan asks nothing, and --fresh forgets what is kept: take one of them")


def add_abstain_template(parser: argparse.ArgumentParser, use: str) -> None:
    """Add the prompt that gives leave to abstain; `use` says what it serves."""
    parser.add_argument("--abstain-template", type=path, help="file with a prompt that holds "
        "{context} and {question} and gives leave to abstain by saying "
        f"{ABSTENTION}, for {use} (default: posrag's own prompt, with that leave)")  # fmt: skip


def open_template(file: Path | None, option: str = "") -> PromptTemplate | None:
    """Return the prompt in a file, if there is a file; `option` is the one that named it.

    Raises
    ------
    ValueError
        If the file cannot be read, or holds no prompt with a place for the passages and one for
        the question.
    """
    if file is None:
        return None
    check_readable(file, option)
    try:
        return PromptTemplate(file.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: {not_utf8(error)}") from error
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error


def given(text: str) -> str:
    """Read a text that is not empty."""
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def path(text: str) -> Path:
    """Read a path; of an empty one ``Path`` would make the working directory."""
    return Path(given(text))


def names(text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def psi(text: str) -> float | str:
    """Read a position sensitivity index, or what stands for one."""
    try:
        return float(text)
    except ValueError:
        return text

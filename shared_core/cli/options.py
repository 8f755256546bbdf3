"""Options that several subcommands share, and how their values are read."""

from __future__ import annotations

import argparse


def add_asking(parser: argparse.ArgumentParser) -> None:
    """Add the options of how a model is asked."""
    add = parser.add_argument
    add("--concurrency", type=int, help="calls at once (default: what suits the model)")
    add("--attempts", type=int, default=8, help="tries of a call that fails for a passing reason, "
        "such as a rate limit (default: 8)")  # fmt: skip
    add("--batch-size", type=int, help="prompts in a call (default: what suits the model)")
    add("--max-new-tokens", type=int, default=64, help="longest answer of a Hugging Face model or "
        "an endpoint, in tokens (default: 64)")  # fmt: skip
    add("--base-url", help="address of an OpenAI-compatible endpoint")


def names(text: str) -> tuple[str, ...]:
    """Read names with commas between them."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def psi(text: str) -> float | str:
    """Read a position sensitivity index, or what stands for one."""
    try:
        return float(text)
    except ValueError:
        return text

"""Questions that a model fails on: how many may."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared_core.errors import GenerationError
from shared_core.wording import counted

MAX_FAILED = 0.1
"""Share of the questions that may fail by default."""


def check_max_failed(share: float) -> None:
    """Raise ValueError if the share of questions that may fail does not lie in [0, 1)."""
    if not 0 <= share < 1:
        raise ValueError(f"max_failed must lie in [0, 1), got {share}")


def check_failed(reasons: Sequence[str], total: int, max_failed: float, where: str = "") -> None:
    """Check that not too many questions have failed.

    Parameters
    ----------
    reasons
        Why, one for each question that has failed.
    total
        How many questions there are, >= 1.
    max_failed
        Share of them that may fail, in [0, 1).
    where
        Which questions those are, or which model, for the error.

    Raises
    ------
    GenerationError
        If more have failed; the message ends with the last reason.
    """
    if len(reasons) / total > max_failed:
        have = "has" if len(reasons) == 1 else "have"
        raise GenerationError(
            f"{len(reasons)} of {counted(total, 'question')} {have} failed"
            f"{f' ({where})' if where else ''}, which is more than max_failed={max_failed:g} "
            f"(--max-failed) allows; the last one: {reasons[-1]}"
        )


def empty_lines(empty: int, total: int) -> Iterator[str]:
    """Say how many of all answers are empty, if any: a refusal can look like that, too."""
    if empty:
        verb = "is empty and counts" if empty == 1 else "are empty and count"
        yield f"{empty:,} of {counted(total, 'answer')} {verb} as wrong."

"""Models for ``posrag compare``, named as module:attribute."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from tests.core.comparison.making import last

__all__ = ["last"]


def interrupted(prompts: Sequence[str]) -> list[str]:
    """Answer like `last`, count the prompts in a file, and be interrupted or killed after some."""
    log = Path(os.environ["POSRAG_TEST_CALLS"])
    before = len(log.read_text()) if log.exists() else 0
    log.write_text("." * (before + len(prompts)))
    if before < int(os.environ["POSRAG_TEST_INTERRUPT_AT"]) <= before + len(prompts):
        os.kill(os.getpid(), getattr(signal, os.environ["POSRAG_TEST_SIGNAL"]))
        time.sleep(5)
    return last(prompts)


def shortest_last(question: str, texts: Sequence[str]) -> list[float]:
    """Rank texts by their lengths."""
    return [float(len(text)) for text in texts]


def broken(prompts: Sequence[str]) -> list[str]:
    """Raise what a model's own code may raise."""
    raise RuntimeError("the weights are gone")

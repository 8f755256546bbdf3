"""Counts what a model is asked, and interrupts or kills its process on the way."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path


def count(prompts: Sequence[str]) -> None:
    """Write a dot a prompt into a file, and be interrupted or killed after some."""
    log = Path(os.environ["POSRAG_TEST_CALLS"])
    before = len(log.read_text()) if log.exists() else 0
    log.write_text("." * (before + len(prompts)))
    if before < int(os.environ["POSRAG_TEST_INTERRUPT_AT"]) <= before + len(prompts):
        os.kill(os.getpid(), getattr(signal, os.environ.get("POSRAG_TEST_SIGNAL", "SIGINT")))
        time.sleep(5)

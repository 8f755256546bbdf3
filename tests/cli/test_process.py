"""The command as its own process, which is killed."""

from __future__ import annotations

import re
import signal
from pathlib import Path

from tests.cli.conftest import process

START = "import runpy; runpy.run_module('tests.cli.part_of_the_corpus', run_name='__main__')"


def test_what_a_killed_run_has_embedded_is_not_embedded_again(tmp_path: Path) -> None:
    command = ["demo", "--cache", str(tmp_path)]
    killed = process(*command, start=START, POSRAG_TEST_KILL_AFTER="1")
    assert killed.returncode == -signal.SIGKILL
    resumed = process(*command, start=START, POSRAG_TEST_KILL_AFTER="never")
    assert resumed.returncode == 0, resumed.stderr
    assert re.search(r"Embedding \d+ texts .*; 32 others are kept", resumed.stderr)

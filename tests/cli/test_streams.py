"""The standard streams as its own process has them: a reader that has gone, a disk that is full."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

pytest.importorskip("rich")

from tests.cli.conftest import process, written

FULL = Path("/dev/full")
needs_a_full_disk = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


@pytest.fixture
def gone() -> Iterator[IO[str]]:
    """A pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as file:
        yield file


@pytest.fixture
def comparison(tmp_path: Path) -> list[str]:
    """The arguments of a small comparison."""
    line = {"question": "What has thing 1?", "answers": ["1x0"], "gold": 0}
    documents = ["thing 1 has 1x0", "thing 1 has 1x1"]
    data = written(tmp_path / "questions.jsonl", [{**line, "documents": documents}])
    output = str(tmp_path / "report")
    model = "tests.cli.comparing:last"
    return ["compare", "--data", str(data), "--model", model, "--output", output]


@needs_a_full_disk
def test_results_that_cannot_be_shown_are_an_error_that_says_so(
    comparison: list[str], tmp_path: Path
) -> None:
    """After the report, which is on another disk, is written."""
    with FULL.open("w") as full:
        finished = process(*comparison, stdout=full)
    assert finished.returncode != 0
    assert "posrag: [Errno 28] No space left on device" in finished.stderr.splitlines()
    assert (tmp_path / "report" / "comparison.html").exists()


def test_characters_that_a_stream_cannot_show_do_not_end_the_work(
    comparison: list[str], tmp_path: Path
) -> None:
    """The log of a service, say: in ASCII, while the path of the report is not."""
    output = tmp_path / "report für später"
    comparison[comparison.index("--output") + 1] = str(output)
    finished = process(*comparison, PYTHONIOENCODING="ascii")
    assert finished.returncode == 0, finished.stderr
    assert r"report f\xfcr sp\xe4ter" in finished.stdout


def test_results_that_nobody_reads_are_no_error_and_messages_are(
    comparison: list[str], gone: IO[str]
) -> None:
    """A run whose messages are lost must not end as if it were done."""
    for arguments in (comparison, ["--help"], ["doctor"]):
        finished = process(*arguments, stdout=gone)
        assert finished.returncode == 0
        assert "Err" not in finished.stderr
    assert process(*comparison, stderr=gone).returncode != 0

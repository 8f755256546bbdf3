"""The command on a part of the real corpus, with a cheap embedding that counts its work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")

from shared_core import Passage
from shared_core.arrays import Vectors
from shared_core.cli import demo as command
from shared_core.cli import main
from shared_core.corpora import torch_api_passages
from shared_core.index.tokenize import tokenize


@pytest.fixture(autouse=True)
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's own profiles, answers and vectors out of the tests."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path / "profiles"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path / "profiles"


def written(path: Path, lines: Sequence[object]) -> Path:
    """Write lines, as JSON unless they are texts."""
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts))
    return path


def said(capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    """Return stdout and stderr with every run of white space as one space."""
    captured = capsys.readouterr()
    return " ".join(captured.out.split()), " ".join(captured.err.split())


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that ends in bad input; return the one line that says so."""
    assert main.main(arguments) == 2
    out, err = capsys.readouterr()
    line = err.splitlines()[-1]
    assert line.startswith("posrag: ")
    assert out == ""
    return line


START = "import sys; from shared_core.cli.main import main; sys.exit(main())"


def process(
    *arguments: str,
    stdout: IO[str] | int = subprocess.PIPE,
    stderr: IO[str] | int = subprocess.PIPE,
    **variables: object,
) -> subprocess.CompletedProcess[str]:
    """Run the command as its own process, with these variables in its environment too."""
    return subprocess.run(
        [sys.executable, "-c", START, *arguments],
        env={**os.environ, **{name: str(value) for name, value in variables.items()}},
        stdout=stdout,
        stderr=stderr,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )


@dataclass
class CountingModel:
    """Stands for `EmbeddingModel`: hashed words, and a log of the texts it embedded."""

    name: str = "counting"
    label: str = "counting"
    seed: int = 0
    embedded: list[str] = field(default_factory=list)
    interrupt_after: int | None = None

    @property
    def fingerprint(self) -> str:
        return self.name

    def load(self) -> None:
        """There is nothing to load."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        if self.interrupt_after is not None and len(self.embedded) >= self.interrupt_after:
            raise KeyboardInterrupt
        self.embedded.extend(texts)
        vectors = np.zeros((len(texts), 32), np.float32)
        for row, text in enumerate(texts):
            for token in tokenize(text):
                vectors[row, zlib.crc32(f"{self.seed}{token}".encode()) % 32] += 1
        unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str


@dataclass
class Demo:
    """Runs ``posrag demo`` in this process; `model` stays the same from run to run."""

    cache: Path
    passages: list[Passage]
    capsys: pytest.CaptureFixture[str]
    model: CountingModel = field(default_factory=CountingModel)

    def __call__(self, *arguments: str, cache: Path | None = None) -> Outcome:
        self.model.embedded.clear()
        status = main.main(["demo", "--cache", str(cache or self.cache), *arguments])
        return Outcome(status, *self.capsys.readouterr())

    def embedded_passages(self) -> int:
        texts = {passage.text for passage in self.passages}
        return sum(text in texts for text in self.model.embedded)


@pytest.fixture(scope="session")
def some_passages() -> list[Passage]:
    """One entry in twelve of the real corpus, 150 or so."""
    return torch_api_passages()[::12]


@pytest.fixture
def demo(
    tmp_path: Path,
    some_passages: list[Passage],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Demo:
    built = Demo(tmp_path / "cache", some_passages, capsys)
    monkeypatch.setattr(command, "torch_api_passages", lambda: built.passages)
    monkeypatch.setattr(command, "EmbeddingModel", lambda name: built.model)
    return built

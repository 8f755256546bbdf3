"""``posrag index`` and ``engine``, and ``demo --engine``, on a real PostgreSQL."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shared_core import connect
from shared_core.arrays import Vectors
from shared_core.cli import collection
from shared_core.cli import index as command
from shared_core.cli.main import main
from shared_core.corpora import torch_api_passages

from .conftest import CountingModel, said, written

psycopg = pytest.importorskip("psycopg")
PASSAGES = [*torch_api_passages()[:300]]


def lines(n: int = len(PASSAGES)) -> list[dict[str, Any]]:
    return [
        {"id": p.id, "text": p.text, "metadata": {"n": at}} for at, p in enumerate(PASSAGES[:n])
    ]


@dataclass
class Index:
    """Runs ``posrag index`` in this process, on a collection of the test's own."""

    url: str
    file: Path
    collection: str
    model: CountingModel = field(default_factory=CountingModel)

    def __call__(self, data: Sequence[object], *options: str) -> int:
        self.model.embedded.clear()
        written(self.file, data)
        given = ["--engine", self.url, "--collection", self.collection, *options]
        return main(["index", "--data", str(self.file), *given])

    def texts(self) -> set[str]:
        """Return which of the passages' texts were embedded."""
        return {*self.model.embedded} & {passage.text for passage in PASSAGES}


@pytest.fixture
def index(
    postgres: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Index:
    built = Index(postgres, tmp_path / "docs.jsonl", request.node.name)
    monkeypatch.setattr(command, "EmbeddingModel", lambda name: built.model)
    return built


def test_an_interrupted_run_goes_on(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that is there is embedded again, but once to check the model."""

    class Interrupted(CountingModel):
        def embed(self, texts: Sequence[str]) -> Vectors:
            if len(self.embedded) >= collection.BATCH:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            return super().embed(texts)

    whole, index.model = index.model, Interrupted()
    assert index(lines()) == 130
    assert "interrupted; the next run goes on with" in said(capsys)[1]
    index.model = whole
    assert index(lines()) == 0
    assert "172 documents of 300 added; the collection" in said(capsys)[0]
    assert len(index.texts()) == 172 + 1
    assert index(lines()) == 0
    assert "0 documents of 300 added" in said(capsys)[0]
    assert len(index.texts()) == 1


def test_what_changed_is_replaced(index: Index) -> None:
    """Text or metadata; a file of others is added."""
    index(lines(20))
    changed = [lines(3)[0] | {"text": "anew"}, lines(3)[1] | {"metadata": {"n": -1}}, lines(3)[2]]
    assert index(changed) == 0
    assert index(lines(25)[20:]) == 0
    with connect(index.url, index.collection) as engine:
        assert engine.count() == 25
        found = engine.get([passage.id for passage in PASSAGES[:3]])
        assert [(each.text, each.metadata["n"]) for each in found] == [
            ("anew", 0),
            (PASSAGES[1].text, -1),
            (PASSAGES[2].text, 2),
        ]


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([{"id": "a", "text": "b"}] * 2, "docs.jsonl, line 2: document id 'a' occurs twice"),
        ([], "docs.jsonl holds no documents"),
        ([{"id": "a", "text": "b\0c"}], "cannot contain NUL"),
    ],
)
def test_bad_documents_are_named(
    data: list[object], told: str, index: Index, capsys: pytest.CaptureFixture[str]
) -> None:
    """By file and line, and before any is added."""
    index.collection = "bad documents"
    assert index(data) == 2
    assert told in said(capsys)[1]
    with connect(index.url, index.collection) as engine:
        assert engine.count() == 0


def test_another_embedding_model_is_noticed(
    index: Index, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before its vectors are mixed with those that are there, though they are as long."""
    index(lines(20))
    index.model = CountingModel(seed=1)
    assert index(lines(30)[20:]) == 2
    told = "was filled with another embedding model: by this one, nothing there is as the text of"
    assert told in said(capsys)[1]
    with connect(index.url, index.collection) as engine:
        assert engine.count() == 20


def test_why_a_database_cannot_be_reached_is_told_once(
    postgres: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its own words, which a pool keeps to itself."""
    monkeypatch.setattr(collection, "connect", lambda *given: connect(*given, timeout=4))
    assert main(["engine", postgres.replace("/postgres?", "/nowhere?")]) == 2
    _, error = said(capsys)
    assert error.count('database "nowhere" does not exist') == 1
    assert error.count("does not answer within 4 s") == 1


def test_a_collection_shows_what_is_amiss(index: Index, capsys: pytest.CaptureFixture[str]) -> None:
    """None of that name, and an empty one."""
    show = ["engine", index.url, "--collection", index.collection]
    assert main(show) == 2
    assert f"no collection {index.collection!r} in postgresql://" in said(capsys)[1]
    index(lines(1))
    with connect(index.url, index.collection) as engine:
        engine.delete([PASSAGES[0].id])
    capsys.readouterr()
    assert main(show) == 1
    assert "it is empty: posrag index fills it" in said(capsys)[0]


def test_words_are_weighed_for_the_mean_length_of_all(
    index: Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not for that of the first batch."""
    pytest.importorskip("qdrant_client")
    index.url = f"qdrant://{tmp_path / 'qdrant'}"
    long = " ".join(["long"] * 90)
    data = [{"id": str(at), "text": "short" if at < 200 else long} for at in range(300)]
    assert index(data) == 0
    capsys.readouterr()
    assert main(["engine", index.url, "--collection", index.collection]) == 0
    assert "mean_length 30.6" in said(capsys)[0]

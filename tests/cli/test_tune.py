"""``posrag tune``: what it reads, and that it tunes what it searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared_core.cli import tune as command
from shared_core.cli.main import main
from shared_core.corpora import torch_api_passages, torch_queries
from shared_core.engines import connect

from .conftest import CountingModel, said, written

LABELLED = [{"question": each.query, "gold": each.api} for each in torch_queries()[:30]]
GOLD = {each["gold"] for each in LABELLED}
PASSAGES = [each for at, each in enumerate(torch_api_passages()) if at % 10 == 0 or each.id in GOLD]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> CountingModel:
    found = CountingModel()
    monkeypatch.setattr(command, "EmbeddingModel", lambda name: found)
    return found


def tuned(folder: Path, lines: list[Any], *where: str) -> int:
    data = written(folder / "labelled.jsonl", lines)
    return main(["tune", "--data", str(data), *where, "--cache", str(folder / "cache")])


@pytest.fixture
def documents(tmp_path: Path) -> list[str]:
    lines = [{"id": each.id, "text": each.text} for each in PASSAGES]
    return ["--documents", str(written(tmp_path / "docs.jsonl", lines))]


def test_a_file_and_a_collection_are_tuned_alike(
    tmp_path: Path,
    documents: list[str],
    model: CountingModel,
    postgres: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tuned(tmp_path, LABELLED, *documents) == 0
    told, _ = said(capsys)
    assert f"alpha 0.85 -> 0.65 by {len(LABELLED)} questions" in told
    assert "hit_rates=[" in told
    with connect(postgres, "tuned") as engine:
        engine.add(PASSAGES, model.embed([passage.text for passage in PASSAGES]))
    assert tuned(tmp_path, LABELLED, "--engine", postgres, "--collection", "tuned") == 0
    assert said(capsys)[0] == told
    assert tuned(tmp_path, LABELLED, "--engine", postgres, "--collection", "other") == 2
    assert "there is no collection 'other' in postgresql://" in said(capsys)[1]

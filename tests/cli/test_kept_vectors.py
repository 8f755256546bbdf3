"""``posrag compare``: documents and questions are embedded once for all runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rich")
pytest.importorskip("ir_measures")

from shared_core import PosragError
from shared_core.arrays import Vectors
from shared_core.cli import compare as command
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingModel
from shared_core.cli.embedding_cache import EmbeddingCache
from shared_core.cli.main import main
from shared_core.comparison import ComparisonResult
from tests.cli.conftest import CountingModel, written

N, PLACES = 20, 4


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Where vectors are kept."""
    return tmp_path / "cache" / "posrag"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> CountingModel:
    """Stand for the embedding model of the command."""
    model = CountingModel()
    use(model, monkeypatch)
    return model


def use(model: CountingModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "EmbeddingModel", lambda name: model)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Eighty documents."""
    lines = [
        {"id": f"{number}-{place}", "text": f"thing {number} has {number}x{place}"}
        for number in range(N)
        for place in range(PLACES)
    ]
    return written(tmp_path / "corpus.jsonl", lines)


def compare(corpus: Path, folder: str, *arguments: str) -> int:
    """Run the command on questions over the corpus."""
    lines = [
        {"question": f"What has thing {n}?", "answers": f"{n}x0", "gold": f"{n}-0"}
        for n in range(N)
    ]
    questions = written(corpus.parent / "questions.jsonl", lines)
    options = ["--data", str(questions), "--documents", str(corpus), "--model"]
    options += ["tests.cli.comparing:last", "--pipelines", "dense,hybrid", "--k", "4"]
    return main(["compare", *options, "--output", str(corpus.parent / folder), *arguments])


def test_documents_of_a_file_are_retrieved_by_several_pipelines(
    corpus: Path, model: CountingModel, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each text is embedded once, though the plan and the run both retrieve."""
    assert compare(corpus, "report", "--n", "10") == 0
    captured = capsys.readouterr()
    assert "dense, k=4" in captured.out
    assert "hybrid, k=4" in captured.out
    assert "over 10 questions with gold passages" in " ".join(captured.out.split())
    assert "Embedding 80 texts with counting\n" in captured.err
    assert len(model.embedded) == len({*model.embedded}) == 80 + 10
    result = ComparisonResult.from_json((corpus.parent / "report/comparison.json").read_text())
    assert result.embedding == "counting"


def test_a_second_run_embeds_nothing_and_is_the_same(
    corpus: Path, model: CountingModel, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of other questions only those; another cache knows nothing."""
    compare(corpus, "one", "--n", "10")
    model.embedded.clear()
    capsys.readouterr()
    compare(corpus, "two", "--n", "10")
    assert model.embedded == []
    assert "Embedding" not in capsys.readouterr().err
    one, two = (corpus.parent / name / "comparison.json" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    compare(corpus, "three")
    assert "Embedding 10 texts with counting; 10 others are kept" in capsys.readouterr().err
    compare(corpus, "four", "--cache", str(corpus.parent / "elsewhere"))
    assert "Embedding 80 texts" in capsys.readouterr().err


def test_a_changed_document_is_embedded_anew_and_no_other(
    corpus: Path, model: CountingModel
) -> None:
    """Beside the one text that shows whether the model is still the same."""
    compare(corpus, "one")
    model.embedded.clear()
    corpus.write_text(corpus.read_text().replace("thing 7 has 7x2", "thing 7 is red"))
    compare(corpus, "two")
    assert model.embedded[-1:] == ["thing 7 is red"]
    assert len(model.embedded) == 2


def test_an_interrupted_embedding_goes_on(
    corpus: Path, model: CountingModel, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Batch by batch, and to the same vectors."""
    model.interrupt_after = 32
    assert compare(corpus, "parts") == 130
    err = " ".join(capsys.readouterr().err.split())
    assert f"32 of 80 texts embedded and kept in {cache}" in err
    model.interrupt_after = None
    model.embedded.clear()
    assert compare(corpus, "parts") == 0
    assert len(model.embedded) == 1 + 48 + N
    assert compare(corpus, "whole", "--cache", str(corpus.parent / "elsewhere")) == 0
    parts, whole = (corpus.parent / name / "comparison.json" for name in ("parts", "whole"))
    assert parts.read_bytes() == whole.read_bytes()


def test_another_model_has_its_own_vectors(
    corpus: Path, model: CountingModel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name, and by what lies in its folder."""
    compare(corpus, "one")
    other = CountingModel(name="other")
    use(other, monkeypatch)
    compare(corpus, "two")
    assert len(other.embedded) == 80 + N
    assert len([*cache.iterdir()]) == 2


def test_a_model_that_changed_under_its_name_is_noticed_before_vectors_are_mixed(
    corpus: Path,
    model: CountingModel,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Here by the questions: all the documents are kept. The next run starts afresh."""
    compare(corpus, "one", "--n", "10")
    changed = CountingModel(seed=1)
    use(changed, monkeypatch)
    capsys.readouterr()
    assert compare(corpus, "two") == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "the embedding model counting has changed" in err
    assert "(a text now has cosine 0." in err
    changed.embedded.clear()
    assert compare(corpus, "two") == 0
    assert len(changed.embedded) == 80 + N


@pytest.mark.parametrize("left", [0.0, 0.5])
def test_a_damaged_batch_is_embedded_again_and_no_other(
    corpus: Path, model: CountingModel, cache: Path, left: float
) -> None:
    """80 texts are batches of 32, 32 and 16; the questions are one of 20."""
    compare(corpus, "one")
    model.embedded.clear()
    batch = min(cache.rglob("*.npy"))
    size = len(batch.read_bytes())
    batch.write_bytes(batch.read_bytes()[: int(size * left)])
    compare(corpus, "two")
    assert len(model.embedded) - 1 in (32, 16, 20)
    assert len(batch.read_bytes()) == size
    one, two = (corpus.parent / name / "comparison.json" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()


def test_a_cache_that_cannot_be_written_is_told_before_anything_is_embedded(
    corpus: Path, model: CountingModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the way out."""
    (tmp_path / "file").write_text("not a folder")
    assert compare(corpus, "one", "--cache", str(tmp_path / "file")) == 2
    err = capsys.readouterr().err
    assert "cannot write to the cache folder" in err
    assert "choose another with --cache" in err
    assert model.embedded == []


def test_nothing_is_made_for_a_model_that_cannot_be_loaded(tmp_path: Path, cache: Path) -> None:
    """Neither the folder of its vectors nor one above it."""
    (tmp_path / "empty").mkdir()
    embedding = EmbeddingCache(EmbeddingModel(str(tmp_path / "empty")), cache, Console())
    with pytest.raises(PosragError, match="cannot load the embedding model"):
        embedding(["text"])
    assert not cache.exists()


class Lengths(EmbeddingModel):
    """Embeds a text by its length."""

    def __init__(self) -> None:
        self.name = "lengths"

    def load(self) -> None:
        """There is nothing to load."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.array([[len(text), 1] for text in texts], np.float32)


def test_a_batch_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And those before it stay."""
    save = np.save
    EmbeddingCache(Lengths(), tmp_path, Console())(["one"])
    before = [*tmp_path.rglob("*")]

    def half(file: Any, array: Any, **options: bool) -> None:
        save(file, array, **options)
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "save", half)
    with pytest.raises(OSError, match="no space"):
        EmbeddingCache(Lengths(), tmp_path, Console())(["one", "two"])
    assert [*tmp_path.rglob("*")] == before


def test_threads_that_write_one_batch_at_once_do_not_disturb_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a cache of its own over one folder, and is about to put its file in place."""
    save, both = np.save, threading.Barrier(2)

    def together(file: Any, array: Any, **options: bool) -> None:
        save(file, array, **options)
        both.wait(timeout=60)

    monkeypatch.setattr(np, "save", together)

    def embed(_: int) -> Vectors:
        return EmbeddingCache(Lengths(), tmp_path, Console())(["a", "bc"])

    with ThreadPoolExecutor(2) as threads:
        for vectors in threads.map(embed, range(2)):
            assert vectors.tolist() == [[1, 1], [2, 1]]
    assert len([*tmp_path.rglob("*.npy")]) == 1

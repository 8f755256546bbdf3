"""A fitted gate on disk."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from shared_core.errors import CorruptIndexError, EmbeddingMismatchError, IndexFormatError
from shared_core.gating import VectorCandidates
from tests.core.gating.conftest import synthetic


@pytest.fixture
def small() -> VectorCandidates:
    ids, vectors, owners, pseudo, foreign = synthetic(60)
    return VectorCandidates.fit(
        ids, vectors, owners, pseudo, negatives=foreign, policy=0.1, threshold=0.02
    )


def test_what_is_saved_comes_back_and_goes_on(small: VectorCandidates, tmp_path: Path) -> None:
    """Decisions, and later additions and deletions, equal those of the gate that was saved."""
    small.save(tmp_path / "deep" / "gate.npz")
    loaded = VectorCandidates.load(tmp_path / "deep" / "gate.npz")
    assert (loaded.policy, loaded.threshold, len(loaded)) == (0.1, 0.02, 60)
    for similarity in (0.1, 0.5, 0.9):
        assert loaded.decide(similarity) == small.decide(similarity)
    _, vectors, _, pseudo, _ = synthetic(5, seed=1)
    for gate in (loaded, small):
        gate.add(["new"], vectors[:1], ["new"] * 3, pseudo[:3])
        gate.delete(["c1"])
    assert loaded.levels == small.levels
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["gate.npz"]


def test_a_gate_without_background_comes_back(tmp_path: Path) -> None:
    """The paper's own gate holds fewer arrays."""
    ids, vectors, owners, pseudo, _ = synthetic(30)
    gate = VectorCandidates.fit(ids, vectors, owners, pseudo, policy="density")
    gate.save(tmp_path / "gate.npz")
    assert VectorCandidates.load(tmp_path / "gate.npz").decide(0.5) == gate.decide(0.5)


def test_a_crash_while_saving_leaves_the_old_file(
    small: VectorCandidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one is written beside it, and its remains are removed."""
    path = tmp_path / "gate.npz"
    small.save(path)
    before = path.read_bytes()

    def crash(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("shared_core.gating.files.os.fsync", crash)
    small.delete(["c0"])
    with pytest.raises(OSError, match="no space"):
        small.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["gate.npz"]


def test_a_damaged_file_is_refused(small: VectorCandidates, tmp_path: Path) -> None:
    """Truncated, altered on the way, or with one array replaced by a well-formed other one."""
    path = tmp_path / "gate.npz"
    small.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptIndexError):
        VectorCandidates.load(path)
    path.write_bytes(whole)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["similarities"] = arrays["similarities"] + 0.1
    np.savez(path, **arrays)
    with pytest.raises(CorruptIndexError, match="digest differs"):
        VectorCandidates.load(path)


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    """Missing, no archive at all, an archive of something else."""
    path = tmp_path / "gate.npz"
    with pytest.raises(IndexFormatError, match="no such file"):
        VectorCandidates.load(path)
    path.write_text("hello")
    with pytest.raises(IndexFormatError):
        VectorCandidates.load(path)
    np.savez(path, manifest=np.frombuffer(b'{"kind": "other"}', np.uint8))
    with pytest.raises(IndexFormatError, match="does not hold a saved gate"):
        VectorCandidates.load(path)


def test_nothing_is_pickled(small: VectorCandidates, tmp_path: Path) -> None:
    """Every member is a plain array of numbers."""
    small.save(tmp_path / "gate.npz")
    with zipfile.ZipFile(tmp_path / "gate.npz") as archive:
        for name in archive.namelist():
            assert b"'descr': '|O'" not in archive.read(name)[:200]


def test_loading_with_another_model_is_refused(gate: VectorCandidates, tmp_path: Path) -> None:
    """Before any decision could be made with it."""
    gate.save(tmp_path / "gate.npz")
    with pytest.raises(EmbeddingMismatchError):
        VectorCandidates.load(tmp_path / "gate.npz", embed=lambda texts: np.ones((len(texts), 384)))

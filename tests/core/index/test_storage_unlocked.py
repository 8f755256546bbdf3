"""Saves and loads at once where the system has no locks: some whole index is always there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shared_core import CorruptIndexError, HybridIndex
from shared_core.index import storage
from shared_core.index.storage import check_file
from tests.core.making import data_of, make_index


def no_locks(*_: object) -> None:
    raise OSError(95, "Operation not supported")


@pytest.fixture(autouse=True, params=["system", "file system"])
def without_locks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has none; some network file systems refuse them."""
    refusing = SimpleNamespace(flock=no_locks, LOCK_EX=2, LOCK_SH=1)
    monkeypatch.setattr(storage, "fcntl", None if request.param == "system" else refusing)


def once_before(function: Callable[..., Any], meanwhile: Callable[[], object]) -> Any:
    """Return the function, before whose first call `meanwhile` is done."""
    due = [meanwhile]

    def call(*args: Any) -> Any:
        while due:
            due.pop()()
        return function(*args)

    return call


def entries(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("step", ["check_file", "read_files"])
def test_a_load_that_a_save_overtakes_reads_what_was_saved(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The save deletes the files that the load has begun to read."""
    make_index(5).save(tmp_path)
    save = once_before(getattr(storage, step), lambda: make_index(7).save(tmp_path))
    monkeypatch.setattr(storage, step, save)
    assert HybridIndex.load(tmp_path).ids == make_index(7).ids


def test_damage_is_told_even_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A load that a save has overtaken begins anew once, and not again and again."""

    def save_and_damage() -> None:
        make_index(7).save(tmp_path)
        (data_of(tmp_path) / "terms.json").unlink()

    make_index(5).save(tmp_path)
    monkeypatch.setattr(storage, "check_file", once_before(check_file, save_and_damage))
    with pytest.raises(CorruptIndexError, match=r"terms\.json .* it is missing"):
        HybridIndex.load(tmp_path)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("step", ["write_files", "fsync_and_hash", "write_manifest", "_current"])
def test_a_save_amid_another_deletes_nothing_of_it(
    step: str, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever ends last counts, and what both have replaced is gone."""
    if there:
        make_index(3).save(tmp_path)
    save = once_before(getattr(storage, step), lambda: make_index(7).save(tmp_path))
    monkeypatch.setattr(storage, step, save)
    make_index(5).save(tmp_path)
    assert HybridIndex.load(tmp_path).ids == make_index(5).ids
    assert entries(tmp_path) == {"manifest.json", data_of(tmp_path).name}


def test_a_save_deletes_what_it_replaces_and_nothing_else(tmp_path: Path) -> None:
    """Another data folder may be one that somebody writes."""
    make_index(3).save(tmp_path)
    other = tmp_path / "data-0123456789abcdef"
    other.mkdir()
    make_index(5).save(tmp_path)
    assert entries(tmp_path) == {"manifest.json", data_of(tmp_path).name, other.name}


def test_two_first_saves_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the other one writes into the folder is not taken for a stranger's."""
    is_file = Path.is_file

    def absent(path: Path) -> bool:
        patch.undo()
        assert not is_file(path)
        make_index(7).save(tmp_path)
        return False

    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_file", absent)
        make_index(5).save(tmp_path)
    assert HybridIndex.load(tmp_path).ids == make_index(5).ids

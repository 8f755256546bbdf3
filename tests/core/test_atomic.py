"""Files are written whole or not at all, by one writer."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared_core import PositionProfile
from shared_core.atomic import replacing, write_whole


def test_threads_that_save_one_profile_lose_nothing(tmp_path: Path) -> None:
    """None fails, the last one's is what is read, and nothing else is left."""
    path = tmp_path / "profile.json"
    profiles = [
        PositionProfile(model=f"m{number}", accuracy=(number / 200,) * 50) for number in range(200)
    ]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            assert [*threads.map(lambda profile: profile.save(path), profiles)] == [path] * 200
    finally:
        sys.setswitchinterval(interval)
    assert PositionProfile.load(path) in profiles
    assert [*tmp_path.iterdir()] == [path]


def test_a_profile_that_cannot_be_saved_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing beside it."""
    path = tmp_path / "profile.json"
    old = PositionProfile(model="m", accuracy=(0.5,))
    old.save(path)

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("shared_core.atomic.os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        PositionProfile(model="m", accuracy=(0.9,)).save(path)
    assert PositionProfile.load(path) == old
    assert [*tmp_path.iterdir()] == [path]


def test_a_file_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it; a crash after the renaming must not find an empty file."""
    path, seen = tmp_path / "file", []
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        seen.append((os.fstat(descriptor).st_size, path.exists()))
        fsync(descriptor)

    monkeypatch.setattr("shared_core.atomic.os.fsync", watched)
    write_whole(path, "käse\n")
    assert seen == [(6, False)]
    assert path.read_bytes() == "käse\n".encode()


def test_what_fails_while_it_is_written_leaves_nothing(tmp_path: Path) -> None:
    """The folder it would have been the first file of is made, and empty."""

    def half(path: Path) -> None:
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    path = tmp_path / "new" / "file"
    with pytest.raises(KeyboardInterrupt):
        half(path)
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")
    with pytest.raises(OSError, match="new"):
        write_whole(path.parent, "a folder is there")
    assert [each.name for each in tmp_path.rglob("*")] == ["new"]


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    """What it is called while it is written is no longer."""
    path = tmp_path / ("x" * 255)
    write_whole(path, "text")
    assert path.read_text() == "text"

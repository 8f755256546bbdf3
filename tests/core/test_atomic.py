"""Files are written whole or not at all, by one writer."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shared_core import PositionProfile
from shared_core.files import replacing, write_whole


def test_threads_that_save_one_profile_lose_nothing(tmp_path: Path) -> None:
    """None fails, the last one's is what is read, and nothing else is left."""
    path = tmp_path / "profile.json"
    profiles = [
        PositionProfile(model=f"m{number}", accuracy=(number / 200,) * 50) for number in range(200)
    ]
    with ThreadPoolExecutor(8) as threads:
        assert [*threads.map(lambda profile: profile.save(path), profiles)] == [path] * 200
    assert PositionProfile.load(path) in profiles
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

    monkeypatch.setattr("shared_core.files.os.fsync", watched)
    write_whole(path, "käse\n")
    assert seen == [(6, False)]
    assert path.read_bytes() == "käse\n".encode()


def test_what_fails_while_it_is_written_leaves_what_was_there(tmp_path: Path) -> None:
    """And nothing beside it; the folder it would have been the first file of is made, and empty."""
    there = tmp_path / "there"
    write_whole(there, "whole")
    for path in (there, tmp_path / "new" / "file"):
        with pytest.raises(TypeError), replacing(path) as file:
            file.write("half")  # type: ignore[arg-type]
        with pytest.raises(UnicodeEncodeError):
            write_whole(path, "\ud800")
        with pytest.raises(OSError, match=path.parent.name):
            write_whole(path.parent, "a folder is there")
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["new", "there"]
    assert there.read_text() == "whole"


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    """What it is called while it is written is no longer."""
    path = tmp_path / ("x" * 255)
    write_whole(path, "text")
    assert path.read_text() == "text"

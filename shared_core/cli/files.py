"""Folders and files that several subcommands write."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared_core import PosragError
from shared_core.generation import Journal
from shared_core.sensitivity.records import path_of

KEPT = "NAME.answers.jsonl in $POSRAG_PROFILES or ~/.posrag/profiles"
"""Where the answers of the model NAME are kept."""


def make_folder(folder: Path) -> None:
    """Make a folder for what takes long to find out, and see that files can be put there.

    Raises
    ------
    OSError
        If there is a file of that name, or the folder cannot be made or written into.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def check_file(file: Path) -> None:
    """See that a file can take its place, and make its folder, before anything is asked.

    Raises
    ------
    ValueError
        If it is a folder, or its folder cannot be made or written into.
    """
    if file.is_dir():
        raise ValueError(f"{file} is a folder; give the name of a file")
    try:
        make_folder(file.parent)
    except OSError as error:
        raise ValueError(f"{file} cannot be written: {error.strerror}") from error


def open_journal(model: str) -> Journal:
    """Return the answers of a model, by its name, in a file that can be added to.

    Raises
    ------
    PosragError
        If it cannot.
    """
    path = path_of(model, ".answers.jsonl")
    try:
        make_folder(path.parent)
        if path.exists():
            path.open("ab").close()
    except OSError as error:
        raise PosragError(
            f"answers cannot be kept in {path} ({error.strerror}); "
            "set POSRAG_PROFILES to a folder that can be written into"
        ) from error
    return Journal(path)


@contextmanager
def writing(file: Path, journal: Journal) -> Iterator[None]:
    """Where a result cannot be written after all, say which, and that no answer is lost.

    Raises
    ------
    PosragError
        In place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise PosragError(
            f"{file} cannot be written ({error.strerror or error}); the answers are kept in "
            f"{journal.path}: run again, and nothing is asked twice"
        ) from error


def default_cache() -> Path:
    """Return the folder for cached data that the XDG base directory specification names."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "posrag"


def ensure_writable(folder: Path, cache: Path) -> None:
    """Make a folder of the cache, or raise PosragError if nothing can be written there."""
    try:
        make_folder(folder)
    except OSError as error:
        raise PosragError(
            f"cannot write to the cache folder {cache} ({error.strerror}); "
            "choose another with --cache"
        ) from error

"""Folders and files that several subcommands write."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from shared_core import PosragError
from shared_core.generation import Journal
from shared_core.sensitivity.records import path_of

T = TypeVar("T")

KEPT = "NAME.answers.jsonl in $POSRAG_PROFILES or ~/.posrag/profiles"
"""Where the answers of the model NAME are kept."""

WAY_OUT = "set POSRAG_PROFILES to a folder that can be written into"
"""What to do where files that nobody has named cannot be written."""


def make_folder(folder: Path) -> None:
    """Make a folder, and check that files can be written there before the work begins.

    Raises
    ------
    OSError
        If there is a file of that name, or the folder cannot be made or written into.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def make_output(folder: Path) -> None:
    """Make the folder of ``--output``, and check that files can be written there.

    Raises
    ------
    ValueError
        If it is a file, or cannot be made or written into.
    """
    try:
        make_folder(folder)
    except OSError as error:
        raise ValueError(f"--output {folder} cannot be written into: {error.strerror}") from error


def check_file(file: Path, *, way_out: str = "") -> None:
    """Check that a file can be written, and make its folder, before anything is asked.

    Parameters
    ----------
    file
        The file.
    way_out
        Ends the error, if what to do does not follow from the name of the file.

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
        raise ValueError(f"{file} cannot be written: {error.strerror}{way_out}") from error


def kept_answers(model: str) -> Journal:
    """Return the journal of a model's answers, by the model's name; nothing is made on the disk."""
    return Journal(path_of(model, ".answers.jsonl"))


def open_journal(model: str) -> Journal:
    """Return the same, to be added to.

    Raises
    ------
    PosragError
        If its file cannot be written.
    """
    journal = kept_answers(model)
    path = journal.path
    try:
        make_folder(path.parent)
        if path.exists():
            path.open("ab").close()
    except OSError as error:
        way_out = "give a shorter --name" if error.errno == errno.ENAMETOOLONG else WAY_OUT
        raise PosragError(
            f"answers cannot be kept in {path} ({error.strerror}); {way_out}"
        ) from error
    return journal


def load_former(load: Callable[[Path], T], file: Path) -> T | None:
    """Return the content of a file that is about to be overwritten.

    None if there is no such file, or it cannot be loaded: then nothing is lost.
    """
    try:
        return load(file) if file.is_file() else None
    except ValueError:
        return None


@contextmanager
def writing(file: Path, journal: Journal) -> Iterator[None]:
    """Report a result that cannot be written after all, and that no answer is lost.

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

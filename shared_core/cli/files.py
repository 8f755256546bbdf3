"""Folders and files that subcommands write: answers, profiles and figures."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from shared_core import PosragError
from shared_core.generation import Journal
from shared_core.sensitivity import PositionProfile
from shared_core.sensitivity.figure import check_figure
from shared_core.sensitivity.records import beside, path_of

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


def open_journal(model: str, *, fresh: bool = False) -> Journal:
    """Return the same, to be added to; a `fresh` one begins a new file.

    Raises
    ------
    PosragError
        If its file cannot be written.
    """
    journal = Journal(kept_answers(model).path, fresh=fresh)
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


@contextmanager
def keeping(journal: Journal | None) -> Iterator[None]:
    """Note on what ends the asking inside where the answers before it are kept, if any are."""
    try:
        yield
    except (Exception, KeyboardInterrupt) as end:
        if journal is not None and journal.path.exists():
            end.add_note(f"answers are kept in {journal.path}: run again to go on")
        raise


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


@dataclass(frozen=True)
class ProbeFiles:
    """The files of one model's probe."""

    profile: Path
    figure: Path
    journal: Journal

    @classmethod
    def of(
        cls, model: str, *, output: Path | None, figure: Path | None, fresh: bool = False
    ) -> ProbeFiles:
        """Return the files of a model, in the folder of the profiles unless said otherwise.

        Raises
        ------
        ValueError
            If the figure has no known format or would overwrite the profile, or a file cannot be
            written.
        PosragError
            If answers cannot be kept.
        """
        profile = output or path_of(model)
        check_file(profile, way_out="" if output else f"; give --output, or {WAY_OUT}")
        drawn = check_figure(figure or profile.with_suffix(".png"))
        if drawn == profile:
            raise ValueError(f"the figure would overwrite the profile {profile}; give --figure")
        check_file(drawn)
        return cls(profile, drawn, open_journal(model, fresh=fresh))

    def save(self, profile: PositionProfile) -> tuple[PositionProfile, Path | None]:
        """Write the profile; return it as written, and the file of a former one that is kept.

        The other curve of the same model and slots is joined to it. A former profile is kept
        next to it if it was made from more questions, or measured something else.

        Raises
        ------
        PosragError
            If it cannot be written; the message says that the answers are kept.
        """
        old = load_former(PositionProfile.load, self.profile)
        joined = profile if old is None else _joined(old, profile)
        kept = None
        with writing(self.profile, self.journal):
            if old is not None and _would_be_lost(old, joined):
                kept = beside(self.profile, old.date)
                old.save(kept)
            joined.save(self.profile)
        return joined, kept


def _joined(old: PositionProfile, new: PositionProfile) -> PositionProfile:
    def measured(profile: PositionProfile) -> tuple[object, ...]:
        return profile.model, profile.identity, profile.k, profile.slots

    if measured(old) != measured(new):
        return new
    if new.accuracy is None and old.accuracy is not None:
        return replace(old, distraction=new.distraction, distraction_n=new.distraction_n)
    if new.distraction is None:
        return replace(new, distraction=old.distraction, distraction_n=old.distraction_n)
    return new


def _would_be_lost(old: PositionProfile, new: PositionProfile) -> bool:
    def kind(profile: PositionProfile) -> tuple[object, ...]:
        lengths = [each.k for each in profile.lengths]
        return profile.identity, profile.measure, profile.k, profile.slots, profile.task, lengths

    other_kind = kind(old) != kind(new)
    if old.accuracy is not None and (other_kind or (old.n or 0) > (new.n or 0)):
        return True
    if old.distraction in (None, new.distraction):
        return False
    return other_kind or (old.distraction_n or 0) > (new.distraction_n or 0)

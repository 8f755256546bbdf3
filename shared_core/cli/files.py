"""Folders and files that subcommands write: answers, profiles and figures."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from shared_core.generation import Journal
from shared_core.sensitivity import PositionProfile
from shared_core.sensitivity.figure import check_figure
from shared_core.sensitivity.records import path_of

KEPT = "NAME.answers.jsonl in $POSRAG_PROFILES or ~/.posrag/profiles"
"""Where the answers of the model NAME are kept."""

WAY_OUT = "set POSRAG_PROFILES to a folder that can be written into"
"""What to do where files that nobody has named cannot be written."""


def check_file(file: Path, way_out: str = "") -> None:
    """Check that a file can be written, and make its folder, before the work begins.

    Parameters
    ----------
    file
        The file; one that is there stays as it is.
    way_out
        Ends the error, if what to do does not follow from the name of the file.

    Raises
    ------
    ValueError
        If it is a folder, or it or its folder cannot be made or written into.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=file.parent):
            pass
        if file.exists():
            file.open("ab").close()
    except OSError as error:
        raise ValueError(f"{file} cannot be written: {error.strerror}{way_out}") from error


def kept_answers(model: str) -> Journal:
    """Return the journal of a model's answers, by the model's name; nothing is made on the disk."""
    return Journal(path_of(model, ".answers.jsonl"))


def open_journal(model: str, *, fresh: bool = False) -> Journal:
    """Return the same, to be added to; a `fresh` one begins a new file.

    Raises
    ------
    ValueError
        If its file cannot be written.
    """
    journal = Journal(kept_answers(model).path, fresh=fresh)
    check_file(journal.path, f"; {WAY_OUT}")
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
        """
        profile = output or path_of(model)
        check_file(profile, "" if output else f"; give --output, or {WAY_OUT}")
        drawn = check_figure(figure or profile.with_suffix(".png"))
        if drawn == profile:
            raise ValueError(f"the figure would overwrite the profile {profile}; give --figure")
        check_file(drawn)
        return cls(profile, drawn, open_journal(model, fresh=fresh))

    def save(self, profile: PositionProfile) -> PositionProfile:
        """Write the profile, joined to the other curve of the same model and slots; return it.

        That of another model of the same name is kept as `former`.
        """
        if self.profile.is_file():
            with suppress(ValueError):  # nothing is lost of one that cannot be loaded
                old = PositionProfile.load(self.profile)
                if old.identity and profile.identity and old.identity != profile.identity:
                    self.profile.replace(self.former)
                profile = _joined(old, profile)
        profile.save(self.profile)
        return profile

    @property
    def former(self) -> Path:
        """The profile that was there of another model of the same name."""
        return self.profile.with_suffix(".former.json")


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

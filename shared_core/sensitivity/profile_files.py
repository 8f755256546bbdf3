"""Profiles on disk: JSON files in a folder of the user's own, found by the model's name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from shared_core.errors import ProfileNotFoundError
from shared_core.sensitivity.published import published_fields, published_names
from shared_core.sensitivity.records import is_file, read_record, write_record

if TYPE_CHECKING:
    from shared_core.sensitivity.profile import PositionProfile

_FORMER = re.compile(r"\.(former|\d{4}-\d\d-\d\dT\d{6})$")
"""What `beside` adds to a name."""


def profile_folder() -> Path:
    """Folder of the saved profiles: ``$POSRAG_PROFILES``, else ``~/.posrag/profiles``."""
    return Path(os.environ.get("POSRAG_PROFILES") or Path.home() / ".posrag" / "profiles")


def path_of(model: str, suffix: str = ".json") -> Path:
    """Return the file in `profile_folder` that belongs to a model."""
    return profile_folder() / (quote(model, safe="") + suffix)


def beside(file: Path, date: str | None) -> Path:
    """Return where to keep what stood in a file, which is of such a date (ISO 8601)."""
    day = (date or "former").replace(":", "").partition("+")[0]
    return file.with_name(f"{file.stem}.{day}{file.suffix}")


def saved_names(folder: Path) -> str:
    """Say which models have a file in a folder, but for what is kept `beside` one."""
    stems = (path.stem for path in folder.glob("*.json"))
    names = sorted(unquote(stem) for stem in stems if not _FORMER.search(stem))
    return "saved: " + ", ".join(names) if names else "none is saved yet"


def write_profile(profile: PositionProfile, path: str | Path | None) -> Path:
    """Write a profile as JSON, atomically, and return the path; see `PositionProfile.save`."""
    return write_record(profile, Path(path) if path is not None else path_of(profile.model))


def read_profile(cls: type[PositionProfile], name: str | Path) -> PositionProfile:
    """Read a profile by path or name; see `PositionProfile.load`."""
    for path in (Path(name), path_of(str(name))):
        if is_file(path):
            return read_record(cls, path, what="position profile")
    published = published_fields(str(name))
    if published is not None:
        return cls(**published)
    raise ProfileNotFoundError(
        f"no position profile {str(name)!r}: neither a file, nor a name saved in "
        f"{profile_folder()} ({saved_names(profile_folder())}), nor a published one "
        f"({', '.join(published_names())})"
    )

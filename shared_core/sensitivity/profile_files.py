"""Where profiles are kept: in a folder of the user's own, under the model's name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote

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

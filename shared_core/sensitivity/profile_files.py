"""Profiles on disk: JSON files in a folder of the user's own, found by the model's name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from shared_core.errors import ProfileNotFoundError
from shared_core.sensitivity.published import published_fields, published_names

if TYPE_CHECKING:
    from shared_core.sensitivity.profile import PositionProfile

FORMAT = 1


def profile_folder() -> Path:
    """Folder of the saved profiles: ``$POSRAG_PROFILES``, else ``~/.posrag/profiles``."""
    return Path(os.environ.get("POSRAG_PROFILES") or Path.home() / ".posrag" / "profiles")


def path_of(model: str, suffix: str = ".json") -> Path:
    """Return the file in `profile_folder` that belongs to a model."""
    return profile_folder() / (quote(model, safe="") + suffix)


def write_profile(profile: PositionProfile, path: str | Path | None) -> Path:
    """Write a profile as JSON, atomically, and return the path; see `PositionProfile.save`."""
    target = Path(path) if path is not None else path_of(profile.model)
    target.parent.mkdir(parents=True, exist_ok=True)
    data = {"format": FORMAT, **asdict(profile)}
    text = (
        "{\n" + ",\n".join(f"  {_line(key)}: {_line(value)}" for key, value in data.items()) + "\n}"
    )
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(target)
    return target


def read_profile(cls: type[PositionProfile], name: str | Path) -> PositionProfile:
    """Read a profile by path or name; see `PositionProfile.load`."""
    for path in (Path(name), path_of(str(name))):
        if _is_file(path):
            return _parse(cls, path)
    published = published_fields(str(name))
    if published is not None:
        return cls(**published)
    raise ProfileNotFoundError(
        f"no position profile {str(name)!r}: neither a file, nor a name saved in "
        f"{profile_folder()} ({_saved_names()}), nor a published one "
        f"({', '.join(published_names())})"
    )


def _line(value: object) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return "[\n" + ",\n".join(f"    {_line(row)}" for row in value) + "\n  ]"
    return json.dumps(value, ensure_ascii=False)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _saved_names() -> str:
    names = sorted(unquote(path.stem) for path in profile_folder().glob("*.json"))
    return "saved: " + ", ".join(names) if names else "none is saved yet"


def _parse(cls: type[PositionProfile], path: Path) -> PositionProfile:
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a position profile: {error}") from error
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ValueError(f"{path} is not a position profile of format {FORMAT}")
    known = {field.name for field in fields(cls)}
    try:
        return cls(**{key: value for key, value in data.items() if key in known})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a position profile: {error}") from error

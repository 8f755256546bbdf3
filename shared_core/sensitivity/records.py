"""Measurements of a model, saved as JSON files that are found by the model's name."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import quote, unquote

from shared_core.atomic import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT = 1

Interval: TypeAlias = tuple[float, float]
"""Lower and upper bound."""

Record = TypeVar("Record", bound="DataclassInstance")

_FORMER = re.compile(r"\.(former|\d{4}-\d\d-\d\dT\d{6})$")
"""What `beside` inserts into a file name."""


def check_model(name: object) -> None:
    """Raise ValueError unless the model of a record is a non-empty string."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"model must be a name, got {name!r}")


def checked_interval(bounds: Sequence[float], name: str) -> Interval:
    """Return bounds as floats; raise ValueError unless they are (lower, upper)."""
    try:
        lower, upper = map(float, bounds)
        ordered = lower <= upper
    except (TypeError, ValueError):
        ordered = False
    if not ordered:
        raise ValueError(f"{name} must be (lower, upper), got {bounds!r}")
    return lower, upper


def profile_folder() -> Path:
    """Folder of the saved profiles: ``$POSRAG_PROFILES``, else ``~/.posrag/profiles``."""
    return Path(os.environ.get("POSRAG_PROFILES") or Path.home() / ".posrag" / "profiles")


def path_of(model: str, suffix: str = ".json") -> Path:
    """Return the file in `profile_folder` that belongs to a model."""
    return profile_folder() / (quote(model, safe="") + suffix)


def beside(file: Path, date: str | None) -> Path:
    """Return the path for a file's former content, named after its date (ISO 8601)."""
    day = (date or "former").replace(":", "").partition("+")[0]
    return file.with_name(f"{file.stem}.{day}{file.suffix}")


def saved_names(folder: Path) -> str:
    """Say which models have a file in a folder; former files kept `beside` one do not count."""
    stems = (path.stem for path in folder.glob("*.json"))
    names = sorted(unquote(stem) for stem in stems if not _FORMER.search(stem))
    return "saved: " + ", ".join(names) if names else "none is saved yet"


def is_file(path: Path) -> bool:
    """Whether there is such a file; False for a name that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def write_record(record: DataclassInstance, path: Path) -> Path:
    """Write a dataclass of plain values as JSON, atomically, and return the path."""
    data = {"format": FORMAT, **asdict(record)}
    text = (
        "{\n" + ",\n".join(f"  {_line(key)}: {_line(value)}" for key, value in data.items()) + "\n}"
    )
    write_whole(path, text + "\n")
    return path


def find_record(cls: type[Record], name: str | Path, saved: Path, *, what: str) -> Record | None:
    """Read the record at the path `name`, else the one at `saved`; None if there is neither.

    Raises
    ------
    ValueError
        If the file does not hold such a record; the message says `what` was expected.
    """
    for path in (Path(name), saved):
        if is_file(path):
            return _read_record(cls, path, what=what)
    return None


def _read_record(cls: type[Record], path: Path, *, what: str) -> Record:
    """Read what `write_record` wrote; unknown fields are ignored.

    Raises
    ------
    ValueError
        As `find_record`.
    """
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a {what}: {error}") from error
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ValueError(f"{path} is not a {what} of format {FORMAT}")
    known = {field.name for field in fields(cls)}
    try:
        return cls(**{key: value for key, value in data.items() if key in known})
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"{path} is not a {what}: {error}") from error


def _line(value: object) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return "[\n" + ",\n".join(f"    {_line(row)}" for row in value) + "\n  ]"
    return json.dumps(value, ensure_ascii=False)

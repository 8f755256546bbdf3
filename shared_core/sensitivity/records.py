"""What was measured of a model, on disk: frozen dataclasses as JSON files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from shared_core.atomic import write_whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FORMAT = 1

Record = TypeVar("Record", bound="DataclassInstance")


def check_model(name: object) -> None:
    """Raise ValueError if the name of a record's model is none."""
    if not isinstance(name, str) or not name:
        raise ValueError(f"model must be a name, got {name!r}")


def write_record(record: DataclassInstance, path: Path) -> Path:
    """Write a dataclass of plain values as JSON, atomically, and return the path."""
    data = {"format": FORMAT, **asdict(record)}
    text = (
        "{\n" + ",\n".join(f"  {_line(key)}: {_line(value)}" for key, value in data.items()) + "\n}"
    )
    write_whole(path, text + "\n")
    return path


def read_record(cls: type[Record], path: Path, *, what: str) -> Record:
    """Read what `write_record` wrote; fields that are not known are passed over.

    Raises
    ------
    ValueError
        If the file holds no such record; the message says `what` was looked for.
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


def is_file(path: Path) -> bool:
    """Whether there is such a file; False for a name that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def _line(value: object) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return "[\n" + ",\n".join(f"    {_line(row)}" for row in value) + "\n  ]"
    return json.dumps(value, ensure_ascii=False)

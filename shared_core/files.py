"""Files that are written completely or not at all, and JSON lines written by hand.

What a line lacks is told with its number.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from shared_core.checking import SHOWN
from shared_core.wording import shortened

T = TypeVar("T")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces `path` once it is completely written; its folder is created.

    The data goes to a temporary file next to `path`, which is then renamed: a reader finds either
    the old file or the new one. If writing fails, the old file stays and nothing is left next to
    it. If several threads or processes write at once, the last one wins.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    OSError
        If the folder cannot be made or written into, or `path` is a folder itself.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not derived from the name, which may already be as long as the system allows.
    partial = path.parent / f".{secrets.token_hex(8)}.partial"
    try:
        with in_full(path), partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def in_full(path: Path) -> Iterator[None]:
    """Name `path` in an error of writing, as on a full disk, of which numpy only counts bytes.

    Raises
    ------
    OSError
        With the name of a file; numpy's has no number and no reason, either.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = error.filename or str(path)
            raise
        raise OSError(f"{path} cannot be written in full ({error}); is the disk full?") from error


def write_whole(path: Path, text: str) -> None:
    """Write a UTF-8 text file atomically; see `replacing`."""
    encoded = text.encode()
    with replacing(path) as file:
        file.write(encoded)


def read_lines(path: Path, parse: Callable[[Mapping[str, Any]], T]) -> Iterator[T]:
    """Yield the result of `parse` for the object on each line; blank lines are skipped.

    Raises
    ------
    ValueError
        If a line holds no object, or `parse` raises it; the message names file and line.
    OSError
        If the file cannot be read.
    """
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            try:
                yield parse(_object(line.decode("utf-8-sig")))
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: {not_utf8(error)}") from error
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path}, line {number}: {error}") from error


def _object(line: str) -> Mapping[str, Any]:
    if line.lstrip().startswith("["):
        raise ValueError(
            f"expected one object per line (JSON Lines), not one array, got "
            f"{shortened(line.strip(), SHOWN)}"
        )
    try:
        data = json.loads(line)
    except json.JSONDecodeError as error:
        # Without the error's line number, which is always 1.
        what = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        raise ValueError(
            f"expected one JSON object per line, in UTF-8, got {shortened(line.strip(), SHOWN)} "
            f"({what})"
        ) from error
    if not isinstance(data, Mapping):
        raise ValueError(f"expected an object, got {shorten_json(data)}")
    return data


def not_utf8(error: UnicodeDecodeError) -> str:
    """Return a message that names the byte of a file, or of a line, that is not UTF-8."""
    byte = error.object[error.start]
    return f"byte {error.start + 1} (0x{byte:02x}) is not UTF-8; save the file in that encoding"


def check_fields(data: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise ValueError if a field is missing; the message names those that are there."""
    for name in names:
        if name not in data:
            raise ValueError(f'no field "{name}"; it has {", ".join(data) or "none"}')


def shorten_json(value: Any) -> str:
    """Return a value as JSON, shortened for an error."""
    return shortened(json.dumps(value, ensure_ascii=False), SHOWN)

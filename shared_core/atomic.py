"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


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
        with partial.open("wb") as file:
            with in_full(path):
                yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def in_full(path: Path) -> Iterator[None]:
    """Name `path` where numpy only counts what it could not write, as on a full disk.

    Raises
    ------
    OSError
        In place of numpy's, which has no number, no reason and no name of a file.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            raise
        raise OSError(f"{path} cannot be written in full ({error}); is the disk full?") from error


def write_whole(path: Path, text: str) -> None:
    """Write a UTF-8 text file atomically; see `replacing`."""
    encoded = text.encode()
    with replacing(path) as file:
        file.write(encoded)

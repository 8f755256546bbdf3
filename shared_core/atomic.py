"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` once it is whole; its folder is made.

    What is written goes down to the disk beside `path`, and is then renamed: a reader finds the
    old file or the new one. Where the writing fails, the old one stays and nothing is left beside
    it. Of several threads or processes that write at once, the last one's file stands.

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
    # No part of the name, which may be as long as the system allows.
    partial = path.parent / f".{secrets.token_hex(8)}.partial"
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write a text file in UTF-8 as `replacing` does."""
    encoded = text.encode()
    with replacing(path) as file:
        file.write(encoded)

"""Folders and files that several subcommands write."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from shared_core import PosragError


def make_folder(folder: Path) -> None:
    """Make a folder for what takes long to find out, and see that files can be put there.

    Raises
    ------
    OSError
        If there is a file of that name, or the folder cannot be made or written into.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def default_cache() -> Path:
    """Return the folder for cached data that the XDG base directory specification names."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "posrag"


def ensure_writable(folder: Path, cache: Path) -> None:
    """Make a folder of the cache, or raise PosragError if nothing can be written there."""
    try:
        make_folder(folder)
    except OSError as error:
        raise PosragError(
            f"cannot write to the cache folder {cache} ({error.strerror}); "
            "choose another with --cache"
        ) from error

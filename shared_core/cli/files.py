"""Folders and files that several subcommands write."""

from __future__ import annotations

import tempfile
from pathlib import Path


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

"""The folder of a comparison's report."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from shared_core.comparison import ComparisonResult, to_html, to_markdown


@dataclass(frozen=True)
class ReportFiles:
    """What is written into the folder.

    Attributes
    ----------
    json
        Every outcome of every question.
    markdown
        Verdict and tables.
    html
        The same with plots, for a browser.
    """

    json: Path
    markdown: Path
    html: Path

    @classmethod
    def of(cls, folder: Path) -> ReportFiles:
        """Return the files, and make the folder, before anything is asked.

        Raises
        ------
        OSError
            If there is a file of that name, or the folder cannot be made or written into.
        """
        make_folder(folder)
        return cls(*(folder / f"comparison.{kind}" for kind in ("json", "md", "html")))

    def save(self, result: ComparisonResult) -> None:
        """Write the report, each file whole or not at all."""
        _write(self.json, result.to_json())
        _write(self.markdown, to_markdown(result))
        _write(self.html, to_html(result))


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


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)

"""The folder of a comparison's report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shared_core.atomic import write_whole
from shared_core.cli.files import make_folder
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
        write_whole(self.json, result.to_json())
        write_whole(self.markdown, to_markdown(result))
        write_whole(self.html, to_html(result))

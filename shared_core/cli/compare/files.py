"""The folder of a comparison's report, and where its answers are kept."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from shared_core.atomic import replacing
from shared_core.cli.files import check_file, make_output, open_journal, writing
from shared_core.comparison import ComparisonResult, to_html, to_markdown
from shared_core.generation import Journal


@dataclass(frozen=True)
class ReportFiles:
    """What is written.

    Attributes
    ----------
    json
        Every outcome of every question.
    markdown
        Verdict and tables.
    html
        The same with plots, for a browser.
    journal
        Answers of the model, in the folder of the profiles.
    """

    json: Path
    markdown: Path
    html: Path
    journal: Journal

    @classmethod
    def of(cls, folder: Path, model: str) -> ReportFiles:
        """Return the files of a model's report, and make the folders, before anything is asked.

        Raises
        ------
        PosragError
            If answers cannot be kept.
        ValueError
            If there is a file of that name, the folder cannot be made or written into, or has a
            folder in the place of a file.
        """
        make_output(folder)
        data, text, page = (folder / f"comparison.{kind}" for kind in ("json", "md", "html"))
        for file in (data, text, page):
            check_file(file)
        return cls(data, text, page, open_journal(model))

    def save(self, result: ComparisonResult) -> None:
        """Write all files of the report or none, so that they belong to one comparison.

        Raises
        ------
        PosragError
            If a file cannot be written; the message says that the answers are kept.
        """
        texts = {
            self.json: result.to_json(),
            self.markdown: to_markdown(result),
            self.html: to_html(result),
        }
        with ExitStack() as stack:  # moves them to their places once all are written
            for file, text in texts.items():
                stack.enter_context(writing(file, self.journal))
                opened = stack.enter_context(replacing(file))
                opened.write(text.encode())
                opened.flush()

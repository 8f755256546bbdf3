"""Where a model's curve and its figures are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shared_core.attention.by_position import AttentionByPosition
from shared_core.attention.figures import draw_document_scores, draw_positional_curve
from shared_core.cli.files import make_folder
from shared_core.sensitivity.curve import PositionalCurve, curve_path
from shared_core.sensitivity.figure import check_figure
from shared_core.sensitivity.records import beside


@dataclass(frozen=True)
class AttentionFiles:
    """The files of one model."""

    curve: Path
    documents_figure: Path
    curve_figure: Path

    @classmethod
    def of(cls, model: str, *, folder: Path | None) -> AttentionFiles:
        """Return the files of a model, in the folder of the curves unless said otherwise.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.
        ValueError
            If the folder is a file.
        OSError
            If the folder cannot be made or written into.
        """
        if folder is not None and folder.is_file():
            raise ValueError(f"--output {folder} is a file; give the name of a folder")
        saved = curve_path(model)
        curve = saved if folder is None else folder / saved.name
        make_folder(curve.parent)
        return cls(
            curve,
            check_figure(curve.with_suffix(".documents.png")),
            check_figure(curve.with_suffix(".curve.png")),
        )

    def save(self, found: AttentionByPosition) -> Path | None:
        """Write curve and figures; return where a former curve is kept, if it is.

        It is if it says something else, or was made of more questions.
        """
        former, kept = self._former(), None
        if former is not None and _would_be_lost(former, found.curve):
            kept = former.save(beside(self.curve, former.date))
        found.curve.save(self.curve)
        draw_document_scores(found, self.documents_figure)
        draw_positional_curve(found, self.curve_figure)
        return kept

    def _former(self) -> PositionalCurve | None:
        try:
            return PositionalCurve.load(self.curve) if self.curve.is_file() else None
        except ValueError:
            return None  # not a curve any more: the new one takes its place


def _would_be_lost(old: PositionalCurve, new: PositionalCurve) -> bool:
    def kind(curve: PositionalCurve) -> tuple[object, ...]:
        return curve.identity, curve.k, curve.template, curve.task

    return kind(old) != kind(new) or old.n > new.n

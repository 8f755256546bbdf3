"""Where a model's curve and its figures are kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shared_core.attention.by_slot import AttentionByPosition
from shared_core.attention.figures import draw_document_scores, draw_positional_curve
from shared_core.cli.files import WAY_OUT, check_file, load_former, make_output
from shared_core.sensitivity.curve import PositionalCurve
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
            If the folder is a file, or cannot be made or written into.
        """
        saved = PositionalCurve.file_of(model)
        curve = saved if folder is None else folder / saved.name
        if folder is None:
            check_file(curve, way_out=f"; give --output, or {WAY_OUT}")
        else:
            make_output(folder)
        return cls(
            curve,
            check_figure(curve.with_suffix(".documents.png")),
            check_figure(curve.with_suffix(".curve.png")),
        )

    def save(self, found: AttentionByPosition) -> Path | None:
        """Write curve and figures; return the file of a former curve that is kept.

        It is kept if it measured something else, or was made from more questions.
        """
        old, kept = load_former(PositionalCurve.load, self.curve), None
        if old is not None and _would_be_lost(old, found.curve):
            kept = old.save(beside(self.curve, old.date))
        found.curve.save(self.curve)
        draw_document_scores(found, self.documents_figure)
        draw_positional_curve(found, self.curve_figure)
        return kept


def _would_be_lost(old: PositionalCurve, new: PositionalCurve) -> bool:
    def kind(curve: PositionalCurve) -> tuple[object, ...]:
        return curve.identity, curve.k, curve.template, curve.task

    return kind(old) != kind(new) or old.n > new.n

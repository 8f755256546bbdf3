"""``posrag attention``: where a local model looks, in numbers and in a terminal."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.attention.by_slot import AttentionByPosition, DocumentScores, attention_by_position
from shared_core.attention.figures import draw_document_scores, draw_positional_curve
from shared_core.cli import models, options, questions
from shared_core.cli.console import Console, empty_table
from shared_core.cli.files import WAY_OUT, check_file
from shared_core.cli.options import path
from shared_core.generation import HuggingFaceModel
from shared_core.placement.scored import attention_placement
from shared_core.sensitivity.curve import TENTHS, PositionalCurve, parts_of_region
from shared_core.sensitivity.questions import check_context, check_questions
from shared_core.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


DESCRIPTION = (
    "Measure how much a local model attends to each position of the prompt while it answers, with "
    "the passages shuffled and with the most relevant last. Plot it, and save the positional "
    "curve: with it documents are placed without an extra round of the model."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the model, the questions and where the curve goes."""
    group = parser.add_argument_group
    parser.add_argument("model", metavar="MODEL", help=models.LOCAL_HELP)
    questions.add_questions(
        group("what is asked"),
        "; gold counts as the most relevant, followed by the distractors in their order",
    )
    group("files").add_argument("--output", type=path, metavar="FOLDER", help="folder of the curve "
        "and the figures (default: curves in $POSRAG_PROFILES or ~/.posrag/profiles)")  # fmt: skip
    asked = group("how the model is asked")
    asked.add_argument("--batch-size", type=int, help="prompts in one forward pass (default: 8)")
    options.add(asked, "max-new-tokens")


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    console = Console()
    source = questions.open_questions(arguments)
    check_context(source.k)
    check_questions(source.questions, source.k)
    model = models.open_local_model(
        arguments.model,
        max_new_tokens=arguments.max_new_tokens,
        batch_size=arguments.batch_size,
    )
    file = _file_of(model.name, arguments.output)
    found = _read(console, model, source, seed=arguments.seed)
    found.curve.save(file)
    documents, curve = figures_of(file)
    draw_document_scores(found, documents)
    draw_positional_curve(found, curve)
    console.show(*parts(found))
    console.show(*lines(found.curve, file, spec=arguments.model), whole=True)
    return 0


def _file_of(model: str, folder: Path | None) -> Path:
    """Return the file of a model's curve, and check that it can be written."""
    saved = PositionalCurve.file_of(model)
    file = saved if folder is None else folder / saved.name
    check_file(file, f"; give --output, or {WAY_OUT}" if folder is None else "")
    return file


def _read(
    console: Console, model: HuggingFaceModel, source: questions.ProbeData, *, seed: int
) -> AttentionByPosition:
    total = 2 * len(source.questions)
    asked = f"{counted(len(source.questions), 'question')} ({source.task})"
    console.say(
        f"{model.name}: {asked}, {source.k} passages each, shuffled and best last: "
        f"{counted(total, 'answer')}."
    )
    with console.counting("answering", total) as advance:
        return attention_by_position(
            model,
            source.questions,
            k=source.k,
            template=source.template,
            seed=seed,
            task=source.task,
            on_answer=advance,
        )


def parts(found: AttentionByPosition) -> Iterator[RenderableType]:
    """Yield the parts of the report."""
    yield "How much the answer attends to the passage in each position (1 = the mean):"
    yield table(found)
    yield from curve_lines(found)


def figures_of(file: Path) -> tuple[Path, Path]:
    """Return the files of the documents' and the curve's figures, beside that of the curve."""
    return file.with_suffix(".documents.png"), file.with_suffix(".curve.png")


def lines(curve: PositionalCurve, file: Path, *, spec: str) -> Iterator[str]:
    """Yield what can be copied: how to use the curve of the model `spec`, and the files."""
    model = f'"{spec}"' if ":" not in spec or Path(spec).exists() else "model"
    known_by = curve.model if file == PositionalCurve.file_of(curve.model) else file
    documents_figure, curve_figure = figures_of(file)
    yield ""
    yield "To place passages by this curve, without an extra round of the model:"
    yield "    from langchain_posrag import AttentionPlacement"
    yield f'    placement = AttentionPlacement({model}, curve="{known_by}")'
    yield "or llamaindex_posrag.AttentionPlacementPostprocessor, with the same arguments."
    yield ""
    yield f"curve    {file}"
    yield f"figures  {documents_figure}"
    yield f"         {curve_figure}"


def table(found: AttentionByPosition) -> Table:
    """Return the scores of the documents, position by position."""
    built = empty_table(gap=2)
    shuffled = found.documents["unordered", "answer", "all"]
    spans = [f"[{lower:.2f}, {upper:.2f}]" for lower, upper in _relative(shuffled.band, shuffled)]
    columns = {
        "position": [str(position) for position in range(1, len(spans) + 1)],
        "shuffled": _means(shuffled),
        f"{found.curve.confidence:.0%}": spans,
        "best last": _means(found.documents["ordered", "answer", "all"]),
        "lower layers": _means(found.documents["unordered", "answer", "lower"]),
        "upper layers": _means(found.documents["unordered", "answer", "upper"]),
    }
    for name in columns:
        built.add_column(name, justify="right", no_wrap=True)
    for row in zip(*columns.values(), strict=True):
        built.add_row(*row)
    return built


def _means(scores: DocumentScores) -> list[str]:
    return [f"{value:.2f}" for value in _relative(scores.mean, scores)]


def _relative(values: npt.ArrayLike, scores: DocumentScores) -> Scores:
    """Return values in multiples of the mean over the positions."""
    relative: Scores = np.asarray(values) / (np.mean(scores.mean) or 1.0)
    return relative


def curve_lines(found: AttentionByPosition) -> Iterator[str]:
    """Describe the shape of the positional curve, and how it places passages."""
    curve, ordered = found.curve, found.curves["ordered"]
    tenths = parts_of_region(np.array(curve.scores), TENTHS)
    k = curve.k or TENTHS
    order = attention_placement(range(k), curve.scores_for(k * TENTHS), [TENTHS] * k)
    yield (
        "Attention due to position alone (of the tokens before and at the end of the answer, in "
        "the lower layers), by tenth of the shuffled documents (1 = the mean):"
    )
    yield "  " + " ".join(f"{tenth:.2f}" for tenth in tenths)
    yield (
        f"Edges over middle {_shown(curve, 'edges')}: start {_shown(curve, 'start')}, end "
        f"{_shown(curve, 'end')} ({curve.confidence:.0%} intervals; 1 is flat). Best last: edges "
        f"{ordered.edges:.2f}, start {ordered.start:.2f}, end {ordered.end:.2f}."
    )
    yield (
        f"By this curve, {k} passages of equal length, ranked 1 to {k}, are placed in the order "
        f"{' '.join(str(rank + 1) for rank in order)}."
    )
    yield "Looking is not reading: posrag probe measures where the model answers correctly."


def _shown(curve: PositionalCurve, which: str) -> str:
    lower, upper = curve.intervals[which]
    return f"{getattr(curve, which):.2f} [{lower:.2f}, {upper:.2f}]"

"""``posrag attention``: where a local model looks."""

from __future__ import annotations

import argparse
from pathlib import Path

from shared_core.attention.by_slot import AttentionByPosition, attention_by_position
from shared_core.attention.figures import draw_document_scores, draw_positional_curve
from shared_core.cli import attention_report as report
from shared_core.cli import models, options, questions
from shared_core.cli.console import Console
from shared_core.cli.files import WAY_OUT, check_file, load_former, make_output
from shared_core.cli.installed import LOCAL_MODEL, check_installed
from shared_core.generation import HuggingFaceModel
from shared_core.sensitivity.curve import PositionalCurve
from shared_core.sensitivity.questions import check_context, check_questions
from shared_core.sensitivity.records import beside
from shared_core.wording import counted

DESCRIPTION = (
    "Measure how much a local model attends to each position of the prompt while it answers, with "
    "the passages shuffled and with the most relevant last. Plot it, and save the positional "
    "curve: with it documents are placed without an extra round of the model."
)


def add_options(parser: options.Options) -> None:
    """Add the model, the questions and where the curve goes."""
    add = parser.add_argument
    add("model", metavar="MODEL", help=models.LOCAL_HELP)
    questions.add_questions(
        parser,
        "; gold counts as the most relevant, followed by the distractors in their order",
    )
    add("--seed", type=int, default=0, help="seed of the shuffling and of the intervals "
        "(default: 0)")  # fmt: skip
    add("--batch-size", type=int, help="prompts in one forward pass (default: 8)")
    add("--max-new-tokens", type=int, default=64, help="longest answer in tokens (default: 64)")
    add("--output", type=options.path, metavar="FOLDER", help="folder of the curve and the figures "
        "(default: curves in $POSRAG_PROFILES or ~/.posrag/profiles)")  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    check_installed("rich", "matplotlib", *LOCAL_MODEL)
    console = Console()
    source = questions.open_questions(arguments, console)
    check_context(source.k)
    check_questions(source.questions, source.k)
    if len(source.questions) < 2:
        raise ValueError(
            f"--data {arguments.data}: an interval needs at least 2 questions, got "
            f"{len(source.questions)}"
        )
    model = models.open_local_model(
        arguments.model,
        max_new_tokens=arguments.max_new_tokens,
        batch_size=arguments.batch_size,
    )
    file = _file_of(model.name, arguments.output)
    found = _read(console, model, source, seed=arguments.seed)
    _save(found, file, console)
    for part in report.parts(found):
        console.show(part)
    for line in report.lines(found.curve, file, spec=arguments.model):
        console.show(line, whole=True)
    return 0


def _file_of(model: str, folder: Path | None) -> Path:
    """Return the file of a model's curve, and check that it can be written."""
    saved = PositionalCurve.file_of(model)
    if folder is None:
        check_file(saved, way_out=f"; give --output, or {WAY_OUT}")
        return saved
    make_output(folder)
    return folder / saved.name


def _save(found: AttentionByPosition, file: Path, console: Console) -> None:
    """Write curve and figures; keep a former curve of something else or of more questions."""
    old, new = load_former(PositionalCurve.load, file), found.curve
    if old is not None and (_kind(old) != _kind(new) or old.n > new.n):
        kept = old.save(beside(file, old.date))
        console.say(f"A former curve that says something else is kept as {kept}", whole=True)
    new.save(file)
    documents, curve = report.figures_of(file)
    draw_document_scores(found, documents)
    draw_positional_curve(found, curve)


def _kind(curve: PositionalCurve) -> tuple[object, ...]:
    return curve.identity, curve.k, curve.template, curve.task


def _read(
    console: Console, model: HuggingFaceModel, source: questions.ProbeData, *, seed: int
) -> AttentionByPosition:
    done, total = 0, 2 * len(source.questions)
    asked = f"{counted(len(source.questions), 'question')} ({source.task})"
    console.say(
        f"{model.name}: {asked}, {source.k} passages each, shuffled and best last: "
        f"{counted(total, 'answer')}."
    )
    with console.counting("answering", total) as advance:

        def count(answers: int) -> None:
            nonlocal done
            done += answers
            advance(answers)

        try:
            return attention_by_position(
                model,
                source.questions,
                k=source.k,
                template=source.template,
                seed=seed,
                task=source.task,
                on_answer=count,
            )
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f"{done:,} of {total:,} answers had been read, and a curve takes them all: "
                "nothing is kept (--n takes fewer questions)"
            ) from None

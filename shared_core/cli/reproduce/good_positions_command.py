"""``posrag reproduce goodpositions``: its options, and the job from questions to tables."""

from __future__ import annotations

import argparse

from shared_core import __version__
from shared_core.cli import models
from shared_core.cli.console import Console
from shared_core.cli.files import open_journal
from shared_core.cli.installed import LOCAL_MODEL, TABLES, check_installed
from shared_core.cli.options import Subparsers
from shared_core.cli.reproduce import data, good_positions, good_positions_report
from shared_core.cli.reproduce.tables import add_outcomes, check_output, save


def add_parser(experiments: Subparsers) -> None:
    """Add the experiments of GoodPositions."""
    parser = experiments.add_parser(
        "goodpositions",
        help="From Bias to Benefit: Place Good Documents in Good Positions. Tables 2, 3 and 5",
        description="On your own questions and with a model on this machine: methods of one round "
        "and of two, placements of ranked documents, and fewer documents. Answers are kept, except "
        "for the rounds whose attention is read: an interrupted run repeats those.",
    )
    add = parser.add_argument
    data.add_data(parser)
    add_outcomes(parser)
    add("--model", metavar="MODEL", required=True, help="a folder or hub name of a Hugging Face "
        "causal language model; or module:attribute, which names a "
        "shared_core.HuggingFaceModel")  # fmt: skip
    add("-k", "--k", type=int, help="documents per question (default: 10, or all if there are "
        "fewer)")  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    check_installed({**TABLES, **LOCAL_MODEL})
    console = Console()
    check_output(arguments.output)
    questions = data.open_ranked(arguments.data, n=arguments.n, k=arguments.k)
    model = models.open_local_model(arguments.model, max_new_tokens=arguments.max_new_tokens)
    experiment = good_positions.GoodPositionsExperiment(
        console=console,
        model=model,
        journal=open_journal(model.name),
        questions=questions,
    )
    found = good_positions_report.Tables.of(experiment)
    for part in good_positions_report.parts(found, model.name):
        console.show(part)
    if arguments.output is not None:
        settings = {"model": model.name, "versions": {"posrag": __version__}}
        save(good_positions_report.as_json(found, **settings), arguments.output, console)
    return 0

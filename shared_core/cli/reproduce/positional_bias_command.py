"""``posrag reproduce positionalbias``: its options, and the job from questions to tables."""

from __future__ import annotations

import argparse

from shared_core import __version__
from shared_core.cli import models
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingModel
from shared_core.cli.embedding_cache import EmbeddingCache
from shared_core.cli.files import check_readable, open_journal
from shared_core.cli.installed import MEASURES, TABLES, check_installed
from shared_core.cli.options import (
    Subparsers,
    add_abstain_template,
    add_embedding,
    add_endpoint,
    given,
    names,
    open_template,
    path,
)
from shared_core.cli.reproduce import data, positional_bias, positional_bias_report
from shared_core.cli.reproduce.tables import add_outcomes, check_output, save
from shared_core.cli.reranker import open_reranker
from shared_core.comparison import PIPELINES, ComparisonData
from shared_core.comparison.pipelines import RERANKED
from shared_core.comparison.retrieval import Retrieval
from shared_core.generation.templates import ABSTAIN, ANSWER

FETCHED = 50
"""Depth of each leg's search, and of what is reranked."""


def add_parser(experiments: Subparsers) -> None:
    """Add the experiments of PositionalBias."""
    parser = experiments.add_parser(
        "positionalbias",
        help="Do RAG Systems Really Suffer From Positional Bias? Tables 1 to 4",
        description="On your own questions: accuracy by slot of the relevant passage, with and "
        "without a hard distractor; orders of the passages against shuffling; and how distracting "
        "the retrieved passages are. Every answer is kept, and an interrupted run continues where "
        "it stopped.",
    )
    add = parser.add_argument
    data.add_data(parser)
    add_outcomes(parser)
    add("--model", metavar="MODEL", help=f"{models.HELP} (default: none; only retrieval is "
        "measured)")  # fmt: skip
    add("--documents", type=path, help="JSON lines with id and text: what to retrieve from")
    add("--pipelines", type=names, help=f"some of {', '.join(PIPELINES)}, each also with +rerank; "
        "Tables 1 and 2 are for the first (default: given if the data have documents, else dense "
        "and sparse; with --reranker also reranked)")  # fmt: skip
    add_embedding(parser, "where vectors are kept")
    add("--reranker", help="cross-encoder for +rerank: a folder or a hub name")
    add_abstain_template(parser, "the distracting effect")
    add_endpoint(parser)
    add("--name", type=given, help="name to use for the model (default: its own)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    check_installed({**TABLES, **MEASURES, **models.packages(arguments.model)})
    console = Console()
    check_output(arguments.output)
    if arguments.documents is not None:
        check_readable(arguments.documents, "--documents")
    abstain = open_template(arguments.abstain_template, "--abstain-template") or ABSTAIN
    collection = data.open_collection(arguments.data, arguments.documents, n=arguments.n)
    model = models.open_if_named(arguments)
    reranked = arguments.reranker is not None
    pipelines = arguments.pipelines or _pipelines(collection, reranked=reranked)
    retrieval = Retrieval(
        data=collection,
        embed=EmbeddingCache(EmbeddingModel(arguments.embedding), arguments.cache, console),
        reranker=open_reranker(arguments.reranker, pipelines),
        fetch_k=FETCHED,
    )
    if model is None:
        found = positional_bias.without_model(retrieval, pipelines)
    else:
        found = positional_bias.PositionalBiasExperiment(
            console=console,
            model=model,
            journal=open_journal(model.name),
            template=ANSWER,
            abstain=abstain,
            retrieval=retrieval,
            pipelines=pipelines,
        ).run()
    name = None if model is None else model.name
    for part in positional_bias_report.parts(found, name or "no model"):
        console.show(part)
    if arguments.output is not None:
        settings = {"model": name, "versions": {"posrag": __version__}}
        save(positional_bias_report.as_json(found, **settings), arguments.output, console)
    return 0


def _pipelines(collection: ComparisonData, *, reranked: bool) -> tuple[str, ...]:
    if all(question.ranking for question in collection.questions):
        return (f"given{RERANKED}", "given") if reranked else ("given",)
    names = ("dense", "sparse")
    return (*(f"{name}{RERANKED}" for name in names if reranked), *names)

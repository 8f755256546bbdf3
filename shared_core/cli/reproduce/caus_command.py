"""``posrag reproduce caus``: its options, and the job from corpus to tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from shared_core import __version__
from shared_core._extras import require
from shared_core.cli import models
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingModel
from shared_core.cli.embedding_cache import EmbeddingCache, indexed
from shared_core.cli.files import open_journal
from shared_core.cli.installed import EMBEDDING, MEASURES, TABLES, check_installed
from shared_core.cli.options import Subparsers, add_embedding, add_endpoint, add_psi, given
from shared_core.cli.reproduce import caus_report, failing
from shared_core.cli.reproduce.caus import Measured, configurations
from shared_core.cli.reproduce.failing import each_answered, failures_of
from shared_core.cli.reproduce.tables import add_outcomes, check_output, save
from shared_core.comparison import Failure
from shared_core.comparison.report.markdown import failure_lines
from shared_core.corpora import torch_api_passages, torch_queries
from shared_core.evaluation import complete_cases
from shared_core.generation import Generator, ModelClient
from shared_core.generation.ask import Request, Response
from shared_core.generation.responses import Failed
from shared_core.sensitivity import Psi
from shared_core.tokens import estimate_tokens
from shared_core.types import Query
from shared_core.wording import counted

Answers: TypeAlias = Sequence[Response]
"""Of one question, row by row."""


def add_parser(experiments: Subparsers) -> None:
    """Add the experiments of CAUS."""
    parser = experiments.add_parser(
        "caus",
        help="CAUS: hybrid scores and U-shape on the PyTorch API, Tables I to III",
        description="Ask 52 questions about the API of the installed PyTorch: dense retrieval "
        "against CAUS, the weight of the dense score, and the number of passages. Retrieval is "
        "always measured; answers are if --model names a language model. Every answer is kept, and "
        "an interrupted run continues where it stopped.",
    )
    add = parser.add_argument
    add("--model", metavar="MODEL", help=models.HELP)
    add_psi(parser)
    add_embedding(parser, "where vectors are kept")
    add_endpoint(parser)
    add("--name", type=given, help="name to use for the model (default: its own)")
    add_outcomes(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    check_installed({**TABLES, **MEASURES, **EMBEDDING, **models.packages(arguments.model)})
    console = Console()
    check_output(arguments.output)
    model = models.open_if_named(arguments)
    embed = EmbeddingCache(EmbeddingModel(arguments.embedding), arguments.cache, console)
    version = require("torch", extra="models").__version__
    rows = _retrieved(embed, psi=arguments.psi)
    ids = [query.id for query in rows[0].queries]
    failures: tuple[Failure, ...] = ()
    if model is not None:
        rows, failures = _answered(console, model, rows)
    for part in caus_report.parts(rows):
        console.show(part)
    for line in filter(None, failure_lines(failures, ids, "all rows")):
        console.show(line)
    if arguments.output is not None:
        found = caus_report.as_json(
            rows,
            model=None if model is None else model.name,
            embedding=embed.label,
            failures=failing.as_json(failures, ids),
            versions={"posrag": __version__, "torch": version},
        )
        save(found, arguments.output, console)
    return 0


def _retrieved(embed: EmbeddingCache, *, psi: Psi) -> list[Measured]:
    index = indexed(torch_api_passages(), embed)
    queries = torch_queries()
    texts = [query.query for query in queries]
    asked = [*map(Query, texts, embed(texts))]
    return [Measured(row, queries, row.caus.search(index, asked)) for row in configurations(psi)]


def _answered(
    console: Console, model: Generator, rows: Sequence[Measured]
) -> tuple[list[Measured], tuple[Failure, ...]]:
    asker = ModelClient.of(model, journal=open_journal(model.name))
    by_row = [[(prompt,) for prompt in row.prompts] for row in rows]
    requests = [request for row in by_row for request in row]
    different = {*requests}
    tokens = sum(estimate_tokens(prompt) for (prompt,) in different)
    console.say(
        f"{model.name}: {counted(len(different), 'different prompt')}, about {tokens:,} tokens, "
        f"of which {asker.known(requests):,} are answered already."
    )

    def ask(some: Sequence[Sequence[Request]], on_answer: Callable[[int], None]) -> list[Answers]:
        together = [request for each in some for request in each]
        answers = iter(
            asker.answers(
                together, part_of=lambda: requests, on_answer=on_answer, on_wait=console.say
            )
        )
        return [[next(answers) for _ in each] for each in some]

    with console.progress() as bar:
        task = bar.add_task("asking", total=len(requests))
        found = each_answered(
            ask,
            [*zip(*by_row, strict=True)],
            asker,
            weight=len,
            on_answer=lambda count: bar.advance(task, count),
        )
    failures = failures_of(found, range(len(found)), "tables")
    return [_with_answers(row, which, found) for which, row in enumerate(rows)], failures


def _with_answers(row: Measured, which: int, found: Sequence[Answers | Failed]) -> Measured:
    """Return a row with its answers to the questions that no row failed on."""
    kept = {at: each for at, (each,) in complete_cases([each] for each in found).items()}
    return replace(
        row,
        queries=[row.queries[at] for at in kept],
        arrangements=[row.arrangements[at] for at in kept],
        answers=[str(each[which]) for each in kept.values()],
    )

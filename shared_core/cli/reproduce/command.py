"""The ``reproduce`` subcommand: its options, and the job from corpus to tables."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from shared_core import __version__
from shared_core._extras import require
from shared_core.cli import models
from shared_core.cli.console import Console
from shared_core.cli.demo.corpus import default_cache, open_corpus
from shared_core.cli.demo.model import EmbeddingModel, default_model
from shared_core.cli.options import psi
from shared_core.cli.reproduce import papers, report
from shared_core.cli.reproduce.caus import Measured, configurations
from shared_core.cli.reproduce.papers import open_if_named
from shared_core.cli.reproduce.tables import check_output, save
from shared_core.corpora import torch_api_passages, torch_queries
from shared_core.generation import Asker, Generator, Journal
from shared_core.sensitivity import Psi
from shared_core.sensitivity.probing import CHARACTERS_A_TOKEN
from shared_core.sensitivity.profile_files import path_of

Subparsers = argparse._SubParsersAction  # argparse has no public name for it


def add_parser(subcommands: Subparsers[argparse.ArgumentParser]) -> None:
    """Add ``reproduce`` and its experiments."""
    parser = subcommands.add_parser("reproduce", help="run the experiments of a paper")
    experiments = parser.add_subparsers(title="experiments", required=True, metavar="EXPERIMENT")
    _add_caus(experiments)
    papers.add_positional_bias(experiments)
    papers.add_good_positions(experiments)


def _add_caus(experiments: Subparsers[argparse.ArgumentParser]) -> None:
    caus = experiments.add_parser(
        "caus",
        help="CAUS: hybrid scores and U-shape on the PyTorch API, Tables I to III",
        description="Ask 52 questions of the documentation of the installed PyTorch: dense "
        "retrieval against CAUS, the weight of the dense score, and the number of passages. "
        "Retrieval is always measured, answers where --model names a language model. Every answer "
        "is kept, and an interrupted run goes on where it stopped.",
    )
    add = caus.add_argument
    add("--model", metavar="MODEL", help=models.HELP)
    add("--psi", type=psi, default="always", help="what the gate knows of the model: an index, "
        "a saved profile, always or never (default: always)")  # fmt: skip
    add("--embedding", default=default_model(), help="embedding model: a folder or a hub name")
    add("--cache", type=Path, default=default_cache(), help="folder of the cached index")
    add("--base-url", help="address of an OpenAI-compatible endpoint")
    add("--max-new-tokens", type=int, default=64, help="longest answer, in tokens (default: 64)")
    add("--name", help="name of the model, if not its own")
    add("--output", type=Path, help="JSON file with every outcome")
    caus.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    console = Console()
    check_output(arguments.output)
    model = open_if_named(arguments)
    embedding = EmbeddingModel(arguments.embedding)
    version = require("torch", extra="models").__version__
    rows = _retrieved(console, embedding, arguments.cache, version, psi=arguments.psi)
    if model is not None:
        rows = _answered(console, model, rows)
    for part in report.parts(rows):
        console.show(part)
    if arguments.output is not None:
        found = report.as_json(
            rows,
            model=None if model is None else model.name,
            embedding=embedding.label,
            versions={"posrag": __version__, "torch": version},
        )
        save(found, arguments.output, console)
    return 0


def _retrieved(
    console: Console, embedding: EmbeddingModel, cache: Path, version: str, *, psi: Psi
) -> list[Measured]:
    rows = [*configurations(psi)]
    corpus = open_corpus(
        torch_api_passages(), embedding, cache, version=version, rebuild=False, console=console
    )
    queries = torch_queries()
    texts = [query.query for query in queries]
    vectors = embedding.embed(texts)
    return [
        Measured(row, queries, row.caus.search_batch(corpus.index, texts, vectors)) for row in rows
    ]


def _answered(console: Console, model: Generator, rows: Sequence[Measured]) -> list[Measured]:
    asker = Asker.of(model, journal=Journal(path_of(model.name, ".answers.jsonl")))
    requests = [(prompt,) for row in rows for prompt in row.prompts]
    different = {*requests}
    kept = asker.known(requests)
    tokens = sum(len(prompt) for (prompt,) in different) // CHARACTERS_A_TOKEN
    console.say(
        f"{model.name}: {len(different):,} different prompts, about {tokens:,} tokens, of which "
        f"{kept:,} are answered already."
    )
    with console.progress() as bar:
        task = bar.add_task("asking", total=len(requests))
        answers = iter(
            asker.answers(
                requests, on_answer=lambda count: bar.advance(task, count), on_wait=console.say
            )
        )
    return [replace(row, answers=[cast(str, next(answers)) for _ in row.queries]) for row in rows]

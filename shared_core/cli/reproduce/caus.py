"""The experiments of CAUS (section IV) on our 52 questions: Tables I, II and III."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from shared_core import CAUS, Arrangement, __version__
from shared_core._extras import require
from shared_core.checking import check_count
from shared_core.cli import models
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingCache, EmbeddingModel, indexed
from shared_core.cli.files import open_journal
from shared_core.cli.reproduce import tables
from shared_core.cli.reproduce.tables import Outcomes, Parts
from shared_core.comparison import Failure
from shared_core.comparison.text_report import failure_lines
from shared_core.corpora import TorchQuery, torch_api_passages, torch_queries
from shared_core.corpora.docstrings import whole_words
from shared_core.evaluation import GRADERS, compare_paired, grade, retrieval_measures
from shared_core.generation import ModelClient
from shared_core.generation.responses import Response
from shared_core.generation.templates import PromptTemplate
from shared_core.types import Query

if TYPE_CHECKING:
    from rich.table import Table

LONGEST_PASSAGE = 1200
"""Characters of a passage in the prompt: the signature, and what the first arguments mean."""

CALL = PromptTemplate(
    "Use the documentation to answer the question with a single call. Write out the name of the "
    "function or class; call a method on the variable that the question names. Give required "
    "arguments by position and others by name, in the order of the signature, and leave out those "
    "that keep their default. Give the call alone."
    "\n\nDocumentation:\n{context}\n\nQuestion: {question}\nCall:"
)

PAPER = tables.paper("caus")


def experiment(arguments: argparse.Namespace, console: Console) -> tuple[Outcomes, Parts]:
    """Retrieve for every row and, if there is a model, ask it."""
    shared = {"psi": arguments.psi, **PAPER["options"]}
    rows = [(each, CAUS(**{**shared, **each["options"]})) for each in PAPER["rows"]]
    model = None if arguments.model is None else models.open_named(arguments)
    embed = EmbeddingCache(EmbeddingModel(arguments.embedding), arguments.cache, console)
    index, queries = indexed(torch_api_passages(), embed), _spread(torch_queries(), arguments.n)
    texts, ids = [query.query for query in queries], [query.id for query in queries]
    asked = [*map(Query, texts, embed(texts))]
    arranged = [caus.search(index, asked) for _, caus in rows]
    kept: Mapping[int, Sequence[Response]] = dict.fromkeys(range(len(queries)), ())
    failures: list[Failure] = []
    if model is not None:
        client = ModelClient.of(model, journal=open_journal(model.name))
        prompts = {
            at: [(_prompt(query, row[at]),) for row in arranged] for at, query in enumerate(queries)
        }
        asking = tables.Asking(console, client)
        kept, failures = asking.answers(model.name, prompts, at="tables")
    found: Outcomes = {
        "model": None if model is None else model.name,
        "embedding": embed.label,
        "failures": [*map(asdict, failures)],
        "versions": {"posrag": __version__, "torch": require("torch", extra="models").__version__},
        "questions": [
            {"id": each.id, "level": each.level, "api": each.api}
            for each in (queries[at] for at in kept)
        ],
        "rows": [
            _row(
                *row,
                [queries[at] for at in kept],
                [arranged[number][at] for at in kept],
                None if model is None else [str(each[number]) for each in kept.values()],
            )
            for number, row in enumerate(rows)
        ],
    }
    return found, [*_parts(found["rows"]), *failure_lines(failures, ids, "all rows")]


def _spread(queries: Sequence[TorchQuery], n: int | None) -> Sequence[TorchQuery]:
    """Return `n` of them, of all levels; all by default."""
    if n is None:
        return queries
    return queries[:: max(1, len(queries) // check_count(n, "--n"))][:n]


def _prompt(query: TorchQuery, arrangement: Arrangement) -> str:
    texts = [whole_words(passage.text, LONGEST_PASSAGE) for passage in arrangement.passages]
    return CALL.render(texts, query.query)


def _row(
    each: Mapping[str, Any],
    caus: CAUS,
    queries: Sequence[TorchQuery],
    arrangements: Sequence[Arrangement],
    answers: Sequence[str] | None,
) -> Outcomes:
    """Return what a row retrieved and, where a model was asked, what came of it.

    ``hit`` and ``nDCG`` are at the row's k. Ranks and slots of the gold passage count from 1, None
    where it was not retrieved.
    """
    found = {
        query.id: [passage.id for passage in arrangement.ranking.passages]
        for query, arrangement in zip(queries, arrangements, strict=True)
    }
    gold = [(query.api, found[query.id]) for query in queries]
    ranks = [ids.index(api) + 1 if api in ids else None for api, ids in gold]
    slots = [
        None if rank is None else arrangement.slots.index(rank - 1) + 1
        for rank, arrangement in zip(ranks, arrangements, strict=True)
    ]
    at_k = retrieval_measures(
        found,
        {query.id: {query.api: 1} for query in queries},
        [f"hit@{caus.k}", f"nDCG@{caus.k}"],
    )
    values = {"hit": at_k[f"hit@{caus.k}"], "nDCG": at_k[f"nDCG@{caus.k}"]}
    if answers is not None:
        both = [*zip(queries, answers, strict=True)]
        values["EM"] = np.array([grade(GRADERS["em"], text, q.answers) for q, text in both])
        values["KW"] = np.array([grade(GRADERS["kw"], text, q.keywords) for q, text in both])
    return {
        "table": each["table"],
        "name": each["name"],
        "alpha": caus.alpha,
        "k": caus.k,
        "placement": caus.gate.placement,
        "gate": caus.gate.reason,
        "published_percent": each["published"],
        "ranks": ranks,
        "slots": slots,
        "answers": answers,
        "figures": {name: tables.measured(outcomes) for name, outcomes in values.items()},
    }


def _parts(rows: Sequence[Outcomes]) -> Parts:
    for number, title in PAPER["titles"].items():
        chosen = [row for row in rows if row["table"] == number]
        yield f"\n{title}"
        yield _table(chosen, "em", ["hit", "nDCG"])
        if "kw" in chosen[0]["published_percent"]:
            yield _table(chosen, "kw", [])
    yield PAPER["footnote"]
    if "EM" in rows[0]["figures"]:
        yield from _gains([row for row in rows if row["table"] == "I"])
    else:
        yield "No model was asked (--model), so EM and KW are only the paper's."


def _table(rows: Sequence[Outcomes], measure: str, retrieval: Sequence[str]) -> Table:
    ours = [*retrieval, *({measure.upper()} & rows[0]["figures"].keys())]
    of_models = PAPER["models"][-len(rows[0]["published_percent"][measure]) :]
    lines = []
    for row in rows:
        figures = [row["figures"][name] for name in ours]
        cells = [tables.with_interval(each["mean"], each["interval"]) for each in figures]
        paper = tables.paper_cells(row["published_percent"].get(measure, ()))
        lines.append([row["name"], *cells, *paper])
    theirs = (f"{measure.upper()}\n{each}" for each in of_models)
    return tables.grid(["", *ours, *theirs], lines)


def _gains(rows: Sequence[Outcomes]) -> Iterator[str]:
    """Say what each method adds to the first one, and whether that is more than chance."""
    (base, least), *others = [(row["name"], row["figures"]["EM"]["outcomes"]) for row in rows]
    compared = compare_paired({name: (ours, least) for name, ours in others})
    for name, gain in compared.items():
        lower, upper = gain.interval
        yield (
            f"EM of {name} less {base}: {100 * gain.difference:+.1f} points [{100 * lower:+.1f}, "
            f"{100 * upper:+.1f}], p = {gain.adjusted:.3g} ({gain.test}, Holm)."
        )

"""``posrag compare``: strategies of arrangement on one's own questions."""

from __future__ import annotations

import argparse
from itertools import chain
from typing import Any

from shared_core._extras import require
from shared_core.cli import compare_report as report
from shared_core.cli import models, options
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingCache, EmbeddingModel
from shared_core.cli.files import KEPT, check_file, keeping, kept_answers, open_journal
from shared_core.cli.models import open_reranker
from shared_core.cli.options import path
from shared_core.comparison import (
    PIPELINES,
    STRATEGIES,
    Comparison,
    read_comparison,
    to_html,
    to_markdown,
)
from shared_core.comparison.retrieval import STEPS
from shared_core.comparison.strategies import DEFAULTS
from shared_core.comparison.text_report import capitalised
from shared_core.evaluation import GRADERS
from shared_core.files import write_whole

DESCRIPTION = (
    "Ask a model your questions with the retrieved passages in different orders, and report "
    "whether any order is better than the ranked one, or than a random one. An interrupted "
    f"comparison continues where it stopped: answers are kept in {KEPT}."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add data, model, what is compared and how."""
    group = parser.add_argument_group
    data = group("data and model")
    add = data.add_argument
    add("--data", type=path, required=True, help="JSON lines with question, answers (or none: "
        "then it is told how many answers the order changes) and documents (what your retriever "
        "returned, best first; gold: the places of those with the answer, if known); or with gold "
        "and distractors, as for probe; or with the ids of gold --documents")  # fmt: skip
    add("--model", metavar="MODEL", required=True, help=models.HELP)
    add("--output", type=path, required=True, help="folder of the report")
    options.add(data, "documents", "n")
    add = group("what is compared").add_argument
    add("-k", "--k", type=options.numbers, dest="ks", help="numbers of passages, such as 5,10 "
        "(default: 10, or all if there are fewer)")  # fmt: skip
    add("--pipelines", type=options.names, help=f"some of {', '.join(PIPELINES)}, each also with "
        f"{', '.join(STEPS)}, in this order; give it without a step, too, to learn what that gains "
        "per second (default: given if the data have documents, else hybrid)")  # fmt: skip
    add("--budget", type=int, dest="token_budget", help="most tokens of the passages of a prompt: "
        "as many of the k as it holds; with +spans neighbours compete with them (default: no "
        "limit)")  # fmt: skip
    add("--strategies", type=options.names, default=DEFAULTS, help=f"some of "
        f"{', '.join(STRATEGIES)} (default: {','.join(DEFAULTS)}; the first two always take part; "
        "two_round, attention and distraction_aware need a local model)")  # fmt: skip
    add("--shuffles", type=int, default=3, help="random orders per question (default: 3)")
    add("--layouts", type=options.names, default=("after",), help="where the question stands: some "
        "of after (the passages), before, both (default: after)")  # fmt: skip
    settings = group("how it is compared")
    add = settings.add_argument
    add("--profile", help="position profile for max_relevance, min_distraction and "
        "distraction_aware: a file or a model's name")  # fmt: skip
    add("--curve", help="positional curve for attention: a file or a model's name")
    add("--graders", type=options.names, help=f"some of {', '.join(GRADERS)}, see "
        "below; the first one decides; or logprob, the probability of the answer, for local models "
        "(default: em)")  # fmt: skip
    add("--again", action="store_true", default=None, help="ask again in ranked order, to tell "
        "answers that change with the order from those that change by themselves (default: if "
        "the questions have no answers)")  # fmt: skip
    options.add(settings, "template", "abstain-template", "embedding", "cache", "reranker", "seed")
    options.add(group("cost and resuming").add_mutually_exclusive_group(), *options.COST)
    options.add(group("how the model is asked"), *options.ASKING, "name")
    parser.epilog = options.GRADERS_HELP


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    console = Console()
    data = read_comparison(arguments.data, arguments.documents, n=arguments.n)
    if arguments.graders and not data.answered:
        raise ValueError(
            f"--graders {','.join(arguments.graders)}: no question of {arguments.data} has answers "
            "to grade by; without --graders it is told how many answers the order changes"
        )
    comparison = _comparison(arguments, console)
    model = models.open_named(arguments)
    journal = kept_answers(model.name)
    if not arguments.plan:
        for file in report.files_of(arguments.output):
            check_file(file)
        journal = open_journal(model.name, fresh=arguments.fresh)
    job = comparison.job(model, data, journal=journal)
    plan = job.plan()
    costs = report.cost_lines(job.model, plan)
    unanswered = () if data.answered else (report.UNANSWERED,)
    for line in chain(costs, unanswered):
        (console.show if arguments.plan else console.say)(line)
    if arguments.plan:
        return 0
    with keeping(journal):
        with console.counting("asking", plan.kept + plan.calls) as advance:
            result = job.run(on_answer=advance, on_wait=console.say)
        texts = (to_html(result), to_markdown(result), result.to_json())
        for file, text in zip(report.files_of(arguments.output), texts, strict=True):
            write_whole(file, text)
    markdown: Any = require("rich.markdown", extra="eval")
    console.show(markdown.Markdown(to_markdown(result)))
    console.show(f"\n{capitalised(result.verdict.text)}.\n")
    console.show(*report.file_lines(arguments.output, journal), whole=True)
    return 0


def _comparison(arguments: argparse.Namespace, console: Console) -> Comparison:
    embedding = EmbeddingCache(EmbeddingModel(arguments.embedding), arguments.cache, console)
    made = options.fields_of(Comparison, arguments) | {
        "embed": embedding,
        "embedding": embedding.label,
        "reranker": open_reranker(arguments.reranker),
    }
    return Comparison(**made)

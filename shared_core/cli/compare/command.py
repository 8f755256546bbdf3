"""The ``compare`` subcommand: its options, and the job from questions to report."""

from __future__ import annotations

import argparse

from shared_core.cli import models
from shared_core.cli.compare import report
from shared_core.cli.compare.files import ReportFiles
from shared_core.cli.console import Console
from shared_core.cli.embedding import Embedding
from shared_core.cli.files import KEPT, check_readable
from shared_core.cli.options import (
    Subparsers,
    add_abstain_template,
    add_asking,
    add_embedding,
    add_fresh,
    add_plan,
    check_plan,
    given,
    names,
    open_template,
    path,
    with_graders,
)
from shared_core.cli.reranker import open_reranker
from shared_core.comparison import (
    PIPELINES,
    STRATEGIES,
    Comparison,
    ComparisonJob,
    ComparisonPlan,
    ComparisonResult,
    read_comparison,
)
from shared_core.comparison.strategies import DEFAULTS
from shared_core.evaluation import GRADERS
from shared_core.generation.templates import ABSTAIN, ANSWER


def add_parser(subcommands: Subparsers) -> None:
    """Add ``compare`` and its options."""
    parser = subcommands.add_parser(
        "compare",
        help="does another order of the passages help on your own questions?",
        **with_graders(
            "Answer your questions with the retrieved passages in different orders, and say "
            "whether any order is better than the ranked one, or than chance. An interrupted "
            "comparison goes on where it stopped: answers are kept in "
            f"{KEPT}."
        ),
    )
    add = parser.add_argument
    add("--data", type=path, required=True, help="JSON lines with question, answers and documents "
        "(what your retriever returned, best first; gold: their places, if known), or with gold "
        "and distractors as for the probe, or with the ids of gold --documents")  # fmt: skip
    add("--model", metavar="MODEL", required=True, help=models.HELP)
    add("--output", type=path, required=True, help="folder of the report")
    add("--documents", type=path, help="JSON lines with id and text: what to retrieve from")
    add("--n", type=int, help="number of questions (default: all)")
    add("--k", type=_numbers, help="numbers of passages, as 5,10 (default: 10, or all where there "
        "are fewer)")  # fmt: skip
    add("--pipelines", type=names, help=f"some of {', '.join(PIPELINES)}, each also with +rerank "
        "and +spans "
        "(default: given where there are documents, else hybrid)")  # fmt: skip
    add("--strategies", type=names, default=DEFAULTS, help=f"some of {', '.join(STRATEGIES)} "
        f"(default: {','.join(DEFAULTS)}; the first two always take part; two_round, attention "
        "and distraction_aware take a local model)")  # fmt: skip
    add("--shuffles", type=int, default=3, help="random orders a question (default: 3)")
    add("--graders", type=names, default=("em",), help=f"some of {', '.join(GRADERS)}, see "
        "below; the first one decides (default: em)")  # fmt: skip
    add("--profile", help="position profile for max_relevance, min_distraction and "
        "distraction_aware: a file or a model's name")  # fmt: skip
    add("--curve", help="positional curve for attention: a file or a model's name")
    add("--template", type=path, help="file with a prompt that holds {context} and {question}")
    add_abstain_template(parser, "distraction_aware")
    add_embedding(parser, "where vectors are kept")
    add("--reranker", help="cross-encoder for +rerank: a folder or a hub name")
    add("--seed", type=int, default=0, help="seed of shuffles and intervals (default: 0)")
    add("--max-failed", type=float, default=0.1, help="share of the questions that the model may "
        "fail on (default: 0.1)")  # fmt: skip
    add_asking(parser)
    add("--name", type=given, help="name of the model, if not its own")
    add_fresh(parser)
    add_plan(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    console = Console()
    check_plan(arguments)
    check_readable(arguments.data, "--data")
    if arguments.documents is not None:
        check_readable(arguments.documents, "--documents")
    data = read_comparison(arguments.data, arguments.documents, n=arguments.n)
    embedding = Embedding(arguments.embedding, arguments.cache, console)
    comparison = Comparison(
        pipelines=arguments.pipelines,
        ks=arguments.k,
        strategies=arguments.strategies,
        shuffles=arguments.shuffles,
        graders=arguments.graders,
        template=open_template(arguments.template, "--template") or ANSWER,
        abstain=open_template(arguments.abstain_template, "--abstain-template") or ABSTAIN,
        profile=arguments.profile,
        curve=arguments.curve,
        embed=embedding,
        embedding=embedding.label,
        reranker=open_reranker(arguments.reranker, arguments.pipelines or ()),
        seed=arguments.seed,
        max_failed=arguments.max_failed,
        batch_size=arguments.batch_size,
        concurrency=arguments.concurrency,
        attempts=arguments.attempts,
    )
    model = models.open_model(
        arguments.model,
        base_url=arguments.base_url,
        max_new_tokens=arguments.max_new_tokens,
        batch_size=arguments.batch_size,
        name=arguments.name,
    )
    files = ReportFiles.of(arguments.output, model.name)
    job = comparison.job(model, data, journal=files.journal)
    if arguments.fresh:
        job.forget()
    plan = job.plan()
    costs = [*report.cost_lines(job.model.name, plan)]
    if arguments.k is None:
        costs += report.default_k_lines(plan)
    for line in costs:
        (console.show if arguments.plan else console.say)(line)
    if arguments.plan:
        return 0
    result = _compared(console, job, plan)
    files.save(result)
    for part in report.parts(result):
        console.show(part)
    for line in report.file_lines(files):
        console.show(line, whole=True)
    return 0


def _compared(console: Console, job: ComparisonJob, plan: ComparisonPlan) -> ComparisonResult:
    with console.progress() as bar:
        total = plan.kept + plan.calls + plan.to_come + sum(plan.reads.values())
        task = bar.add_task("asking", total=total)
        return job.run(
            on_answer=lambda count: bar.advance(task, count),
            on_wait=console.say,
        )


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers, as in 5,10, got {text!r}") from None

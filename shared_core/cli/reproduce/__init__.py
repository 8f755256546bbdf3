"""``posrag reproduce``: the experiments of the papers, one a subcommand."""

from __future__ import annotations

import argparse
import json
from textwrap import fill

from shared_core import __version__
from shared_core.cli import models, options
from shared_core.cli.console import Console
from shared_core.cli.files import check_file
from shared_core.cli.installed import EMBEDDING, LOCAL_MODEL, check_installed
from shared_core.cli.reproduce import caus, good_positions, positional_bias, tables
from shared_core.comparison import PIPELINES
from shared_core.files import write_whole

DESCRIPTION = "Run the experiments of a paper, and show its figures next to yours."

EXPERIMENTS = {
    "caus": (caus.experiment, ("ir_measures", *EMBEDDING), "--n 10"),
    "positionalbias": (
        positional_bias.experiment,
        ("ir_measures",),
        "--data mine.jsonl --model my_app:llm",
    ),
    "goodpositions": (
        good_positions.experiment,
        LOCAL_MODEL,
        "--data mine.jsonl --model Qwen/Qwen2.5-0.5B-Instruct --n 20",
    ),
}
"""Name -> what runs it, the modules it needs, and an example."""

GROUPS = ("data and model", "what is compared", "how the model is asked")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the experiments."""
    experiments = parser.add_subparsers(
        title="experiments", required=True, metavar="EXPERIMENT", dest="experiment"
    )
    for name, (_, _, example) in EXPERIMENTS.items():
        paper = tables.paper(name)
        parser = experiments.add_parser(
            name,
            help=paper["help"],
            description=f"example: posrag reproduce {name} {example}\n\n"
            f"{fill(paper['description'], 80)}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        data, compared, asked = map(parser.add_argument_group, GROUPS)
        if name != "caus":
            _add_data(data)
        if name == "positionalbias":
            _add_pipelines(compared)
            options.add_abstain_template(asked, "the distracting effect")
        if name == "goodpositions":
            data.add_argument("--model", metavar="MODEL", required=True, help=models.LOCAL_HELP)
            compared.add_argument("-k", "--k", type=int, help="documents per question (default: "
                "10, or all if there are fewer)")  # fmt: skip
        else:
            data.add_argument("--model", metavar="MODEL", help=f"{models.HELP} (default: none; "
                "only retrieval is measured)")  # fmt: skip
            options.add_embedding(compared)
            options.add_endpoint(asked)
            options.add_name(asked)
        if name == "caus":
            options.add_psi(compared)
        add = data.add_argument
        add("--n", type=int, help="number of questions (default: all)")
        add("--output", type=options.path, help="JSON file with every outcome (default: none)")
        asked.add_argument("--max-new-tokens", type=int, default=64, help="longest answer, in "
            "tokens (default: 64)")  # fmt: skip


def _add_data(parser: options.Options) -> None:
    add = parser.add_argument
    add("--data", type=options.path, required=True, help="JSON lines with question, answers and "
        "documents (best first; gold: the places of those with the answer), as for compare; or "
        "with gold and distractors, as for probe")  # fmt: skip


def _add_pipelines(parser: options.Options) -> None:
    add = parser.add_argument
    add("--documents", type=options.path, help=options.DOCUMENTS_HELP)
    add("--pipelines", type=options.names, help=f"some of {', '.join(PIPELINES)}, each also with "
        "+rerank; Tables 1 and 2 are for the first (default: given if the data have documents, "
        "else dense and sparse; with --reranker also reranked)")  # fmt: skip
    add("--reranker", help=models.RERANKER_HELP)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    experiment, needs, _ = EXPERIMENTS[arguments.experiment]
    check_installed("rich", *needs, *models.packages(arguments.model))
    console = Console()
    output = arguments.output
    if output is not None:
        if not output.parent.is_dir():
            raise ValueError(f"--output {output}: there is no such folder")
        check_file(output)
    found, parts = experiment(arguments, console)
    for part in parts:
        console.show(part)
    if output is not None:
        versions = {"posrag": __version__}
        found = {"experiment": arguments.experiment, "versions": versions, **found}
        write_whole(output, json.dumps(found, indent=1) + "\n")
        console.say(f"Every outcome is in {output}", whole=True)
    return 0

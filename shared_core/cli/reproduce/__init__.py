"""``posrag reproduce``: the experiments of the papers, one a subcommand."""

from __future__ import annotations

import argparse
import json
from textwrap import fill

from shared_core import __version__
from shared_core.cli import models, options
from shared_core.cli.console import Console
from shared_core.cli.files import check_file
from shared_core.cli.options import path
from shared_core.cli.reproduce import caus, good_positions, positional_bias, tables
from shared_core.comparison import PIPELINES
from shared_core.files import write_whole

DESCRIPTION = "Run the experiments of a paper, and show its figures next to yours."

EXPERIMENTS = {
    "caus": (caus.experiment, "--n 10"),
    "positionalbias": (positional_bias.experiment, "--data mine.jsonl --model my_app:llm"),
    "goodpositions": (
        good_positions.experiment,
        "--data mine.jsonl --model Qwen/Qwen2.5-0.5B-Instruct --n 20",
    ),
}
"""Name -> what runs it, and an example."""

GROUPS = ("data and model", "what is compared", "how the model is asked")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the experiments."""
    experiments = parser.add_subparsers(
        title="experiments", required=True, metavar="EXPERIMENT", dest="experiment"
    )
    for name, (_, example) in EXPERIMENTS.items():
        paper = tables.paper(name)
        parser = experiments.add_parser(
            name,
            help=paper["help"],
            description=f"example: posrag reproduce {name} {example}\n\n"
            f"{fill(paper['description'], 80)}",
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        data, compared, asked = map(parser.add_argument_group, GROUPS)
        if name == "caus":
            data.add_argument("--model", metavar="MODEL", help=f"{models.HELP} (default: none; "
                "only retrieval is measured)")  # fmt: skip
            compared.add_argument("--psi", type=options.number_or_name, default="always", help=""
                "what is known of the model that reads the passages: its position sensitivity "
                "index, a saved profile (path or name), or always or never to place them "
                "(default: always)")  # fmt: skip
        if name == "positionalbias":
            data.add_argument("--data", type=path, required=True, help="JSON lines with question, "
                "answers and documents (best first; gold: the places of those with the answer), "
                "as for compare; or with gold and distractors, as for probe")  # fmt: skip
            data.add_argument("--model", metavar="MODEL", required=True, help=models.HELP)
            compared.add_argument("--pipelines", type=options.names, help="some of "
                f"{', '.join(PIPELINES)}, each also with +rerank; Tables 1 and 2 are for the first "
                "(default: given if the data have documents, else dense and sparse; with "
                "--reranker also reranked)")  # fmt: skip
            options.add(compared, "documents", "reranker")
            options.add(asked, "abstain-template")
        if name == "goodpositions":
            data.add_argument("--data", type=path, required=True, help="JSON lines with question, "
                "answers, gold (the most relevant document) and distractors (the others, best "
                "first), as for probe")  # fmt: skip
            data.add_argument("--model", metavar="MODEL", required=True, help=models.LOCAL_HELP)
            compared.add_argument("-k", "--k", type=int, help="documents per question (default: "
                "10, or all if there are fewer)")  # fmt: skip
        else:
            options.add(compared, "embedding", "cache")
            options.add(asked, *options.ENDPOINT, "name")
        options.add(data, "n")
        data.add_argument("--output", type=path, help="JSON file with every outcome (default: "
            "none)")  # fmt: skip
        options.add(asked, "max-new-tokens")


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    experiment, _ = EXPERIMENTS[arguments.experiment]
    console = Console()
    output = arguments.output
    if output is not None:
        if not output.parent.is_dir():
            raise ValueError(f"--output {output}: there is no such folder")
        check_file(output)
    found, parts = experiment(arguments, console)
    console.show(*parts)
    if output is not None:
        versions = {"posrag": __version__}
        found = {"experiment": arguments.experiment, "versions": versions, **found}
        write_whole(output, json.dumps(found, indent=1) + "\n")
        console.say(f"Every outcome is in {output}", whole=True)
    return 0

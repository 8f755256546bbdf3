"""Questions named on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shared_core.checking import check_count
from shared_core.cli import options
from shared_core.cli.console import Console
from shared_core.cli.installed import TORCH
from shared_core.sensitivity import (
    KEY_VALUE,
    ProbeQuestion,
    PromptTemplate,
    key_value_questions,
    read_questions,
    torch_questions,
)
from shared_core.wording import counted

GENERATED = 100
"""Default number of questions: the 95% interval of an accuracy is then about 0.1 to each side."""
HELP = (
    "kv: generated key-value retrieval; torch: questions on the API of the installed PyTorch; or a "
    "file of JSON lines with question, answers, gold and distractors"
)

DEFAULT_K = 10


def packages(source: str) -> Mapping[str, str]:
    """Return what the questions of `source` need: top-level module -> extra of posrag."""
    return TORCH if source == "torch" else {}


def add_questions(parser: argparse.ArgumentParser, data: str = "") -> None:
    """Add the options that `open_questions` reads but the seed; `data` says more of ``--data``."""
    add = parser.add_argument
    add("--data", default="kv", help=f"{HELP}{data} (default: kv)")
    add("--n", type=int, help="number of questions (default: 100, or all of the file)")
    add("-k", "--k", type=int, help="number of passages in the context (default: 10, or all if "
        "there are fewer)")  # fmt: skip
    add("--template", type=options.path, help=options.TEMPLATE_HELP)


@dataclass(frozen=True)
class ProbeData:
    """What to ask and how; `k` is the number of passages in a context."""

    questions: list[ProbeQuestion]
    k: int
    task: str
    template: PromptTemplate | None


def open_questions(arguments: argparse.Namespace, console: Console) -> ProbeData:
    """Return the questions of ``--data``, see `HELP`, as ``--n``, ``-k`` and ``--seed`` say.

    By default 100 generated ones or all of a file, with 10 passages or what every question has;
    if those are fewer, it is said.

    Raises
    ------
    ValueError
        If there are fewer than ``--n``, or the file does not exist or holds no questions.
    """
    source, n, k = arguments.data, arguments.n, arguments.k
    template = options.open_template(arguments.template)
    if n is not None:
        check_count(n, "--n")
    if source in ("kv", "torch"):
        k = DEFAULT_K if k is None else k
        if source == "kv":
            generated = key_value_questions(n or GENERATED, k=k, seed=arguments.seed)
            return ProbeData(generated, k, "key-value retrieval", template or KEY_VALUE)
        generated = torch_questions(n or GENERATED, k=k, seed=arguments.seed)
        return ProbeData(generated, k, "PyTorch API calls", template)
    if not Path(source).exists():
        raise ValueError(f"--data {source} is neither kv nor torch, and there is no such file")
    questions = read_questions(source)
    if n is not None and n > len(questions):
        raise ValueError(f"--n {n}: {source} holds {counted(len(questions), 'question')}")
    questions = questions[:n]
    found = ProbeData(questions, default_k(questions) if k is None else k, source, template)
    for line in default_k_lines(k, [found.k]):
        console.say(line)
    return found


def default_k(questions: Sequence[ProbeQuestion]) -> int:
    """Return 10, or the number of passages that every question has."""
    return min(DEFAULT_K, *(1 + len(each.distractors) for each in questions))


def default_k_lines(chosen: object, ks: Iterable[int]) -> Iterator[str]:
    """Say if there are fewer passages than the default; `chosen` is None where it counts."""
    if chosen is None:
        for k in ks:
            if k < DEFAULT_K:
                yield f"k={k} in place of {DEFAULT_K}: there are no more passages to a question."

"""Questions named on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared_core.checking import check_count
from shared_core.cli import options
from shared_core.sensitivity import (
    KEY_VALUE,
    ProbeQuestion,
    PromptTemplate,
    key_value_questions,
    read_questions,
)
from shared_core.sensitivity.questions import LEAST_K
from shared_core.wording import counted

GENERATED = 100
"""Default number of questions: the 95% interval of an accuracy is then about 0.1 to each side."""
HELP = (
    "kv: generated key-value retrieval; or a file of JSON lines with question, answers, gold and "
    "distractors"
)

DEFAULT_K = 10


def add_questions(parser: options.Options, data: str = "", *, lengths: bool = False) -> None:
    """Add the options that `open_questions` reads.

    `data` says more of ``--data``; with `lengths`, ``-k`` takes several numbers.
    """
    add = parser.add_argument
    add("--data", default="kv", help=f"{HELP}{data} (default: kv)")
    add("--n", type=int, help="number of questions (default: 100, or all of the file)")
    add("-k", "--k", type=options.numbers if lengths else int, help="number of passages in the "
        f"context{', or several, such as 3,5,10,20' * lengths} (default: 10, or all if there are "
        "fewer)")  # fmt: skip
    options.add(parser, "template", "seed")


@dataclass(frozen=True)
class ProbeData:
    """What to ask and how; `ks` are the numbers of passages in a context."""

    questions: list[ProbeQuestion]
    ks: tuple[int, ...]
    task: str
    template: PromptTemplate | None

    @property
    def k(self) -> int:
        """The largest number of passages."""
        return max(self.ks)


def open_questions(arguments: argparse.Namespace) -> ProbeData:
    """Return the questions of ``--data``, see `HELP`, as ``--n``, ``-k`` and ``--seed`` say.

    By default 100 generated ones or all of a file, with 10 passages or what every question has.

    Raises
    ------
    ValueError
        If there are fewer than ``--n``, or the file does not exist or holds no questions.
    """
    source, n, ks, template = arguments.data, arguments.n, arguments.k, arguments.template
    ks = (ks,) if isinstance(ks, int) else ks and tuple(sorted({*ks}))
    if n is not None:
        check_count(n, "--n")
    if source == "kv":
        ks = ks or (DEFAULT_K,)
        generated = key_value_questions(n or GENERATED, k=max(ks), seed=arguments.seed)
        return ProbeData(generated, ks, "key-value retrieval", template or KEY_VALUE)
    if not Path(source).exists():
        raise ValueError(f"--data {source} is not kv, and there is no such file")
    questions = read_questions(source)
    if n is not None and n > len(questions):
        raise ValueError(f"--n {n}: {source} holds {counted(len(questions), 'question')}")
    questions = questions[:n]
    return ProbeData(questions, ks or (default_k(questions),), source, template)


def default_k(questions: Sequence[ProbeQuestion]) -> int:
    """Return 10, or the number of passages that every question has, but at least 3."""
    return max(LEAST_K, min(DEFAULT_K, *(1 + len(each.distractors) for each in questions)))

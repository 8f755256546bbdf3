"""Questions named on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from shared_core.checking import check_count
from shared_core.cli.files import check_readable
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
K_HELP = "number of passages in the context (default: 10, or all if there are fewer)"


def packages(source: str) -> Mapping[str, str]:
    """Return what the questions of `source` need: top-level module -> extra of posrag."""
    return TORCH if source == "torch" else {}


@dataclass(frozen=True)
class ProbeData:
    """What to ask and how; `k` is the number of passages in a context."""

    questions: list[ProbeQuestion]
    k: int
    task: str
    template: PromptTemplate | None


def open_questions(source: str, *, n: int | None, k: int | None, seed: int) -> ProbeData:
    """Return the questions that `source` names; see `HELP`.

    Parameters
    ----------
    source
        ``kv``, ``torch`` or a file.
    n
        Number of questions; by default 100 generated ones, or all of a file.
    k
        Number of passages in a context; by default 10, or what every question of a file has.
    seed
        Seed of generated questions.

    Raises
    ------
    ValueError
        If `n` is below 1 or more than there are, or the file does not exist or holds no questions.
    """
    if n is not None:
        check_count(n, "--n")
    if source == "kv":
        k = DEFAULT_K if k is None else k
        questions = key_value_questions(n or GENERATED, k=k, seed=seed)
        return ProbeData(questions, k, "key-value retrieval", KEY_VALUE)
    if source == "torch":
        k = DEFAULT_K if k is None else k
        questions = torch_questions(n or GENERATED, k=k, seed=seed)
        return ProbeData(questions, k, "PyTorch API calls", None)
    if not Path(source).exists():
        raise ValueError(f"--data {source} is neither kv nor torch, and there is no such file")
    check_readable(Path(source), "--data")
    questions = read_questions(source)
    if n is not None and n > len(questions):
        raise ValueError(f"--n {n}: {source} holds {counted(len(questions), 'question')}")
    questions = questions[:n]
    if k is None:
        fewest = min((1 + len(each.distractors) for each in questions), default=DEFAULT_K)
        k = min(DEFAULT_K, fewest)
    return ProbeData(questions, k, source, None)


def default_k_lines(chosen: object, ks: Iterable[int]) -> Iterator[str]:
    """Say if there are fewer passages than the default; `chosen` is None where it counts."""
    if chosen is None:
        for k in ks:
            if k < DEFAULT_K:
                yield f"k={k} in place of {DEFAULT_K}: there are no more passages to a question."

"""The data of two papers' experiments: a file of questions, in either of two forms.

The forms are those of ``posrag compare`` (``documents``, best first) and of ``posrag probe``
(``gold``, ``distractors`` and perhaps a ``hard_distractor``).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from shared_core.checking import check_count
from shared_core.cli import options
from shared_core.cli.files import check_readable
from shared_core.cli.questions import DEFAULT_K
from shared_core.comparison import ComparisonData, read_comparison
from shared_core.json_lines import read_lines
from shared_core.sensitivity import ProbeQuestion, read_questions
from shared_core.sensitivity.questions import LEAST_K
from shared_core.wording import counted


@dataclass(frozen=True, kw_only=True)
class RankedQuestion:
    """A question, its accepted answers, and its documents, best first."""

    question: str
    answers: tuple[str, ...]
    documents: tuple[str, ...]

    @property
    def as_probed(self) -> ProbeQuestion:
        """The same as a probe asks it: the best document is gold."""
        return ProbeQuestion(
            question=self.question,
            answers=self.answers,
            gold=self.documents[0],
            distractors=self.documents[1:],
        )


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a file, and how many of its questions are asked."""
    add = parser.add_argument
    add("--data", type=options.path, required=True, help="JSON lines with question, answers and "
        "documents (best first; gold: the places of those with the answer), as for compare; or "
        "with gold and distractors, as for probe")  # fmt: skip
    add("--n", type=int, help="number of questions (default: all)")


def open_collection(path: Path, documents: Path | None, *, n: int | None) -> ComparisonData:
    """Return the first `n` questions, or all, over the passages of the file.

    Hard distractors of the probe's form are passages like the others. Questions without an id are
    called by their numbers in the file, from 1.

    Raises
    ------
    ValueError
        If the file does not exist, is malformed, or has fewer than `n` questions.
    """
    check_readable(path, "--data")
    if documents is None and _is_of_the_probe(path):
        whole = ComparisonData.from_probe(read_questions(path))
        count = _count(path, n, len(whole.questions))
        return replace(whole, questions=whole.questions[:count])
    return read_comparison(path, documents, n=n)


def ids_of(data: ComparisonData) -> tuple[str, ...]:
    """Return the ids of the questions."""
    return tuple(each.id for each in data.questions)


def open_ranked(path: Path, *, n: int | None, k: int | None) -> list[RankedQuestion]:
    """Return the first `n` questions, or all, with `k` documents each; gold is the best.

    By default `k` is 10, or what every question has.

    Raises
    ------
    ValueError
        If the file does not exist, is malformed, has fewer than `n` questions, or one of them has
        fewer than `k` documents.
    """
    check_readable(path, "--data")
    if _is_of_the_probe(path):
        asked = [
            RankedQuestion(
                question=each.question,
                answers=each.answers,
                documents=(each.gold, *each.distractors),
            )
            for each in read_questions(path)
        ]
        asked = asked[: _count(path, n, len(asked))]
    else:
        data = read_comparison(path, n=n)
        asked = [
            RankedQuestion(
                question=each.question,
                answers=each.answers,
                documents=tuple(data.by_id[id].text for id in each.ranking),
            )
            for each in data.questions
        ]
    if k is None:
        k = min(DEFAULT_K, *(len(each.documents) for each in asked))
    _check_documents(asked, path, k)
    return [replace(each, documents=each.documents[:k]) for each in asked]


def _check_documents(questions: Sequence[RankedQuestion], path: Path, k: int) -> None:
    fewest = min((len(each.documents) for each in questions), default=k)
    way_out = f"give --k {fewest} or less"
    if fewest < LEAST_K:
        way_out = f"give each question at least {LEAST_K}"
    for each in questions:
        if len(each.documents) < k:
            raise ValueError(
                f"{path}: question {each.question!r} has "
                f"{counted(len(each.documents), 'document')}, and --k {k} takes {k}; {way_out}"
            )


def _is_of_the_probe(path: Path) -> bool:
    """Look at the first line; `read_comparison` reports malformed ones."""
    try:
        first = next(read_lines(path, dict), {})
    except ValueError:
        return False
    return "distractors" in first and "documents" not in first


def _count(path: Path, n: int | None, there: int) -> int:
    if n is None:
        return there
    check_count(n, "--n")
    if n > there:
        raise ValueError(f"--n {n}: {path} holds {counted(there, 'question')}")
    return n

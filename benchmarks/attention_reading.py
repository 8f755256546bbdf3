"""Attention-guided placement and its baselines on the two readers: what each of them gains.

::

    python -m benchmarks.attention_reading
    python -m benchmarks.attention_reading --model MODEL --data questions.jsonl -k 5 --n 40

The second form compares the estimators on another local model and your questions, by answers that
contain an accepted one.

The documents of each held-out question come shuffled, and Vanilla answers over them as they come:
the shuffle that every method is compared with, on the same questions, by the paired difference
and its 95% interval. ``gold first`` is how often a method finds the gold document the most
relevant. The methods named after BM25 get its ranking of the same documents, as the paper's
ordered input has that of a retriever; those on a curve get the reader's positional curve, which
is measured on other questions.

The readers know one prompt and nothing else. A request for a ranking is foreign to them, and so
are SelfElicit's marks: what these two show here is how they fare with a model that does not
understand them. How many rankings could not be used is printed below. Both prompts are longer than
the 512 tokens that the readers claim to read, so that they are let read more.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from instruments.cases import probe_questions, shuffled_cases
from shared_core import PassageIndex
from shared_core.attention import (
    Case,
    OneRound,
    RankGPT,
    SelfElicit,
    TwoRound,
    attention_by_position,
    ranking_of,
)
from shared_core.attention.relevance import ESTIMATORS
from shared_core.attention.rounds import PlacedAnswer
from shared_core.cli.models import open_local_model
from shared_core.evaluation import GRADERS, paired_difference_interval
from shared_core.generation import HuggingFaceModel
from shared_core.sensitivity import ProbeQuestion, read_questions
from shared_core.sensitivity.curve import PositionalCurve

READERS = Path(__file__).parents[1] / "instruments"
SHUFFLE = "Vanilla, shuffled"
K = 10
CONTEXT = 1024
NEW = 48
"""Tokens of an answer: room for a ranking of ten."""
ANSWER = 24
"""The same of another model."""

Values = npt.NDArray[np.float64]
Method = OneRound | TwoRound | SelfElicit | RankGPT


@dataclass(frozen=True)
class Questions:
    """Cases, the answers that count as right, and where the gold document stands in each."""

    cases: list[Case]
    answers: list[list[str]]
    gold: list[int]
    grader: str = "exact"

    def graded(self, texts: Sequence[str]) -> Values:
        """Return whether the answer to each is right."""
        grade = GRADERS[self.grader]
        return np.array([grade(t, a) for t, a in zip(texts, self.answers, strict=True)])

    def ranked(self) -> Questions:
        """Return the same questions with their documents ranked by BM25, best first."""
        cases, gold = [], []
        for case, at in zip(self.cases, self.gold, strict=True):
            index = PassageIndex.from_texts(case.documents)
            scores = index.scores(case.question, index.passages)
            ranking = ranking_of(scores)
            cases.append(replace(case, documents=[case.documents[each] for each in ranking]))
            gold.append(ranking.index(at))
        return replace(self, cases=cases, gold=gold)


ESTIMATED: dict[str, tuple[bool, Method]] = {
    SHUFFLE: (False, OneRound()),
    **{f"two rounds, {name}": (False, TwoRound(estimator=name)) for name in ESTIMATORS},
}
"""The same placement by each estimator."""


def methods(curve: PositionalCurve) -> dict[str, tuple[bool, Method]]:
    """Return each method by name, and whether it is given BM25's ranking."""

    def on_curve(placement: str) -> OneRound:
        return OneRound(placement=placement, curve=curve)

    return {
        SHUFFLE: (False, OneRound()),
        "BM25, relevant last (Default)": (True, OneRound(placement="back_first")),
        "BM25, relevant first (its reverse)": (True, OneRound(placement="front_first")),
        "BM25, U-shaped on the curve": (True, on_curve("attention_u_shape")),
        "BM25, reversed U-shaped on the curve": (True, on_curve("attention_u_shape_reversed")),
        "BM25, Direct-U on the curve": (True, on_curve("best_slot_first")),
        "BM25, U-shape of CAUS": (True, OneRound(placement="u_shape")),
        "two rounds, U-shaped": (False, TwoRound()),
        "two rounds, by the producing tokens": (False, TwoRound(estimator="producer")),
        "two rounds, reversed": (False, TwoRound(placement="attention_u_shape_reversed")),
        "two rounds, Direct-U": (False, TwoRound(placement="best_slot_first")),
        "Attention Sorting": (
            False,
            TwoRound(estimator="attention_sorting", placement="back_first"),
        ),
        "ICR": (False, TwoRound(estimator="icr", placement="back_first")),
        "ICR, U-shaped": (False, TwoRound(estimator="icr")),
        "SelfElicit": (False, SelfElicit()),
        "RankGPT": (False, RankGPT()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="questions")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--model", help="a local model in place of the readers, with --data")
    parser.add_argument("--data", type=Path, help="questions with gold and distractors")
    parser.add_argument("-k", type=int, default=K)
    parser.add_argument("--output", type=Path, help="keeps the figures of --model, as JSON")
    options = parser.parse_args()
    if options.model:
        model = open_local_model(options.model, max_new_tokens=ANSWER)
        asked = shuffled_questions(read_questions(options.data)[: options.n], options.k)
        print(f"{model.name}, {len(asked.cases)} questions over {options.k} documents")
        rows = report(model, asked, ESTIMATED)
        if options.output:
            options.output.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
        return
    shuffled = Questions(*shuffled_cases(options.n, k=K, seed=options.seed))
    others = probe_questions(options.n, k=K, seed=options.seed + 1)
    for name in ("biased", "uniform"):
        model = HuggingFaceModel.from_pretrained(READERS / name, max_new_tokens=NEW, batch_size=32)
        model.model.config.max_position_embeddings = CONTEXT
        print(f"\n{name}, {options.n} questions over {K} documents")
        curve = attention_by_position(model, others, k=K).curve
        report_curve(curve)
        report(model, shuffled, methods(curve))


def shuffled_questions(given: Sequence[ProbeQuestion], k: int) -> Questions:
    """Return questions with their documents in a random order."""
    chance = random.Random(0)
    found = Questions([], [], [], "subspan")
    for each in given:
        documents = chance.sample(each.passages(0, k), k)
        found.cases.append(Case(question=each.question, documents=documents))
        found.answers.append([*each.answers])
        found.gold.append(documents.index(each.gold))
    return found


def report_curve(curve: PositionalCurve) -> None:
    """Print what each tenth of the region is attended to, and what its ends get over the middle."""
    tenths = np.array(curve.scores).reshape(K, -1).mean(axis=1)
    print("positional curve by tenth", " ".join(f"{value:.2f}" for value in tenths))
    for part in ("start", "end", "edges"):
        lower, upper = curve.intervals[part]
        print(f"{part} over the middle {getattr(curve, part):.2f} [{lower:.2f}, {upper:.2f}]")


def report(
    model: HuggingFaceModel, shuffled: Questions, compared: Mapping[str, tuple[bool, Method]]
) -> list[dict[str, Any]]:
    """Print one line a method, and return what they say."""
    print(f"{'method':38}{'gold first':>11}{'rounds':>8}{'right':>7}   less shuffle [95%]")
    ranked, before, rows = shuffled.ranked(), np.array([]), []
    for name, (by_bm25, method) in compared.items():
        questions = ranked if by_bm25 else shuffled
        found = method.run(model, questions.cases)
        right = questions.graded([each.answer for each in found])
        row: dict[str, Any] = {
            "method": name,
            "questions": len(right),
            "gold_first": gold_first(found, questions),
            "rounds": float(np.mean([each.rounds for each in found])),
            "right": float(right.mean()),
        }
        less = ""
        if name == SHUFFLE:
            before = right
        else:
            lower, upper = paired_difference_interval(right, before)
            row["less_shuffle"] = float(np.mean(right - before)), float(lower), float(upper)
            less = "{:+.3f} [{:+.3f}, {:+.3f}]".format(*row["less_shuffle"])
        print(
            f"{name:38}{row['gold_first']:11.3f}{row['rounds']:8.2f}{row['right']:7.3f}   {less}",
            flush=True,
        )
        rows.append(row)
    return rows


def gold_first(found: Sequence[PlacedAnswer], questions: Questions) -> float:
    """Return how often the gold document is the most relevant one."""
    pairs = zip(found, questions.gold, strict=True)
    return float(np.mean([ranking_of(each.scores)[0] == at for each, at in pairs]))


if __name__ == "__main__":
    main()

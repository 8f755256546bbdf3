"""Placements among planted hard distractors, on the two readers: does weighing the harm help?

::

    python -m benchmarks.distraction

Ten passages a question: the gold one, two hard distractors that the ranking cannot tell from it,
and seven weak ones. Every placement arranges the same rankings; differences are paired, with 95%
intervals. ``passages`` is how many come into the prompt on the average, ``gold`` how often the
gold one is among them.

Distraction-aware placement gets the score of the ranking as relevance, and the distracting effect
from one of three sources:

- *labels*: what was planted. The upper bound.
- *judged*: measured with the reader, and 0 for the relevant passage, as the measure is defined.
  This takes the knowledge of which passage is relevant.
- *blind*: measured with the reader for every passage alike. This is all there is for a question
  whose answer is not known: a relevant passage keeps a model from abstaining as a hard distractor
  does.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from instruments.planted import PlantedRanking, planted_rankings
from shared_core import PositionProfile
from shared_core.evaluation import GRADERS, paired_difference_interval
from shared_core.generation import HuggingFaceModel
from shared_core.placement import (
    MaxRelevance,
    MinDistraction,
    Sequential,
    Shuffle,
    UShape,
    distraction_placement,
)
from shared_core.probe import Probe
from shared_core.sensitivity import (
    ANSWER,
    distraction_measures,
    distractor_kind,
)
from shared_core.sensitivity.distraction import abstention_request, effect_of

READERS = Path(__file__).parents[1] / "instruments"
K = 10
HARM = (0.5, 1.0, 2.0)
SHUFFLE, MAX_RELEVANCE = "shuffle", "max_relevance"

Values: TypeAlias = npt.NDArray[np.float64]
Order: TypeAlias = tuple[int, ...]
Effects: TypeAlias = Sequence[Sequence[float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="questions, to probe and to answer")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    rankings = planted_rankings(options.n, seed=options.seed)
    others = planted_rankings(options.n, hard=1, weak=K - 1, seed=options.seed + 1)
    for name in ("biased", "uniform"):
        reader = HuggingFaceModel.from_pretrained(READERS / name, max_new_tokens=4, batch_size=32)
        print(f"\n{name}, {options.n} questions over {K} passages")
        profile = probed(reader, others)
        effects = effects_by_source(reader, rankings)
        report_rankings(rankings, effects)
        report(reader, rankings, {**plain(profile, options.n), **aware(profile, rankings, effects)})


def probed(reader: HuggingFaceModel, rankings: Sequence[PlantedRanking]) -> PositionProfile:
    """Measure and print what each slot does for the gold passage and for a hard distractor."""
    questions = [ranking.probe_question for ranking in rankings]
    accuracy = Probe(k=K, looks=1, grader="exact").run(reader, questions)
    harm = Probe(k=K, measure="distraction", template=ANSWER).run(reader, questions)
    for what, values in (("EM", accuracy.accuracy), ("DE", harm.distraction)):
        print(f"{what} by slot", " ".join(f"{value:.2f}" for value in values or ()))
    return replace(accuracy, distraction=harm.distraction, distraction_n=harm.distraction_n)


def effects_by_source(
    reader: HuggingFaceModel, rankings: Sequence[PlantedRanking]
) -> dict[str, Effects]:
    """Return the distracting effects of the passages, by where they are known from."""
    blind = distracting_effects(reader, rankings)
    return {
        "labels": [ranking.true_effects for ranking in rankings],
        "judged": [
            tuple(np.where(ranking.relevant, 0.0, row))
            for ranking, row in zip(rankings, blind, strict=True)
        ],
        "blind": blind,
    }


def distracting_effects(
    reader: HuggingFaceModel, rankings: Sequence[PlantedRanking]
) -> list[tuple[float, ...]]:
    """Return 1 - P(abstain) of each passage, the relevant ones too; each is shown alone."""
    asked = [
        abstention_request(ANSWER.render([text], ranking.question), exact=True)
        for ranking in rankings
        for text in ranking.texts
    ]
    prompts, abstentions = zip(*asked, strict=True)
    effects = map(effect_of, reader.log_probabilities(prompts, abstentions))
    return [tuple(next(effects) for _ in ranking.texts) for ranking in rankings]


def plain(profile: PositionProfile, n: int) -> dict[str, list[Order]]:
    """Return the orders that look at ranks alone; every question is shuffled in its own way."""
    placements = (Sequential(), UShape(), MaxRelevance(), MinDistraction())
    return {
        SHUFFLE: [Shuffle(seed=number)(K) for number in range(n)],
        **{placement.name: [placement(K, profile)] * n for placement in placements},
    }


def aware(
    profile: PositionProfile, rankings: Sequence[PlantedRanking], effects: Mapping[str, Effects]
) -> dict[str, list[Order]]:
    """Return the orders by relevance and harm."""
    return {
        f"{source}, lambda {harm}": [
            distraction_placement(ranking.scores, row, profile, harm=harm)
            for ranking, row in zip(rankings, effects[source], strict=True)
        ]
        for source in effects
        for harm in HARM
    }


def report_rankings(rankings: Sequence[PlantedRanking], effects: Mapping[str, Effects]) -> None:
    """Print what was planted, as the reader is distracted by it."""
    for kind in ("gold", "hard", "weak"):
        found = np.array(
            [
                effect
                for ranking, row in zip(rankings, effects["blind"], strict=True)
                for passage, effect in zip(ranking.passages, row, strict=True)
                if passage.kind == kind
            ]
        )
        hard = np.mean([distractor_kind(effect) == "hard" for effect in found])
        print(f"1 - P(abstain) of the {kind} passages {found.mean():.3f}, above 0.8 {hard:.1%}")
    relevant = [ranking.relevant for ranking in rankings]
    for k in (1, 3, K):
        measured = distraction_measures(relevant, effects["judged"], ks=(k,))
        print("  ".join(f"{name} {values.mean():.3f}" for name, values in measured.items()))


def report(
    reader: HuggingFaceModel, rankings: Sequence[PlantedRanking], orders: dict[str, list[Order]]
) -> None:
    """Print one line a placement."""
    print(f"{'placement':24}{'passages':>9}{'gold':>6}{'EM':>7}"
          f"{'less shuffle [95%]':>26}{'less max_relevance [95%]':>26}")  # fmt: skip
    exact = graded(reader, rankings, orders)
    for name, by_question in orders.items():
        passages = np.mean([len(order) for order in by_question])
        print(
            f"{name:24}{passages:9.1f}{gold_share(rankings, by_question):6.2f}"
            f"{exact[name].mean():7.3f}{difference(exact, name, SHUFFLE):>26}"
            f"{difference(exact, name, MAX_RELEVANCE):>26}"
        )


def graded(
    reader: HuggingFaceModel, rankings: Sequence[PlantedRanking], orders: dict[str, list[Order]]
) -> dict[str, Values]:
    """Return the exact match of each question; equal prompts are asked once."""
    prompts = {
        name: [
            ANSWER.render([ranking.texts[at] for at in order], ranking.question)
            for ranking, order in zip(rankings, by_question, strict=True)
        ]
        for name, by_question in orders.items()
    }
    different = [*{prompt: None for each in prompts.values() for prompt in each}]
    answers = dict(zip(different, reader.generate(different), strict=True))
    grade = GRADERS["exact"]
    return {
        name: np.array(
            [grade(answers[p], [r.answer]) for p, r in zip(asked, rankings, strict=True)]
        )
        for name, asked in prompts.items()
    }


def gold_share(rankings: Sequence[PlantedRanking], orders: Sequence[Order]) -> float:
    """Return how often the gold passage comes into the prompt."""
    pairs = zip(rankings, orders, strict=True)
    return float(np.mean([ranking.gold_rank in order for ranking, order in pairs]))


def difference(exact: Mapping[str, Values], name: str, other: str) -> str:
    """Return the mean paired difference from another placement and its interval."""
    if name == other:
        return ""
    lower, upper = paired_difference_interval(exact[name], exact[other])
    return f"{np.mean(exact[name] - exact[other]):+.3f} [{lower:+.3f}, {upper:+.3f}]"


if __name__ == "__main__":
    main()

"""Attention-guided placement on the two readers: their positional curves, and what placing gains.

::

    python -m tests.benchmarks.attention_reading

The documents of each held-out question come shuffled, so that one round without placing is the
shuffle baseline. Every method answers the same questions; differences are paired, with 95%
intervals. ``gold first`` is how often the estimator finds the gold document the most relevant.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt

from shared_core.attention import Case, PlacedAnswer, TwoRound
from shared_core.attention.reading import answer_with_attention
from shared_core.attention.rendering import render_prompt
from shared_core.evaluation import GRADERS, bootstrap_interval, paired_difference_interval
from shared_core.generation import HuggingFaceModel
from shared_core.placement.attention import PositionalCurve
from shared_core.sensitivity import ANSWER
from tests.readers.cases import shuffled_cases

READERS = Path(__file__).parents[1] / "readers"
METHODS = (
    ("answer", "attention_u_shape"),
    ("answer", "direct_u"),
    ("answer", "attention_u_shape_reversed"),
    ("attention_sorting", "relevant_last"),
    ("icr", "relevant_last"),
    ("icr", "attention_u_shape"),
)
K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="questions")
    parser.add_argument("--seed", type=int, default=5)
    options = parser.parse_args()
    cases, answers, gold = shuffled_cases(options.n, k=K, seed=options.seed)
    for name in ("biased", "uniform"):
        model = HuggingFaceModel.from_pretrained(READERS / name, max_new_tokens=4, batch_size=32)
        print(f"\n{name}")
        report_curve(model, cases)
        print(f"{'method':44}{'gold first':>11}{'EM':>7}   less shuffle [95%]")
        for estimator, placement in METHODS:
            found = TwoRound(estimator=estimator, placement=placement).run(model, cases)
            report(f"{estimator}, {placement}", found, answers, gold)


def report_curve(model: HuggingFaceModel, cases: list[Case]) -> None:
    prompts = [render_prompt(model.encoder, ANSWER, list(c.documents), c.question) for c in cases]
    readings = answer_with_attention(model, [prompt.ids for prompt in prompts])
    parts = []
    for prompt, reading in zip(prompts, readings, strict=True):
        start, end = prompt.region
        curve = PositionalCurve.from_readings(
            [reading.scores["edges", "lower"][start:end]], model=model.name, points=K
        )
        parts.append(curve.scores)
    values = np.array(parts)
    print("positional curve by tenth", " ".join(f"{v:.2f}" for v in values.mean(axis=0)))
    scale = values.max()

    def edges_over_middle(means: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return (means[:, 0] + means[:, -1]) / (means[:, K // 2 - 1] + means[:, K // 2])

    lower, upper = bootstrap_interval(values / scale, edges_over_middle)
    ratio = edges_over_middle(values.mean(axis=0)[None])[0]
    print(f"attention at the edges over the middle {ratio:.2f} [{lower:.2f}, {upper:.2f}]")


def report(name: str, found: list[PlacedAnswer], answers: list[list[str]], gold: list[int]) -> None:
    def graded(texts: list[str]) -> npt.NDArray[np.float64]:
        return np.array([GRADERS["exact"](t, a) for t, a in zip(texts, answers, strict=True)])

    before = graded([each.first_answer for each in found])
    after = graded([each.answer for each in found])
    lower, upper = paired_difference_interval(after, before)
    first = np.mean([int(np.argmax(e.scores)) == g for e, g in zip(found, gold, strict=True)])
    print(
        f"{name:44}{first:11.3f}{after.mean():7.3f}   "
        f"{np.mean(after - before):+.3f} [{lower:+.3f}, {upper:+.3f}]",
        flush=True,
    )


if __name__ == "__main__":
    main()

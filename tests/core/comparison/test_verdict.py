"""The verdict in words: every branch, from the figures alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shared_core.comparison import statistics
from shared_core.comparison.result import SettingResult, StrategyResult, Verdict
from shared_core.comparison.verdict import overall_verdict, setting_verdict
from shared_core.evaluation.significance import PairedComparison


def nothing(
    difference: float = 0.0, *, adjusted: float = 0.9, half: float = 0.05
) -> PairedComparison:
    return PairedComparison(
        difference=difference,
        interval=(difference - half, difference + half),
        p_value=adjusted / 10,
        test="Wilcoxon signed-rank",
        adjusted=adjusted,
    )


def shown(difference: float) -> PairedComparison:
    return nothing(difference, adjusted=0.001, half=0.02)


def setting(
    against: Mapping[str, Mapping[str, PairedComparison]],
    outcomes: Mapping[str, Sequence[Sequence[float]]],
    **others: Any,
) -> SettingResult:
    """Return a setting of which what a verdict rests on is known."""
    (n,) = {len(each) for each in outcomes.values()}
    strategies = (
        StrategyResult(
            name=name,
            orders=(),
            answers=(),
            by_order={"em": tuple(map(tuple, each))},
            outcomes={},
            estimates={},
            against=against[name],
        )
        for name, each in outcomes.items()
    )
    known: dict[str, Any] = {"pipeline": "dense", "k": 5, "failures": (), "passages": ()}
    known |= {"gold_known": 0, "gold_ranks": (), "questions_needed": 480, **others}
    return SettingResult(questions=tuple(range(n)), strategies=tuple(strategies), **known)


def basis(
    over_ranked: dict[str, PairedComparison],
    over_shuffle: dict[str, PairedComparison] | None = None,
    *,
    n: int = 100,
    right: tuple[float, float] = (0.0, 1.0),
) -> SettingResult:
    """Return a setting with differences from the ranked order, and from shuffling."""
    shuffled = over_ranked["shuffle"]
    lower, upper = shuffled.interval
    ranked = replace(shuffled, difference=-shuffled.difference, interval=(-upper, -lower))
    against = {"sequential": {"shuffle": ranked}, "shuffle": {"sequential": shuffled}}
    for name, comparison in over_ranked.items():
        if name != "shuffle":
            by_shuffle = (over_shuffle or {}).get(name, nothing())
            against[name] = {"sequential": comparison, "shuffle": by_shuffle}
    return setting(against, dict.fromkeys(against, [right] * n))


TESTS = 10
"""Of so many comparisons a verdict takes 9 questions."""


WEAK = nothing(0.12, adjusted=0.06, half=0.02), nothing(0.02, adjusted=0.01, half=0.03)
NEEDED = "it takes about 480 questions to show a difference of 0.03 with a chance of 80%"
KEEP = "keep the ranked order: no strategy is shown to beat it or shuffling here"
ELSEWHERE = "do not keep the ranked order: it is worse than shuffling by 0.40 [0.38, 0.42]"


@pytest.mark.parametrize(
    ("kind", "figures", "text"),
    [
        ("no_difference", basis({"shuffle": nothing(), "u": nothing()}, n=9), f"{KEEP}; {NEEDED}"),
        (
            "no_difference",
            basis({"shuffle": nothing()}, n=1000),
            f"{KEEP}; these 1,000 questions would show a difference of 0.03 with a chance of "
            "about 80% or more",
        ),
        (
            "no_difference",  # it beats the shuffle, and is not said not to
            basis({"shuffle": nothing(), "u": nothing()}, {"u": shown(0.1)}),
            f"keep the ranked order: no strategy is shown to beat it here; {NEEDED}",
        ),
        *(  # a gain takes both the corrected test and the interval
            ("no_difference", basis({"shuffle": nothing(), "u": weak}), f"{KEEP}; {NEEDED}")
            for weak in WEAK
        ),
        (
            "gain",
            basis({"shuffle": nothing(), "v": shown(0.06), "u": shown(0.12)}, {"u": shown(0.1)}),
            "use u: it gains 0.12 [0.10, 0.14] over the ranked order and 0.10 [0.08, 0.12] over "
            "shuffling",
        ),
        (
            "ranked_order_helps",
            basis({"shuffle": shown(-0.2), "u": replace(shown(-0.1), interval=(-0.2, -0.0004))}),
            "keep the ranked order: it beats shuffling by 0.20 [0.18, 0.22], and no other order is "
            "shown to beat it; u loses 0.1000 [0.0004, 0.2000]",
        ),
        ("put_best_elsewhere", basis({"shuffle": shown(0.4)}), ELSEWHERE),
        (
            "put_best_elsewhere",
            basis({"shuffle": shown(0.4), "u": nothing(), "v": shown(-0.35)}),
            f"{ELSEWHERE}; of the strategies u comes out best (+0.00 from the ranked order, which "
            "is not shown); v loses 0.35 [0.33, 0.37]",
        ),
        (
            "too_few",  # whatever is shown of the shuffle alone
            basis({"shuffle": nothing(), "u": nothing(0.9)}, {"u": shown(0.9)}, n=8),
            "too few questions to tell: 8, where a verdict takes 9; keep the ranked order; "
            f"{NEEDED}",
        ),
    ],
)
def test_what_follows_from_the_figures_of_one_setting(
    kind: str, figures: SettingResult, text: str
) -> None:
    """No sentence claims more than was found, and each says how sure it is."""
    found = setting_verdict(figures, TESTS)
    assert (found.kind, found.text) == (kind, text)
    assert found.strategy == ("u" if kind == "gain" else None)


@pytest.mark.parametrize(("n", "kind"), [(7, "too_few"), (8, "gain")])
def test_as_many_questions_as_are_called_enough_can_show_something(n: int, kind: str) -> None:
    """In one setting; fewer cannot, not even over shuffles that agree with each other."""
    wrong, right = [[0.0]] * n, [[1.0]] * n
    outcomes = {"sequential": wrong, "shuffle": [[0.0] * 3] * n, "inverse": right, "u": right}
    (figures,) = judged([outcomes])
    assert figures.verdict.kind == kind
    if n == 7:
        assert "too few questions to tell: 7, where a verdict takes 8;" in figures.verdict.text


def judged(settings: Sequence[Mapping[str, list[list[float]]]]) -> list[SettingResult]:
    """Return what is judged of outcomes, with few resamples."""
    against = statistics.compared(settings, seed=0, resamples=200)
    found = [setting(by, each) for by, each in zip(against, settings, strict=True)]
    tests = statistics.number_of_tests(settings)
    return [replace(each, verdict=setting_verdict(each, tests)) for each in found]


def overall(*parts: SettingResult) -> Verdict:
    numbered = (replace(part, k=k) for k, part in enumerate(parts, start=5))
    return overall_verdict(
        [replace(each, verdict=setting_verdict(each, TESTS)) for each in numbered]
    )


GAINS = basis({"shuffle": nothing(), "u": shown(0.1), "v": nothing()})
BAD = basis({"shuffle": shown(0.9), "u": shown(0.6), "v": shown(0.3)})
NO = basis({"shuffle": nothing(), "u": nothing(), "v": nothing()})
LOSS = basis({"shuffle": nothing(), "u": nothing(), "v": shown(-0.3)})
LOST = basis({"shuffle": nothing(), "u": shown(-0.3), "v": shown(-0.2)})
FEW = basis({"shuffle": nothing(), "u": nothing(), "v": nothing()}, n=8)
WRONG, RIGHT = (basis({"shuffle": nothing(), "u": nothing()}, right=(x, x)) for x in (0.0, 1.0))
ONE, TWO = "otherwise in 1 other setting, see there", "otherwise in 2 other settings, see there"


@pytest.mark.parametrize(
    ("first", "others", "text"),
    [
        (GAINS, (BAD,), ONE),
        (  # what is advised loses in two others
            GAINS,
            (LOST, NO, LOST),
            f"but u loses in dense, k=6 and dense, k=8; {TWO.replace('2', '3')}",
        ),
        (LOSS, (FEW, RIGHT), TWO),
        (WRONG, (WRONG,), "likewise, by other figures, in 1 other setting"),
    ],
)
def test_of_other_settings_it_is_told_whether_they_agree(
    first: SettingResult, others: tuple[SettingResult, ...], text: str
) -> None:
    """And what speaks against the advice is named."""
    alone, found = setting_verdict(first, TESTS), overall(first, *others)
    expected = Verdict(
        kind=alone.kind, text=f"{alone.text} (dense, k=5); {text}", strategy=alone.strategy
    )
    assert found == expected


def test_a_finding_comes_before_settings_that_show_nothing() -> None:
    """And two settings in which one strategy gains are both named."""
    found = overall(WRONG, GAINS, NO, GAINS)
    assert (found.kind, found.strategy) == ("gain", "u")
    use = "use u: it gains 0.10 [0.08, 0.12] over the ranked order, though it is not shown to beat"
    assert found.text == f"{use} shuffling (dense, k=6); {use} shuffling (dense, k=8); {TWO}"


def simulated(seed: int, n: int, *, gain: float = 0.0) -> str:
    """Return the kind of the verdict on two settings; half of the answers depend on the order."""
    rng = np.random.default_rng(seed)
    settings = []
    for _ in range(2):
        easy, moved = rng.random((n, 1)) < 0.6, rng.random((n, 1)) < 0.5
        outcomes = {}
        for name in ("sequential", "shuffle", "inverse", "u_shape"):
            right = 0.5 + (2 * gain if name == "u_shape" else 0)
            tossed = rng.random((n, 3 if name == "shuffle" else 1)) < right
            outcomes[name] = np.where(moved, tossed, easy).astype(float).tolist()
        settings.append(outcomes)
    return overall_verdict(judged(settings)).kind


def test_pure_noise_is_called_a_difference_in_at_most_one_run_of_twenty() -> None:
    """Over 100 runs: any verdict but "no difference". A gain that is there is found."""
    kinds = [simulated(seed, 100) for seed in range(100)]
    assert kinds.count("no_difference") >= 95
    assert [simulated(seed, 200, gain=0.2) for seed in range(20)].count("gain") >= 18

"""The verdict in words: every branch, from the figures alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from shared_core.comparison import statistics
from shared_core.comparison.result import Verdict
from shared_core.comparison.statistics import VerdictBasis
from shared_core.comparison.verdict import overall_verdict, setting_verdict
from shared_core.evaluation import PairedComparison


def nothing(
    difference: float = 0.0, *, adjusted: float = 0.9, half: float = 0.05
) -> PairedComparison:
    return PairedComparison(
        difference=difference,
        interval=(difference - half, difference + half),
        p_value=adjusted / 10,
        test="Wilcoxon signed-rank",
        adjusted=adjusted,
        detectable=0.05,
    )


def shown(difference: float) -> PairedComparison:
    return nothing(difference, adjusted=0.001, half=0.02)


def judged_with(resamples: int) -> statistics.Testing:
    """Return the usual way to judge, with fewer resamples."""
    return statistics.Testing(confidence=0.95, power=0.8, effect=0.03, seed=0, resamples=resamples)


def basis(
    over_ranked: dict[str, PairedComparison],
    over_shuffle: dict[str, PairedComparison] | None = None,
    *,
    n: int = 100,
) -> VerdictBasis:
    """Return the basis for differences from the ranked order, and from shuffling."""
    shuffled = over_ranked["shuffle"]
    lower, upper = shuffled.interval
    ranked = replace(shuffled, difference=-shuffled.difference, interval=(-upper, -lower))
    against = {"sequential": {"shuffle": ranked}, "shuffle": {"sequential": shuffled}}
    for name, comparison in over_ranked.items():
        if name != "shuffle":
            by_shuffle = (over_shuffle or {}).get(name, nothing())
            against[name] = {"sequential": comparison, "shuffle": by_shuffle}
    testing = judged_with(1)
    return VerdictBasis(testing=testing, against=against, n=n, fewest=9, needed=480)


WEAK = nothing(0.12, adjusted=0.06, half=0.02), nothing(0.02, adjusted=0.01, half=0.03)
SMALL = replace(shown(0.00375), interval=(0.0019, 0.0056))
NEEDED = "it takes about 480 questions to show a difference of 0.03 with a chance of 80%"
KEEP = "keep the ranked order: no strategy is shown to beat it or shuffling here"
ELSEWHERE = "do not keep the ranked order: it is worse than shuffling by 0.40 [0.38, 0.42]"
NONE = "no strategy comes out better than the ranked order"
TIED = "of the strategies u and v come out best (+0.05 from the ranked order"


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
            "gain",  # 15 of 4,000 questions are not rounded to nothing
            basis({"shuffle": nothing(), "u": SMALL}, {"u": SMALL}),
            "use u: it gains 0.004 [0.002, 0.006] over the ranked order and 0.004 [0.002, 0.006] "
            "over shuffling",
        ),
        (
            "ranked_order_helps",
            basis({"shuffle": shown(-0.2), "u": replace(shown(-0.1), interval=(-0.2, -0.0004))}),
            "keep the ranked order: it beats shuffling by 0.20 [0.18, 0.22], and no other order is "
            "shown to beat it; u loses 0.1000 [0.0004, 0.2000]",
        ),
        ("put_best_elsewhere", basis({"shuffle": shown(0.4)}), ELSEWHERE),
        (
            "put_best_elsewhere",  # the strategy beats the ranked order too, and chance by nothing
            basis({"shuffle": shown(0.4), "u": shown(0.4), "v": nothing()}),
            f"{ELSEWHERE}; of the strategies u comes out best (+0.40 from the ranked order)",
        ),
        (
            "put_best_elsewhere",
            basis({"shuffle": shown(0.4), "u": nothing(), "v": shown(-0.35)}),
            f"{ELSEWHERE}; {NONE}; v loses 0.35 [0.33, 0.37]",
        ),
        (
            "put_best_elsewhere",
            basis({"shuffle": shown(0.4), "u": shown(0.05), "v": nothing(0.05), "w": shown(-0.1)}),
            f"{ELSEWHERE}; {TIED}, though that is not shown of v); w loses 0.10 [0.08, 0.12]",
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
    kind: str, figures: VerdictBasis, text: str
) -> None:
    """No sentence claims more than was found, and each says how sure it is."""
    found = setting_verdict(figures)
    assert (found.kind, found.text) == (kind, text)
    assert found.strategy == ("u" if kind == "gain" else None)


@pytest.mark.parametrize(("n", "kind"), [(7, "too_few"), (8, "gain")])
def test_as_many_questions_as_are_called_enough_can_show_something(n: int, kind: str) -> None:
    """In one setting; fewer cannot, not even over shuffles that agree with each other."""
    wrong, right = [[0.0]] * n, [[1.0]] * n
    outcomes = {"sequential": wrong, "shuffle": [[0.0] * 3] * n, "inverse": right, "u": right}
    (figures,), _ = judged_with(500).bases([outcomes])
    assert figures.fewest == 8
    assert setting_verdict(figures).kind == kind


def overall(*parts: VerdictBasis) -> Verdict:
    return overall_verdict(
        {f"dense, k={k}": (setting_verdict(part), part) for k, part in enumerate(parts, start=5)}
    )


GAINS = basis({"shuffle": nothing(), "u": shown(0.1), "v": nothing()})
BAD = basis({"shuffle": shown(0.9), "u": shown(0.6), "v": shown(0.3)})
HELPS = basis({"shuffle": shown(-0.2), "u": nothing(), "v": nothing()})
NO = basis({"shuffle": nothing(), "u": nothing(), "v": nothing()})
LOSS = basis({"shuffle": nothing(), "u": nothing(), "v": shown(-0.3)})
LOST = basis({"shuffle": nothing(), "u": shown(-0.3), "v": shown(-0.2)})
FEW, WRONG, RIGHT = replace(NO, n=8), replace(NO, alike=0.0), replace(NO, alike=1.0)
RANKED = "the ranked order beats shuffling by 0.20 [0.18, 0.22] (dense, k=6)"
ONLY_LOSSES = "only losses against the ranked order are shown in 1 other setting"
NO_DIFFERENCE = "no difference from the ranked order is shown in"
TOO_FEW = "there are too few questions to tell in"


@pytest.mark.parametrize(
    ("first", "others", "text"),
    [
        (
            GAINS,  # it gains there too, and shuffling more
            (BAD,),
            "the ranked order is worse than shuffling by 0.90 [0.88, 0.92] and than u by 0.60 "
            "[0.58, 0.62] (dense, k=6)",
        ),
        (
            GAINS,  # what is advised loses in two others, which are not counted once more
            (LOST, NO, LOST),
            "but u loses 0.30 [0.28, 0.32] (dense, k=6) and 0.30 [0.28, 0.32] (dense, k=8); "
            f"{NO_DIFFERENCE} 1 other setting",
        ),
        (BAD, (HELPS,), f"but {RANKED}"),
        *((first, (LOSS,), ONLY_LOSSES) for first in (GAINS, BAD, HELPS)),
        (HELPS, (LOSS, NO, NO), f"{ONLY_LOSSES}; {NO_DIFFERENCE} 2 other settings"),
        (
            LOSS,
            (FEW, RIGHT, WRONG, FEW),
            f"{TOO_FEW} 2 other settings; every answer is right in 1 other setting; no answer is "
            "right in 1 other setting",
        ),
        (WRONG, (WRONG,), "likewise in 1 other setting"),
        (BAD, (BAD,), "the ranked order is worse than shuffling in 1 other setting as well"),
        (HELPS, (HELPS,), "keep it in 1 other setting as well"),
    ],
)
def test_what_other_settings_show_is_told_after_the_first(
    first: VerdictBasis, others: tuple[VerdictBasis, ...], text: str
) -> None:
    """What speaks against the advice is named, and what tells nothing is counted."""
    alone, found = setting_verdict(first), overall(first, *others)
    expected = Verdict(
        kind=alone.kind, text=f"{alone.text} (dense, k=5); {text}", strategy=alone.strategy
    )
    assert found == expected


def test_a_finding_comes_before_settings_that_show_nothing() -> None:
    """And two settings in which one strategy gains are both named."""
    found = overall(WRONG, GAINS, NO, GAINS)
    assert (found.kind, found.strategy) == ("gain", "u")
    use = "use u: it gains 0.10 [0.08, 0.12] over the ranked order, though it is not shown to beat"
    assert found.text == (
        f"{use} shuffling (dense, k=6); {use} shuffling (dense, k=8); no answer is right in 1 "
        f"other setting; {NO_DIFFERENCE} 1 other setting"
    )


def test_several_settings_without_a_gain_are_one_sentence_beside_others() -> None:
    """With what is lost in each of them; those with too few questions are not among them."""
    start = "keep the ranked order: no strategy is shown to beat it or shuffling in"
    lost = "v loses 0.30 [0.28, 0.32] (dense, k=6)"
    few = f"{TOO_FEW} 1 other setting"
    assert overall(NO, LOSS, FEW).text == f"{start} 2 settings; {NEEDED}; {lost}; {few}"
    assert overall(NO, LOSS).text == f"{start} any of the 2 settings; {NEEDED}; {lost}"


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
    return overall(*judged_with(200).bases(settings)[0]).kind


def test_pure_noise_is_called_a_difference_in_at_most_one_run_of_twenty() -> None:
    """Over 100 runs: any verdict but "no difference". A gain that is there is found."""
    kinds = [simulated(seed, 100) for seed in range(100)]
    assert kinds.count("no_difference") >= 95
    assert [simulated(seed, 200, gain=0.2) for seed in range(20)].count("gain") >= 18

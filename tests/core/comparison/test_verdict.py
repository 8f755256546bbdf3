"""The verdict in words: every branch, from the figures alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("scipy")

from scipy import stats

from shared_core.comparison.result import Verdict
from shared_core.comparison.statistics import VerdictBasis
from shared_core.comparison.verdict import overall_verdict, setting_verdict
from shared_core.evaluation import PairedComparison
from tests.core.comparison.simulated import Truth, alarmed, covered, shares
from tests.core.comparison.simulated import testing_with as judged_with


def shown(difference: float, *, p: float = 0.001) -> PairedComparison:
    return PairedComparison(
        difference=difference,
        interval=(difference - 0.02, difference + 0.02),
        p_value=p / 10,
        test="Wilcoxon signed-rank",
        adjusted=p,
        detectable=0.05,
    )


def nothing(difference: float = 0.0) -> PairedComparison:
    return PairedComparison(
        difference=difference,
        interval=(difference - 0.05, difference + 0.05),
        p_value=0.2,
        test="Wilcoxon signed-rank",
        adjusted=0.9,
        detectable=0.05,
    )


def basis(
    over_ranked: dict[str, PairedComparison],
    over_shuffle: dict[str, PairedComparison] | None = None,
    *,
    n: int = 100,
    needed: int = 480,
) -> VerdictBasis:
    """Return the basis for differences from the ranked order, and from shuffling."""
    shuffled = over_ranked["shuffle"]
    ranked = PairedComparison(
        difference=-shuffled.difference,
        interval=(-shuffled.interval[1], -shuffled.interval[0]),
        p_value=shuffled.p_value,
        test=shuffled.test,
        adjusted=shuffled.adjusted,
        detectable=shuffled.detectable,
    )
    against = {"sequential": {"shuffle": ranked}, "shuffle": {"sequential": shuffled}}
    for name, comparison in over_ranked.items():
        if name != "shuffle":
            by_shuffle = (over_shuffle or {}).get(name, nothing())
            against[name] = {"sequential": comparison, "shuffle": by_shuffle}
    testing = judged_with(0, resamples=1)
    return VerdictBasis(testing=testing, against=against, n=n, fewest=9, needed=needed)


def test_nothing_shown_keeps_the_ranked_order_and_says_what_would_show_it() -> None:
    """The seed's own finding, for one's own data."""
    found = setting_verdict(basis({"shuffle": nothing(), "u_shape": nothing(0.02)}))
    assert found == Verdict(
        kind="no_difference",
        text="keep the ranked order: no strategy is shown to beat it or shuffling here; "
        "it takes about 480 questions to show a difference of 0.03 with a chance of 80%",
    )


def test_enough_questions_are_said_to_be_enough() -> None:
    """Then the absence of a difference is itself a result."""
    found = setting_verdict(basis({"shuffle": nothing()}, n=1000))
    assert found.text.endswith(
        "these 1,000 questions would show a difference of 0.03 with a chance of about 80% or more"
    )


def test_a_strategy_that_beats_the_shuffle_alone_is_not_said_to_lose_to_it() -> None:
    """The sentence must not claim more than was found."""
    found = setting_verdict(
        basis({"shuffle": nothing(), "u_shape": nothing()}, {"u_shape": shown(0.1)})
    )
    assert found.kind == "no_difference"
    assert "no strategy is shown to beat it here" in found.text


def test_the_best_of_several_gains_is_named_with_both_baselines() -> None:
    """With its intervals."""
    found = setting_verdict(
        basis(
            {"shuffle": nothing(), "inverse": shown(0.06), "u_shape": shown(0.12)},
            {"u_shape": shown(0.1)},
        )
    )
    assert found == Verdict(
        kind="gain",
        text="use u_shape: it gains 0.12 [0.10, 0.14] over the ranked order and "
        "0.10 [0.08, 0.12] over shuffling",
        strategy="u_shape",
    )


def test_a_gain_that_chance_may_have_as_well_says_so() -> None:
    """Beating a bad ranked order is easy."""
    found = setting_verdict(basis({"shuffle": nothing(), "u_shape": shown(0.12)}))
    assert found.kind == "gain"
    assert found.text.endswith("over the ranked order, though it is not shown to beat shuffling")


@pytest.mark.parametrize(
    ("best", "sure"), [(nothing(0.03), ", though that is not shown"), (shown(0.05), "")]
)
def test_a_shuffle_that_beats_the_ranked_order_by_most_is_the_news(
    best: PairedComparison, sure: str
) -> None:
    """Whether or not a strategy beats the ranked order too: what is bad is the ranked order."""
    found = setting_verdict(basis({"shuffle": shown(0.08), "inverse": best, "u": nothing()}))
    assert found.kind == "put_best_elsewhere"
    assert found.strategy is None
    assert found.text == (
        "do not keep the ranked order: it is worse than shuffling by 0.08 [0.06, 0.10]; of the "
        f"strategies inverse comes out best ({best.difference:+.2f} from the ranked order{sure})"
    )


def elsewhere(**others: PairedComparison) -> str:
    """Return what is said of the strategies where shuffling beats the ranked order."""
    found = setting_verdict(basis({"shuffle": shown(0.4), **others}))
    assert found.kind == "put_best_elsewhere"
    first, _, rest = found.text.partition("; ")
    assert first == "do not keep the ranked order: it is worse than shuffling by 0.40 [0.38, 0.42]"
    return rest


def test_where_no_strategy_does_better_than_a_bad_ranked_order_none_is_called_best() -> None:
    """Neither one that ties with it, nor one that is shown to lose."""
    none = "no strategy comes out better than the ranked order"
    assert elsewhere(inverse=nothing(), u=nothing(-0.02)) == none
    assert elsewhere(inverse=shown(-0.35)) == f"{none}; inverse loses 0.35 [0.33, 0.37]"


def test_all_that_tie_come_out_best_and_what_loses_beside_them_is_named() -> None:
    """And of which of them it is not shown, if not of all."""
    tied = "of the strategies inverse and u come out best (+0.05 from the ranked order"
    assert elsewhere(inverse=shown(0.05), u=shown(0.05)) == f"{tied})"
    assert elsewhere(inverse=nothing(0.05), u=nothing(0.05)) == f"{tied}, though that is not shown)"
    assert elsewhere(inverse=shown(0.05), u=nothing(0.05), v=shown(-0.1)) == (
        f"{tied}, though that is not shown of u); v loses 0.10 [0.08, 0.12]"
    )


def test_what_is_shown_is_not_rounded_to_nothing() -> None:
    """15 of 4,000 questions; and a bound close to 0."""
    small = replace(shown(0.00375), interval=(0.0019, 0.0056))
    found = setting_verdict(basis({"shuffle": nothing(), "u": small}, {"u": small}))
    assert found.text == (
        "use u: it gains 0.004 [0.002, 0.006] over the ranked order and 0.004 [0.002, 0.006] over "
        "shuffling"
    )
    lost = replace(shown(-0.012), interval=(-0.02, -0.0004))
    found = setting_verdict(basis({"shuffle": nothing(), "u": lost}))
    assert found.text.endswith("; u loses 0.0120 [0.0004, 0.0200]")


def test_a_ranked_order_that_beats_the_shuffle_is_worth_keeping() -> None:
    """And the strategies that lose against it are named."""
    found = setting_verdict(basis({"shuffle": shown(-0.2), "inverse": shown(-0.1)}))
    assert found.kind == "ranked_order_helps"
    assert found.text == (
        "keep the ranked order: it beats shuffling by 0.20 [0.18, 0.22], and no other order is "
        "shown to beat it; "
        "inverse loses 0.10 [0.08, 0.12]"
    )


def test_too_few_questions_bear_no_verdict_of_gain() -> None:
    """Whatever the differences look like, and whatever is shown of the shuffle alone."""
    for over_shuffle in (nothing(), shown(0.9)):
        figures = basis({"shuffle": nothing(), "u_shape": nothing(0.9)}, {"u_shape": over_shuffle})
        found = setting_verdict(replace(figures, n=8))
        assert found.kind == "too_few"
    assert "too few questions to tell: 8, where a verdict takes 9; keep" in found.text
    assert "it takes about 480 questions" in found.text


@pytest.mark.parametrize(("n", "kind"), [(6, "too_few"), (7, "too_few"), (8, "gain")])
def test_as_many_questions_as_are_called_enough_can_show_something(n: int, kind: str) -> None:
    """In one setting; fewer cannot, not even over shuffles that agree with each other."""
    testing = judged_with(0, resamples=500)
    wrong, right = [[0.0]] * n, [[1.0]] * n
    outcomes = {"sequential": wrong, "shuffle": [[0.0] * 3] * n, "inverse": right, "u": right}
    (figures,), _ = testing.bases([outcomes])
    assert figures.fewest == 8
    assert setting_verdict(figures).kind == kind


@pytest.mark.parametrize("n", [4, 100])
def test_nothing_is_told_of_orders_where_every_outcome_is_the_same(n: int) -> None:
    """A wrong grader must not look like a finding, nor more of the same questions like a way."""
    found = [
        setting_verdict(replace(basis({"shuffle": nothing()}, n=n), alike=alike))
        for alike in (0.0, 1.0)
    ]
    assert [each.kind for each in found] == ["all_wrong", "all_right"]
    wrong, right = (each.text for each in found)
    assert "no answer is right in any order" in wrong
    assert "try other --graders, a higher --max-new-tokens, another --template or --model" in wrong
    assert "every answer is right in every order" in right
    for text in (wrong, right):
        assert "keep" not in text
        assert "480" not in text


@pytest.mark.parametrize(
    "weak",
    [
        shown(0.12, p=0.06),
        PairedComparison(
            difference=0.02,
            interval=(-0.01, 0.05),
            p_value=0.0,
            test="Wilcoxon signed-rank",
            adjusted=0.01,
            detectable=0.05,
        ),
    ],
)
def test_a_gain_takes_both_the_corrected_test_and_the_interval(weak: PairedComparison) -> None:
    """Either alone is not enough."""
    assert setting_verdict(basis({"shuffle": nothing(), "u": weak})).kind == "no_difference"


def overall(*parts: VerdictBasis) -> Verdict:
    return overall_verdict(
        {f"dense, k={k}": (setting_verdict(part), part) for k, part in enumerate(parts, start=5)}
    )


def test_settings_that_are_all_wrong_are_said_once_and_behind_a_finding() -> None:
    """A pipeline may find nothing where another does."""
    wrong = replace(basis({"shuffle": nothing()}), alike=0.0)
    right = replace(wrong, alike=1.0)
    found = overall(wrong, wrong)
    assert found.kind == "all_wrong"
    assert found.text.endswith("(dense, k=5); likewise in 1 other setting")
    assert overall(wrong, right).text.endswith(
        "(dense, k=5); every answer is right in 1 other setting"
    )
    assert overall(wrong, basis({"shuffle": nothing()})).kind == "no_difference"


def test_a_gain_in_one_setting_is_told_with_its_place() -> None:
    """And the others are counted."""
    found = overall(
        basis({"shuffle": nothing()}),
        basis({"shuffle": nothing(), "u_shape": shown(0.1)}),
        basis({"shuffle": nothing()}),
    )
    assert (found.kind, found.strategy) == ("gain", "u_shape")
    assert (
        "(dense, k=6); no difference from the ranked order is shown in 2 other settings"
        in found.text
    )


def test_what_a_gain_in_one_setting_costs_in_others_is_told() -> None:
    """As far as it is shown; once, and of the strategy that is to be used."""
    gain = basis({"shuffle": nothing(), "inverse": shown(0.3), "u": nothing()})
    loss = basis({"shuffle": nothing(), "inverse": shown(-0.4), "u": shown(-0.2)})
    found = overall(gain, loss, gain, basis({"shuffle": nothing(), "inverse": nothing(-0.3)}), loss)
    assert (found.kind, found.strategy) == ("gain", "inverse")
    use = "use inverse: it gains 0.30 [0.28, 0.32] over the ranked order, though it is not shown to"
    assert found.text == (
        f"{use} beat shuffling (dense, k=5); {use} beat shuffling (dense, k=7); but inverse loses "
        "0.40 [0.38, 0.42] (dense, k=6) and 0.40 [0.38, 0.42] (dense, k=9); no difference from the "
        "ranked order is shown in 1 other setting"
    )


def after_the_first(*parts: VerdictBasis) -> str:
    """Return what the verdict on all settings says beyond that on the first one."""
    text = overall(*parts).text
    head = f"{setting_verdict(parts[0]).text} (dense, k=5); "
    assert text.startswith(head)
    return text.removeprefix(head)


GAIN = basis({"shuffle": nothing(), "u": shown(0.1), "v": nothing()})
ELSEWHERE = basis({"shuffle": shown(0.9), "u": shown(0.6), "v": shown(0.3)})
HELPS = basis({"shuffle": shown(-0.2), "u": nothing(), "v": nothing()})
NONE = basis({"shuffle": nothing(), "u": nothing(), "v": nothing()})
LOSS = basis({"shuffle": nothing(), "u": nothing(), "v": shown(-0.3)})
FEW = replace(NONE, n=8)


def test_a_gain_is_not_denied_where_shuffling_gains_more() -> None:
    """The same strategy gains there too, and more than where it is advised."""
    assert after_the_first(GAIN, ELSEWHERE) == (
        "the ranked order is worse than shuffling by 0.90 [0.88, 0.92] and than u by 0.60 "
        "[0.58, 0.62] (dense, k=6)"
    )
    lost = basis({"shuffle": shown(0.9), "u": shown(-0.6)})
    assert after_the_first(GAIN, lost) == (
        "but u loses 0.60 [0.58, 0.62] (dense, k=6); the ranked order is worse than shuffling by "
        "0.90 [0.88, 0.92] (dense, k=6)"
    )


def test_a_ranked_order_that_beats_the_shuffle_elsewhere_is_named() -> None:
    """Beside a gain it is no objection."""
    ranked = "the ranked order beats shuffling by 0.20 [0.18, 0.22] (dense, k=6)"
    assert after_the_first(GAIN, HELPS) == ranked
    assert after_the_first(ELSEWHERE, HELPS) == f"but {ranked}"


@pytest.mark.parametrize("first", [GAIN, ELSEWHERE, HELPS])
def test_settings_that_show_losses_alone_are_not_said_to_show_nothing(first: VerdictBasis) -> None:
    """Unless they are named already, since the loss is of what is advised."""
    losses = "only losses against the ranked order are shown in 1 other setting"
    assert after_the_first(first, LOSS) == losses
    assert after_the_first(first, LOSS, NONE) == (
        f"{losses}; no difference from the ranked order is shown in 1 other setting"
    )


@pytest.mark.parametrize("first", [GAIN, ELSEWHERE, HELPS, NONE, LOSS])
def test_settings_that_tell_nothing_are_not_counted_as_showing_the_contrary(
    first: VerdictBasis,
) -> None:
    """A headline that says "no strategy is shown to beat it" must not be negated once more."""
    wrong, right = replace(NONE, alike=0.0), replace(NONE, alike=1.0)
    few = "there are too few questions to tell in"
    assert after_the_first(first, FEW) == f"{few} 1 other setting"
    assert after_the_first(first, FEW, right, wrong, FEW) == (
        f"{few} 2 other settings; every answer is right in 1 other setting; no answer is right in "
        "1 other setting"
    )


def test_several_settings_without_a_gain_are_one_sentence_beside_others() -> None:
    """With what is lost in each of them; those with too few questions are not among them."""
    assert overall(NONE, LOSS, FEW).text == (
        "keep the ranked order: no strategy is shown to beat it or shuffling in 2 settings; it "
        "takes about 480 questions to show a difference of 0.03 with a chance of 80%; v loses 0.30 "
        "[0.28, 0.32] (dense, k=6); there are too few questions to tell in 1 other setting"
    )


def test_a_ranked_order_that_is_bad_in_several_settings_is_not_said_to_be_bad_in_one_way() -> None:
    """Another strategy may come out best in the others."""
    assert after_the_first(ELSEWHERE, basis({"shuffle": shown(0.4)})) == (
        "the ranked order is worse than shuffling in 1 other setting as well"
    )


def test_pure_noise_is_called_a_difference_in_at_most_one_run_of_twenty() -> None:
    """Over 200 runs of two settings and four strategies each: any verdict but "no difference"."""
    found = shares(200, 100, Truth())
    assert {*found} >= {"no_difference"}
    assert 1 - found["no_difference"] <= 0.05


@pytest.mark.parametrize(("shuffles", "n", "runs"), [(3, 600, 150), (10, 300, 40)])
@pytest.mark.parametrize("right", [0.97])
def test_orders_that_are_mostly_right_are_told_from_the_shuffle_no_more_often_than_at_a_half(
    right: float, shuffles: int, n: int, runs: int
) -> None:
    """One order lies askew about the mean of several; no p-value may take that for a difference."""
    truth = Truth(same=0.0, right=right, shuffles=shuffles)
    alarms = sum(alarmed(seed, n, truth) for seed in range(runs))
    assert alarms <= stats.binom.ppf(0.99, runs, 0.05)


def test_a_large_gain_is_found() -> None:
    """The same simulation with a truth in it, or the tests above could not fail."""
    assert shares(20, 200, Truth(gains={"u_shape": 0.2}))["gain"] >= 0.9


def test_intervals_cover_a_planted_gain_as_often_as_they_say() -> None:
    """95 of 100; fewer than 88 would come about once in five hundred times."""
    assert sum(covered(seed, 150, 0.15) for seed in range(100)) >= 88

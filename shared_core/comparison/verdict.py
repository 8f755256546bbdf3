"""What the figures mean for the user, in words: the verdict on one setting, and on all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from shared_core.comparison.result import (
    SEQUENTIAL,
    SHUFFLE,
    Flips,
    SettingResult,
    StepResult,
    Verdict,
    VerdictKind,
)
from shared_core.evaluation.power import EFFECT, POWER, fewest_questions
from shared_core.evaluation.significance import CONFIDENCE, PairedComparison
from shared_core.wording import counted

_ALL_WRONG = Verdict(
    kind="all_wrong",
    text="no answer is right in any order, so the orders cannot be compared; look at the answers, "
    "or try other --graders (logprob, of a local model), a higher --max-new-tokens, another "
    "--template or --model",
)
_ALL_RIGHT = Verdict(
    kind="all_right",
    text="every answer is right in every order, so the orders cannot be compared; ask harder "
    "questions, or raise --k",
)

LITTLE = 0.05
"""Share of the answers up to which an order that changes them is said not to matter."""


def flip_text(flips: Flips) -> str:
    """Say how many answers change with the order, and whether that shows that it matters."""
    with_it = f"{flips.changed.mean:.0%} of its answers change with it"
    if flips.again is None:
        return f"the order: {with_it}; how many change without it was not asked (again=, --again)"
    shares = f"{with_it}, {flips.again.mean:.0%} without"
    if flips.interval is None:
        return f"the order: {shares}"
    low, high = flips.interval
    matters = (
        "matters" if low > 0 else "does not matter" if high <= LITTLE else "is not shown to matter"
    )
    return f"the order {matters} to this model: {shares} (difference [{low:.0%}, {high:.0%}])"


def flip_verdict(flips: Flips | None) -> Verdict:
    """Return what follows for questions without accepted answers."""
    if flips is None:
        return Verdict(kind="too_few", text="no question was answered in two orders")
    shown = flips.interval is not None and flips.interval[0] > 0
    return Verdict(kind="order_matters" if shown else "order_not_shown", text=flip_text(flips))


def setting_verdict(setting: SettingResult, tests: int) -> Verdict:
    """Return what follows for one setting.

    A difference counts as shown if its corrected p-value is at most 0.05 and its interval lies on
    one side of 0. A strategy gains if it is shown to beat the ranked order, and by more than
    shuffling does; otherwise it is the ranked order that is bad. Outcomes that are all alike
    reflect the set-up and not the order, however many there are. Questions are too few only where
    no difference from the ranked order is shown.

    Parameters
    ----------
    setting
        What came of it.
    tests
        Number of comparisons that its p-values are corrected for.
    """
    outcomes = {
        outcome
        for strategy in setting.strategies
        for orders in next(iter(strategy.by_order.values()))
        for outcome in orders
    }
    if outcomes in ({0.0}, {1.0}):
        return _ALL_RIGHT if 1.0 in outcomes else _ALL_WRONG
    gains, losses = setting.shown("better"), setting.shown("worse")
    # Of Bonferroni's level, as Holm's is until another test rejects.
    n, fewest = len(setting.questions), fewest_questions((1 - CONFIDENCE) / tests)
    if not setting.over_ranked or (n < fewest and not (gains or losses)):
        text = f"too few questions to tell: {n}, where a verdict takes {fewest}; keep the ranked "
        return Verdict(kind="too_few", text=f"{text}order{_needed(setting)}")
    # Of equal gains the shuffle's counts.
    best = max(gains, key=lambda name: (gains[name].difference, name == SHUFFLE), default="")
    against = {strategy.name: strategy.against for strategy in setting.strategies}
    if best and best != SHUFFLE:
        text = f"use {best}: it gains {_span(gains[best])} over the ranked order"
        over_shuffle = against[best][SHUFFLE]
        beats_it = ", though it is not shown to beat shuffling"
        if over_shuffle.shown == "better":
            beats_it = f" and {_span(over_shuffle)} over shuffling"
        return Verdict(kind="gain", text=text + beats_it, strategy=best)
    kind: VerdictKind = "no_difference"
    beats_shuffle = any(by[SHUFFLE].shown == "better" for by in against.values() if SHUFFLE in by)
    it = "it" if beats_shuffle else "it or shuffling"
    text = f"keep the ranked order: no strategy is shown to beat {it} here{_needed(setting)}"
    if best:
        kind = "put_best_elsewhere"
        worse = f"it is worse than shuffling by {_span(gains[SHUFFLE])}"
        text = f"do not keep the ranked order: {worse}{_best_of(setting)}"
    elif SHUFFLE in losses:
        kind = "ranked_order_helps"
        text = (
            f"keep the ranked order: it beats shuffling by {_span(against[SEQUENTIAL][SHUFFLE])}, "
            "and no other order is shown to beat it"
        )
    lost = [
        f"{name} loses {_span(each, sign=-1)}" for name, each in losses.items() if name != SHUFFLE
    ]
    return Verdict(kind=kind, text="; ".join([text, *filter(None, [", ".join(lost)])]))


def _best_of(setting: SettingResult) -> str:
    """Say which strategy does best where the ranked order is bad; empty if there is none."""
    gains = {name: each for name, each in setting.over_ranked.items() if name != SHUFFLE}
    if not gains:
        return ""
    best, gain = max(gains.items(), key=lambda each: each[1].difference)
    but = "" if gain.shown == "better" else ", which is not shown"
    return (
        f"; of the strategies {best} comes out best ({gain.difference:+.2f} from the ranked "
        f"order{but})"
    )


def _needed(setting: SettingResult) -> str:
    if setting.questions_needed is None:
        return ""
    n, difference = len(setting.questions), f"a difference of {EFFECT:g}"
    if setting.questions_needed <= n:
        return (
            f"; these {counted(n, 'question')} would show {difference} with a chance of about "
            f"{POWER:.0%} or more"
        )
    return (
        f"; it takes about {counted(setting.questions_needed, 'question')} to show {difference} "
        f"with a chance of {POWER:.0%}"
    )


def _span(comparison: PairedComparison, *, sign: int = 1) -> str:
    """Return a difference with its interval, with enough decimals that none of them looks 0."""
    lower, upper = sorted(sign * bound for bound in comparison.interval)
    digits = _digits(min(abs(value) for value in (lower, upper, comparison.difference)))
    return f"{sign * comparison.difference:.{digits}f} [{lower:.{digits}f}, {upper:.{digits}f}]"


def _digits(value: float) -> int:
    """Return how many decimals show that a value is not 0: 2 if that will do, 6 at most."""
    return next((digits for digits in range(2, 6) if round(value, digits) > 0), 6)


def overall_verdict(settings: Sequence[SettingResult], steps: Sequence[StepResult] = ()) -> Verdict:
    """Return what follows from all settings.

    What a layout is shown to gain or lose comes first, as orders may not tell. Then comes the
    kind of verdict that says most, of one setting, or of all in which a strategy gains, with those
    in which it loses. The other settings are counted.
    """
    kind = min((each.verdict.kind for each in settings), key=get_args(VerdictKind).index)
    same = [each for each in settings if each.verdict.kind == kind]
    said = [*_of_layouts(steps)]
    named = same if kind == "gain" else same[:1]
    said += [f"{each.verdict.text} ({each.name})" for each in named]
    if len(same) > len(named):
        more = counted(len(same) - len(named), "other setting")
        said.append(f"likewise, by other figures, in {more}")
    advised = [*dict.fromkeys(each.verdict.strategy for each in same if each.verdict.strategy)]
    for strategy in advised:
        if lost := [each.name for each in settings if strategy in each.shown("worse")]:
            said.append(f"but {strategy} loses in {' and '.join(lost)}")
    if others := len(settings) - len(same):
        said.append(f"otherwise in {counted(others, 'other setting')}, see there")
    return Verdict(kind=kind, text="; ".join(said), strategy=advised[0] if advised else None)


def _of_layouts(steps: Sequence[StepResult]) -> Iterator[str]:
    """Yield what layouts are shown to gain or lose."""
    for each in steps:
        shown = each.gain.shown
        if each.of_layout and shown != "open":
            verb, sign = ("gains", 1) if shown == "better" else ("loses", -1)
            yield f"{each.step} {verb} {_span(each.gain, sign=sign)} ({each.setting})"

"""What the figures mean for the user, in words. Pure functions of the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared_core.comparison.figures import SEQUENTIAL, SHUFFLE
from shared_core.comparison.records import Verdict, VerdictKind
from shared_core.comparison.wording import counted
from shared_core.evaluation.significance import PairedComparison

_FIRST: tuple[VerdictKind, ...] = (
    "gain",
    "put_best_elsewhere",
    "ranked_order_helps",
    "no_difference",
    "all_wrong",
    "all_right",
    "too_few",
)
"""Of several settings, what is said first."""

_ALL_WRONG = Verdict(
    kind="all_wrong",
    text="no answer is right in any order, so nothing can be told of the orders; look at the "
    "answers, or try other --graders, another --template or --model",
)
_ALL_RIGHT = Verdict(
    kind="all_right",
    text="every answer is right in every order, so nothing can be told of the orders; ask harder "
    "questions, or raise --k",
)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """What the verdict on one setting rests on.

    Attributes
    ----------
    against
        Strategy -> baseline -> difference, corrected for all comparisons of the result.
    n
        Questions compared.
    fewest
        Questions below which no order could be shown to beat the ranked one.
    needed
        Questions that would show a difference of `effect`, if that can be told.
    effect
        In outcome units.
    power
        The chance with which they would.
    level
        Of the tests.
    alike
        0 if no strategy was ever right, 1 if all always were, and else None.
    """

    against: Mapping[str, Mapping[str, PairedComparison]]
    n: int
    fewest: int
    needed: int | None
    effect: float
    power: float
    level: float
    alike: float | None = None


def setting_verdict(evidence: Evidence) -> Verdict:
    """Return what follows for one setting.

    A difference counts as shown if its corrected p-value is at most the level and its interval
    lies on one side of 0. A strategy gains if it is shown to beat the ranked order, and by more
    than shuffling does; otherwise it is the ranked order that is bad. Outcomes that are all
    alike speak of the set-up and not of the order, however many they are.
    """
    if evidence.alike is not None:
        return _ALL_RIGHT if evidence.alike else _ALL_WRONG
    if evidence.n < evidence.fewest or not evidence.against:
        return Verdict(kind="too_few", text=_too_few(evidence))
    over_ranked = _against(evidence, SEQUENTIAL)
    shuffled = over_ranked.pop(SHUFFLE)
    shown = {name: each for name, each in over_ranked.items() if _better(each, evidence)}
    gain = max((each.difference for each in shown.values()), default=0.0)
    if _better(shuffled, evidence) and gain <= shuffled.difference:
        text = _elsewhere(evidence, shuffled, over_ranked)
        return Verdict(kind="put_best_elsewhere", text=text)
    if shown:
        best = max(shown, key=lambda name: shown[name].difference)
        return Verdict(kind="gain", text=_gain(evidence, best), strategy=best)
    if _worse(shuffled, evidence):
        ranked = evidence.against[SEQUENTIAL][SHUFFLE]
        text = (
            f"keep the ranked order: it beats shuffling by {_span(ranked)}, and no other order is "
            "shown to beat it"
        )
        return Verdict(kind="ranked_order_helps", text=text + _losses(evidence, over_ranked))
    text = _keep(evidence, "here", _beats_shuffle(evidence))
    return Verdict(kind="no_difference", text=text + _losses(evidence, over_ranked))


def overall_verdict(settings: Mapping[str, tuple[Verdict, Evidence]]) -> Verdict:
    """Return what follows from all settings, named as "hybrid, k=10"."""
    kind = min((verdict.kind for verdict, _ in settings.values()), key=_FIRST.index)
    named = {name: verdict for name, (verdict, _) in settings.items() if verdict.kind == kind}
    if kind == "no_difference" and len(settings) == len(named) > 1:
        evidence = _widest([evidence for _, evidence in settings.values()])
        beaten = any(_beats_shuffle(evidence) for _, evidence in settings.values())
        where = f"in any of the {len(settings)} settings"
        return Verdict(kind=kind, text=_keep(evidence, where, beaten))
    said = [f"{verdict.text} ({name})" for name, verdict in named.items()]
    if kind != "gain" and len(said) > 1:
        others = counted(len(said) - 1, "other setting")
        keeps = kind in ("ranked_order_helps", "no_difference")
        said = [said[0], f"keep it in {others} as well" if keeps else f"likewise in {others}"]
    if rest := len(settings) - len(named):
        said.append(f"nothing of the kind is shown in {counted(rest, 'other setting')}")
    strategy = next(iter(named.values())).strategy
    return Verdict(kind=kind, text="; ".join(said), strategy=strategy)


def _too_few(evidence: Evidence) -> str:
    return (
        f"too few questions to tell: {evidence.n}, where a verdict takes {evidence.fewest}; keep "
        f"the ranked order{_needed(evidence)}"
    )


def _gain(evidence: Evidence, best: str) -> str:
    gain = _span(evidence.against[best][SEQUENTIAL])
    text = f"use {best}: it gains {gain} over the ranked order"
    over_shuffle = evidence.against[best][SHUFFLE]
    if _better(over_shuffle, evidence):
        return f"{text} and {_span(over_shuffle)} over shuffling"
    return f"{text}, though it is not shown to beat shuffling"


def _elsewhere(
    evidence: Evidence, shuffled: PairedComparison, others: Mapping[str, PairedComparison]
) -> str:
    text = f"do not keep the ranked order: it is worse than shuffling by {_span(shuffled)}"
    if not others:
        return text
    best = max(others, key=lambda name: others[name].difference)
    unsure = "" if _better(others[best], evidence) else ", though that is not shown"
    return (
        f"{text}; of the strategies {best} comes out best "
        f"({others[best].difference:+.2f} from the ranked order{unsure})"
    )


def _keep(evidence: Evidence, where: str, beats_shuffle: bool) -> str:
    it = "it" if beats_shuffle else "it or shuffling"
    return f"keep the ranked order: no strategy is shown to beat {it} {where}{_needed(evidence)}"


def _beats_shuffle(evidence: Evidence) -> bool:
    return any(_better(each, evidence) for each in _against(evidence, SHUFFLE).values())


def _losses(evidence: Evidence, others: Mapping[str, PairedComparison]) -> str:
    lost = [
        f"{name} loses {_span(each, sign=-1)}"
        for name, each in others.items()
        if _worse(each, evidence)
    ]
    return f"; {', '.join(lost)}" if lost else ""


def _needed(evidence: Evidence) -> str:
    if evidence.needed is None:
        return ""
    difference = f"a difference of {evidence.effect:g}"
    if evidence.needed <= evidence.n:
        return (
            f"; these {counted(evidence.n, 'question')} would show {difference} with a chance of "
            f"{evidence.power:.0%} or more"
        )
    return (
        f"; it takes about {counted(evidence.needed, 'question')} to show {difference} with a "
        f"chance of {evidence.power:.0%}"
    )


def _widest(all_of_them: Sequence[Evidence]) -> Evidence:
    """Return the evidence of the setting that needs the most questions beyond those it has."""
    return max(all_of_them, key=lambda evidence: (evidence.needed or 0) - evidence.n)


def _against(evidence: Evidence, baseline: str) -> dict[str, PairedComparison]:
    return {
        name: by_baseline[baseline]
        for name, by_baseline in evidence.against.items()
        if baseline in by_baseline
    }


def _better(comparison: PairedComparison, evidence: Evidence) -> bool:
    return comparison.adjusted <= evidence.level and comparison.interval[0] > 0


def _worse(comparison: PairedComparison, evidence: Evidence) -> bool:
    return comparison.adjusted <= evidence.level and comparison.interval[1] < 0


def _span(comparison: PairedComparison, *, sign: int = 1) -> str:
    lower, upper = sorted(sign * bound for bound in comparison.interval)
    return f"{sign * comparison.difference:.2f} [{lower:.2f}, {upper:.2f}]"

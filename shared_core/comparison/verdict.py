"""What the figures mean for the user, in words. Pure functions of the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared_core.comparison.figures import SEQUENTIAL, SHUFFLE
from shared_core.comparison.records import Verdict, VerdictKind
from shared_core.evaluation.significance import PairedComparison
from shared_core.wording import counted

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
class VerdictBasis:
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


def setting_verdict(basis: VerdictBasis) -> Verdict:
    """Return what follows for one setting.

    A difference counts as shown if its corrected p-value is at most the level and its interval
    lies on one side of 0. A strategy gains if it is shown to beat the ranked order, and by more
    than shuffling does; otherwise it is the ranked order that is bad. Outcomes that are all
    alike speak of the set-up and not of the order, however many they are.
    """
    if basis.alike is not None:
        return _ALL_RIGHT if basis.alike else _ALL_WRONG
    if basis.n < basis.fewest or not basis.against:
        return Verdict(kind="too_few", text=_too_few(basis))
    over_ranked = _against(basis, SEQUENTIAL)
    shuffled = over_ranked.pop(SHUFFLE)
    shown = {name: each for name, each in over_ranked.items() if _better(each, basis)}
    gain = max((each.difference for each in shown.values()), default=0.0)
    if _better(shuffled, basis) and gain <= shuffled.difference:
        text = _elsewhere(basis, shuffled, over_ranked)
        return Verdict(kind="put_best_elsewhere", text=text)
    if shown:
        best = max(shown, key=lambda name: shown[name].difference)
        return Verdict(kind="gain", text=_gain(basis, best), strategy=best)
    if _worse(shuffled, basis):
        ranked = basis.against[SEQUENTIAL][SHUFFLE]
        text = (
            f"keep the ranked order: it beats shuffling by {_span(ranked)}, and no other order is "
            "shown to beat it"
        )
        return Verdict(kind="ranked_order_helps", text=text + _losses(basis, over_ranked))
    text = _keep(basis, "here", _beats_shuffle(basis))
    return Verdict(kind="no_difference", text=text + _losses(basis, over_ranked))


def overall_verdict(settings: Mapping[str, tuple[Verdict, VerdictBasis]]) -> Verdict:
    """Return what follows from all settings, named as "hybrid, k=10"."""
    kind = min((verdict.kind for verdict, _ in settings.values()), key=_FIRST.index)
    named = {name: verdict for name, (verdict, _) in settings.items() if verdict.kind == kind}
    if kind == "no_difference" and len(settings) == len(named) > 1:
        basis = _widest([basis for _, basis in settings.values()])
        beaten = any(_beats_shuffle(basis) for _, basis in settings.values())
        where = f"in any of the {len(settings)} settings"
        return Verdict(kind=kind, text=_keep(basis, where, beaten))
    said = [f"{verdict.text} ({name})" for name, verdict in named.items()]
    if kind != "gain" and len(said) > 1:
        others = counted(len(said) - 1, "other setting")
        keeps = kind in ("ranked_order_helps", "no_difference")
        said = [said[0], f"keep it in {others} as well" if keeps else f"likewise in {others}"]
    if rest := len(settings) - len(named):
        said.append(f"nothing of the kind is shown in {counted(rest, 'other setting')}")
    strategy = next(iter(named.values())).strategy
    return Verdict(kind=kind, text="; ".join(said), strategy=strategy)


def _too_few(basis: VerdictBasis) -> str:
    return (
        f"too few questions to tell: {basis.n}, where a verdict takes {basis.fewest}; keep "
        f"the ranked order{_needed(basis)}"
    )


def _gain(basis: VerdictBasis, best: str) -> str:
    gain = _span(basis.against[best][SEQUENTIAL])
    text = f"use {best}: it gains {gain} over the ranked order"
    over_shuffle = basis.against[best][SHUFFLE]
    if _better(over_shuffle, basis):
        return f"{text} and {_span(over_shuffle)} over shuffling"
    return f"{text}, though it is not shown to beat shuffling"


def _elsewhere(
    basis: VerdictBasis, shuffled: PairedComparison, others: Mapping[str, PairedComparison]
) -> str:
    text = f"do not keep the ranked order: it is worse than shuffling by {_span(shuffled)}"
    if not others:
        return text
    best = max(others, key=lambda name: others[name].difference)
    unsure = "" if _better(others[best], basis) else ", though that is not shown"
    return (
        f"{text}; of the strategies {best} comes out best "
        f"({others[best].difference:+.2f} from the ranked order{unsure})"
    )


def _keep(basis: VerdictBasis, where: str, beats_shuffle: bool) -> str:
    it = "it" if beats_shuffle else "it or shuffling"
    return f"keep the ranked order: no strategy is shown to beat {it} {where}{_needed(basis)}"


def _beats_shuffle(basis: VerdictBasis) -> bool:
    return any(_better(each, basis) for each in _against(basis, SHUFFLE).values())


def _losses(basis: VerdictBasis, others: Mapping[str, PairedComparison]) -> str:
    lost = [
        f"{name} loses {_span(each, sign=-1)}"
        for name, each in others.items()
        if _worse(each, basis)
    ]
    return f"; {', '.join(lost)}" if lost else ""


def _needed(basis: VerdictBasis) -> str:
    if basis.needed is None:
        return ""
    difference = f"a difference of {basis.effect:g}"
    if basis.needed <= basis.n:
        return (
            f"; these {counted(basis.n, 'question')} would show {difference} with a chance of "
            f"{basis.power:.0%} or more"
        )
    return (
        f"; it takes about {counted(basis.needed, 'question')} to show {difference} with a "
        f"chance of {basis.power:.0%}"
    )


def _widest(all_of_them: Sequence[VerdictBasis]) -> VerdictBasis:
    """Return the basis of the setting that needs the most questions beyond those it has."""
    return max(all_of_them, key=lambda basis: (basis.needed or 0) - basis.n)


def _against(basis: VerdictBasis, baseline: str) -> dict[str, PairedComparison]:
    return {
        name: by_baseline[baseline]
        for name, by_baseline in basis.against.items()
        if baseline in by_baseline
    }


def _better(comparison: PairedComparison, basis: VerdictBasis) -> bool:
    return comparison.adjusted <= basis.level and comparison.interval[0] > 0


def _worse(comparison: PairedComparison, basis: VerdictBasis) -> bool:
    return comparison.adjusted <= basis.level and comparison.interval[1] < 0


def _span(comparison: PairedComparison, *, sign: int = 1) -> str:
    lower, upper = sorted(sign * bound for bound in comparison.interval)
    return f"{sign * comparison.difference:.2f} [{lower:.2f}, {upper:.2f}]"

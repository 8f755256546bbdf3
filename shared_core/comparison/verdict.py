"""What the figures mean for the user, in words: the verdict on one setting, and on all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, get_args

from shared_core.comparison.result import (
    SEQUENTIAL,
    SHUFFLE,
    Flips,
    StepResult,
    Verdict,
    VerdictKind,
)
from shared_core.comparison.statistics import VerdictBasis
from shared_core.evaluation.significance import PairedComparison
from shared_core.wording import counted

_LIKEWISE: Mapping[VerdictKind, str] = {
    "put_best_elsewhere": "the ranked order is worse than shuffling in {} as well",
    "ranked_order_helps": "keep it in {} as well",
}
"""What is said of further settings of the same kind, if not "likewise"; gains are all named."""

_IN_OTHERS: Mapping[VerdictKind, str] = {
    "no_difference": "no difference from the ranked order is shown in {}",
    "all_wrong": "no answer is right in {}",
    "all_right": "every answer is right in {}",
    "too_few": "there are too few questions to tell in {}",
    "order_not_shown": "it is not shown to matter in {}",
}
"""What is said of settings in which nothing is shown."""

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


Judged: TypeAlias = Mapping[str, tuple[Verdict, VerdictBasis]]
"""Name of a setting, such as "hybrid, k=10" -> its verdict, and the figures behind it."""


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


def setting_verdict(basis: VerdictBasis) -> Verdict:
    """Return what follows for one setting.

    A difference counts as shown if its corrected p-value is at most the level and its interval
    lies on one side of 0. A strategy gains if it is shown to beat the ranked order, and by more
    than shuffling does; otherwise it is the ranked order that is bad. Outcomes that are all
    alike reflect the set-up and not the order, however many there are. Questions are too few
    only where no difference from the ranked order is shown.
    """
    if basis.alike is not None:
        return _ALL_RIGHT if basis.alike else _ALL_WRONG
    is_shown = basis.gains or basis.losses
    if not basis.over_ranked or (basis.n < basis.fewest and not is_shown):
        text = f"too few questions to tell: {basis.n}, where a verdict takes {basis.fewest}; keep "
        return Verdict(kind="too_few", text=f"{text}the ranked order{_needed(basis)}")
    # Of equal gains the shuffle's counts.
    gains = {name: (each.difference, name == SHUFFLE) for name, each in basis.gains.items()}
    best = max(gains, key=gains.__getitem__, default="")
    if best and best != SHUFFLE:
        return Verdict(kind="gain", text=_gain(basis, best), strategy=best)
    kind: VerdictKind = "no_difference"
    text = _keep(basis, "here", beats_shuffle=basis.beats_shuffle)
    if best:
        kind = "put_best_elsewhere"
        worse = f"it is worse than shuffling by {_span(basis.gains[SHUFFLE])}"
        text = f"do not keep the ranked order: {worse}{_best_of(basis)}"
    elif SHUFFLE in basis.losses:
        kind = "ranked_order_helps"
        text = (
            f"keep the ranked order: it {_beats_shuffling(basis)}, and no other order is shown "
            "to beat it"
        )
    return Verdict(kind=kind, text=text + _losses(basis))


def _gain(basis: VerdictBasis, best: str) -> str:
    """Advise a strategy, with what it gains over both baselines."""
    text = f"use {best}: it gains {_span(basis.over_ranked[best])} over the ranked order"
    over_shuffle = basis.against[best][SHUFFLE]
    if basis.better(over_shuffle):
        return f"{text} and {_span(over_shuffle)} over shuffling"
    return f"{text}, though it is not shown to beat shuffling"


def _best_of(basis: VerdictBasis) -> str:
    """Say which strategies do better than a bad ranked order, if any do."""
    gains = {
        name: round(each.difference, 9)
        for name, each in basis.over_ranked.items()
        if name != SHUFFLE
    }
    if not gains:
        return ""
    most = max(gains.values())
    if most <= 0:
        return "; no strategy comes out better than the ranked order"
    best = [name for name, gained in gains.items() if gained == most]
    unsure = [name for name in best if name not in basis.gains]
    but = ", though that is not shown" if unsure else ""
    if len(unsure) not in (0, len(best)):
        but += f" of {_listed(unsure)}"
    return (
        f"; of the strategies {_listed(best)} {'comes' if len(best) == 1 else 'come'} out best "
        f"({most:+.{_digits(most)}f} from the ranked order{but})"
    )


def _beats_shuffling(basis: VerdictBasis) -> str:
    return f"beats shuffling by {_span(basis.against[SEQUENTIAL][SHUFFLE])}"


def _keep(basis: VerdictBasis, where: str, *, beats_shuffle: bool) -> str:
    """Say that nothing is shown to beat the ranked order, nor shuffling unless a strategy does."""
    it = "it" if beats_shuffle else "it or shuffling"
    return f"keep the ranked order: no strategy is shown to beat {it} {where}{_needed(basis)}"


def _losses(basis: VerdictBasis, where: str = "") -> str:
    """Say which strategies are shown to lose against the ranked order; empty if none is."""
    lost = [
        f"{name} loses {_span(each, sign=-1)}{where}"
        for name, each in basis.losses.items()
        if name != SHUFFLE
    ]
    return f"; {', '.join(lost)}" if lost else ""


def _needed(basis: VerdictBasis) -> str:
    if basis.needed is None:
        return ""
    difference = f"a difference of {basis.testing.effect:g}"
    if basis.needed <= basis.n:
        return (
            f"; these {counted(basis.n, 'question')} would show {difference} with a chance of "
            f"about {basis.testing.power:.0%} or more"
        )
    return (
        f"; it takes about {counted(basis.needed, 'question')} to show {difference} with a "
        f"chance of {basis.testing.power:.0%}"
    )


def _span(comparison: PairedComparison, *, sign: int = 1) -> str:
    """Return a difference with its interval, with enough decimals that none of them looks 0."""
    lower, upper = sorted(sign * bound for bound in comparison.interval)
    digits = _digits(min(abs(value) for value in (lower, upper, comparison.difference)))
    return f"{sign * comparison.difference:.{digits}f} [{lower:.{digits}f}, {upper:.{digits}f}]"


def _digits(value: float) -> int:
    """Return how many decimals show that a value is not 0: 2 if that will do, 6 at most."""
    return next((digits for digits in range(2, 6) if round(value, digits) > 0), 6)


def _listed(parts: Sequence[str]) -> str:
    """Return an enumeration, as ``a, b and c``; empty if there is nothing."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def overall_verdict(settings: Judged, steps: Sequence[StepResult] = ()) -> Verdict:
    """Return what follows from all settings.

    What a layout is shown to gain or lose comes first, as orders may not tell. What is advised
    because of some of them comes with what others show against it; settings in which nothing is
    shown are counted, and all others are named.
    """
    kind = min((verdict.kind for verdict, _ in settings.values()), key=get_args(VerdictKind).index)
    same = {name: each for name, each in settings.items() if each[0].kind == kind}
    others = {name: each for name, each in settings.items() if name not in same}
    advised = [*dict.fromkeys(verdict.strategy for verdict, _ in same.values())]
    strategies = [strategy for strategy in advised if strategy is not None]
    (_, basis), *_ = settings.values()
    said = [
        *_of_layouts(steps, basis.testing.level),
        *_headline(kind, same, len(settings)),
        *_lost(strategies, settings),
    ]
    said += [*_shown(kind, strategies, others), *_not_shown(strategies, others)]
    return Verdict(kind=kind, text="; ".join(said), strategy=advised[0])


def _of_layouts(steps: Sequence[StepResult], level: float) -> Iterator[str]:
    """Yield what layouts are shown to gain or lose."""
    for each in steps:
        shown = each.gain.shown(level)
        if each.of_layout and shown != "open":
            verb, sign = ("gains", 1) if shown == "better" else ("loses", -1)
            yield f"{each.step} {verb} {_span(each.gain, sign=sign)} ({each.setting})"


def _headline(kind: VerdictKind, same: Judged, total: int) -> Iterator[str]:
    """Yield what is advised, and in which settings."""
    texts = [f"{verdict.text} ({name})" for name, (verdict, _) in same.items()]
    if kind == "gain" or len(same) == 1:
        yield from texts
    elif kind == "no_difference":
        bases = [basis for _, basis in same.values()]
        # Of the setting that needs the most questions beyond those it has.
        widest = max(bases, key=lambda basis: (basis.needed or 0) - basis.n)
        which = "any of the " if len(same) == total else ""
        where = f"in {which}{counted(len(same), 'setting')}"
        lost = (_losses(basis, f" ({name})") for name, (_, basis) in same.items())
        beaten = any(basis.beats_shuffle for basis in bases)
        yield _keep(widest, where, beats_shuffle=beaten) + "".join(lost)
    else:
        yield texts[0]
        yield _LIKEWISE.get(kind, "likewise in {}").format(counted(len(same) - 1, "other setting"))


def _lost(strategies: Sequence[str], settings: Judged) -> Iterator[str]:
    """Yield in which settings strategies that are advised lose against the ranked order."""
    for strategy in strategies:
        lost = [
            f"{_span(basis.losses[strategy], sign=-1)} ({name})"
            for name, (_, basis) in settings.items()
            if strategy in basis.losses
        ]
        if lost:
            yield f"but {strategy} loses {_listed(lost)}"


def _shown(kind: VerdictKind, strategies: Sequence[str], others: Judged) -> Iterator[str]:
    """Yield what other settings show of the ranked order and shuffling."""
    for name, (verdict, basis) in others.items():
        if verdict.kind == "put_best_elsewhere":
            better = (each for each in (SHUFFLE, *strategies) if each in basis.gains)
            than = [
                f"than {'shuffling' if each == SHUFFLE else each} by {_span(basis.gains[each])}"
                for each in better
            ]
            yield f"the ranked order is worse {_listed(than)} ({name})"
        if verdict.kind == "ranked_order_helps":
            but = "but " if kind == "put_best_elsewhere" else ""
            yield f"{but}the ranked order {_beats_shuffling(basis)} ({name})"


def _not_shown(strategies: Sequence[str], others: Judged) -> Iterator[str]:
    """Yield in how many of the other settings nothing is shown, or only losses not named yet."""
    numbers: Counter[str] = Counter()
    for verdict, basis in others.values():
        if verdict.kind == "no_difference" and basis.losses:
            if basis.losses.keys().isdisjoint(strategies):
                numbers["only losses against the ranked order are shown in {}"] += 1
        elif verdict.kind in _IN_OTHERS:
            numbers[_IN_OTHERS[verdict.kind]] += 1
    for text, number in numbers.items():
        yield text.format(counted(number, "other setting"))

"""The verdict on all settings: what is advised, what speaks against it, and what others show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from shared_core.comparison.records import Verdict, VerdictKind
from shared_core.comparison.statistics import SEQUENTIAL, SHUFFLE
from shared_core.comparison.verdict.setting import VerdictBasis, keep, listed, losses, span
from shared_core.wording import counted

Judged: TypeAlias = Mapping[str, tuple[Verdict, VerdictBasis]]
"""Name of a setting, such as "hybrid, k=10" -> its verdict, and the figures behind it."""

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

_LIKEWISE: Mapping[VerdictKind, str] = {
    "put_best_elsewhere": "the ranked order is worse than shuffling in {} as well",
    "ranked_order_helps": "keep it in {} as well",
    "all_wrong": "likewise in {}",
    "all_right": "likewise in {}",
    "too_few": "likewise in {}",
}
"""What is said of further settings of the same kind; gains are all named."""

_IN_OTHERS: Mapping[VerdictKind, str] = {
    "no_difference": "no difference from the ranked order is shown in {}",
    "all_wrong": "no answer is right in {}",
    "all_right": "every answer is right in {}",
    "too_few": "there are too few questions to tell in {}",
}
"""What is said of settings in which nothing is shown."""


def overall_verdict(settings: Judged) -> Verdict:
    """Return what follows from all settings.

    What is advised because of some of them comes with what others show against it; settings in
    which nothing is shown are counted, and all others are named.
    """
    kind = min((verdict.kind for verdict, _ in settings.values()), key=_FIRST.index)
    same = {name: each for name, each in settings.items() if each[0].kind == kind}
    others = {name: each for name, each in settings.items() if name not in same}
    advised = [*dict.fromkeys(verdict.strategy for verdict, _ in same.values())]
    strategies = [strategy for strategy in advised if strategy is not None]
    said = [*_headline(kind, same, len(settings)), *_losses(strategies, settings)]
    said += [*_shown(kind, strategies, others), *_not_shown(strategies, others)]
    return Verdict(kind=kind, text="; ".join(said), strategy=advised[0])


def _headline(kind: VerdictKind, same: Judged, total: int) -> Iterator[str]:
    """Yield what is advised, and in which settings."""
    texts = [f"{verdict.text} ({name})" for name, (verdict, _) in same.items()]
    if kind == "gain" or len(same) == 1:
        yield from texts
    elif kind == "no_difference":
        bases = {name: basis for name, (_, basis) in same.items()}
        # Of the setting that needs the most questions beyond those it has.
        widest = max(bases.values(), key=lambda basis: (basis.needed or 0) - basis.n)
        beaten = any(basis.beats_shuffle for basis in bases.values())
        which = "any of the " if len(same) == total else ""
        where = f"in {which}{counted(len(same), 'setting')}"
        yield keep(widest, where, beats_shuffle=beaten)
        lost = (losses(each, each.over(SEQUENTIAL), name) for name, each in bases.items())
        yield from (each.removeprefix("; ") for each in lost if each)
    else:
        yield texts[0]
        yield _LIKEWISE[kind].format(counted(len(same) - 1, "other setting"))


def _losses(strategies: Sequence[str], settings: Judged) -> Iterator[str]:
    """Yield in which settings strategies that are advised lose against the ranked order."""
    bases = {name: basis for name, (_, basis) in settings.items()}
    for strategy in strategies:
        if lost := _shown_losses(strategy, bases):
            yield f"but {strategy} loses {lost}"


def _shown(kind: VerdictKind, strategies: Sequence[str], others: Judged) -> Iterator[str]:
    """Yield what other settings show of the ranked order and shuffling."""
    for name, (verdict, basis) in others.items():
        if verdict.kind == "put_best_elsewhere":
            yield f"{_ranked_order_loses(basis, strategies)} ({name})"
        if verdict.kind == "ranked_order_helps":
            but = "but " if kind == "put_best_elsewhere" else ""
            yield f"{but}{_ranked_order_gains(basis)} ({name})"


def _not_shown(strategies: Sequence[str], others: Judged) -> Iterator[str]:
    """Yield in how many of the other settings nothing is shown, or only losses not named yet."""
    numbers: Counter[str] = Counter()
    for verdict, basis in others.values():
        over_ranked = basis.over(SEQUENTIAL)
        if verdict.kind == "no_difference" and basis.differs:
            if not any(
                basis.worse(over_ranked[each]) for each in strategies if each in over_ranked
            ):
                numbers["only losses against the ranked order are shown in {}"] += 1
        elif verdict.kind in _IN_OTHERS:
            numbers[_IN_OTHERS[verdict.kind]] += 1
    for text, number in numbers.items():
        yield text.format(counted(number, "other setting"))


def _ranked_order_loses(basis: VerdictBasis, strategies: Iterable[str]) -> str:
    """Say by how much the ranked order is worse than shuffling, and than these strategies."""
    over_ranked = basis.over(SEQUENTIAL)
    better = {"shuffling": over_ranked[SHUFFLE]}
    better |= {
        name: over_ranked[name]
        for name in strategies
        if name in over_ranked and basis.better(over_ranked[name])
    }
    worse = listed([f"than {name} by {span(each)}" for name, each in better.items()])
    return f"the ranked order is worse {worse}"


def _ranked_order_gains(basis: VerdictBasis) -> str:
    """Say by how much the ranked order beats shuffling."""
    return f"the ranked order beats shuffling by {span(basis.against[SEQUENTIAL][SHUFFLE])}"


def _shown_losses(strategy: str, bases: Mapping[str, VerdictBasis]) -> str:
    """Say how much a strategy is shown to lose against the ranked order, and in which settings."""
    over_ranked = {name: basis.over(SEQUENTIAL).get(strategy) for name, basis in bases.items()}
    return listed(
        [
            f"{span(each, sign=-1)} ({name})"
            for name, each in over_ranked.items()
            if each is not None and bases[name].worse(each)
        ]
    )

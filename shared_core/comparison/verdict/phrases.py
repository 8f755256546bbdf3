"""The sentences that make up a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shared_core.comparison.statistics import SEQUENTIAL, SHUFFLE
from shared_core.comparison.verdict.basis import VerdictBasis
from shared_core.evaluation.significance import PairedComparison
from shared_core.wording import counted


def too_few(basis: VerdictBasis) -> str:
    """Say how many questions there are, and how many it takes."""
    return (
        f"too few questions to tell: {basis.n}, where a verdict takes {basis.fewest}; keep "
        f"the ranked order{_needed(basis)}"
    )


def gain(basis: VerdictBasis, best: str) -> str:
    """Advise a strategy, with what it gains over both baselines."""
    gained = _span(basis.against[best][SEQUENTIAL])
    text = f"use {best}: it gains {gained} over the ranked order"
    over_shuffle = basis.against[best][SHUFFLE]
    if basis.better(over_shuffle):
        return f"{text} and {_span(over_shuffle)} over shuffling"
    return f"{text}, though it is not shown to beat shuffling"


def put_best_elsewhere(
    basis: VerdictBasis, shuffled: PairedComparison, others: Mapping[str, PairedComparison]
) -> str:
    """Advise against the ranked order, and say which strategies do better, if any do."""
    text = f"do not keep the ranked order: it is worse than shuffling by {_span(shuffled)}"
    if not others:
        return text
    gains = {name: round(each.difference, 9) for name, each in others.items()}
    most = max(gains.values())
    if most <= 0:
        text += "; no strategy comes out better than the ranked order"
        return text + losses(basis, others)
    best = [name for name, gained in gains.items() if gained == most]
    unsure = [name for name in best if not basis.better(others[name])]
    but = ", though that is not shown" if unsure else ""
    if len(unsure) not in (0, len(best)):
        but += f" of {_listed(unsure)}"
    return (
        f"{text}; of the strategies {_listed(best)} {'comes' if len(best) == 1 else 'come'} out "
        f"best ({most:+.{_digits(most)}f} from the ranked order{but}){losses(basis, others)}"
    )


def ranked_order_helps(basis: VerdictBasis, others: Mapping[str, PairedComparison]) -> str:
    """Advise the ranked order, with what it gains, and say which strategies lose against it."""
    ranked = _span(basis.against[SEQUENTIAL][SHUFFLE])
    return (
        f"keep the ranked order: it beats shuffling by {ranked}, and no other order is shown to "
        f"beat it{losses(basis, others)}"
    )


def ranked_order_loses(basis: VerdictBasis, strategies: Iterable[str]) -> str:
    """Say by how much the ranked order is worse than shuffling, and than these strategies."""
    over_ranked = basis.over(SEQUENTIAL)
    better = {"shuffling": over_ranked[SHUFFLE]}
    better |= {
        name: over_ranked[name]
        for name in strategies
        if name in over_ranked and basis.better(over_ranked[name])
    }
    worse = _listed([f"than {name} by {_span(each)}" for name, each in better.items()])
    return f"the ranked order is worse {worse}"


def ranked_order_gains(basis: VerdictBasis) -> str:
    """Say by how much the ranked order beats shuffling."""
    return f"the ranked order beats shuffling by {_span(basis.against[SEQUENTIAL][SHUFFLE])}"


def keep(basis: VerdictBasis, where: str, *, beats_shuffle: bool) -> str:
    """Say that nothing is shown to beat the ranked order, nor shuffling unless a strategy does."""
    it = "it" if beats_shuffle else "it or shuffling"
    return f"keep the ranked order: no strategy is shown to beat {it} {where}{_needed(basis)}"


def losses(
    basis: VerdictBasis, others: Mapping[str, PairedComparison], setting: str | None = None
) -> str:
    """Say which strategies are shown to lose against the ranked order; empty if none is."""
    where = f" ({setting})" if setting else ""
    lost = [
        f"{name} loses {_span(each, sign=-1)}{where}"
        for name, each in others.items()
        if basis.worse(each)
    ]
    return f"; {', '.join(lost)}" if lost else ""


def shown_losses(strategy: str, bases: Mapping[str, VerdictBasis]) -> str:
    """Say how much a strategy is shown to lose against the ranked order, and in which settings."""
    over_ranked = {name: basis.over(SEQUENTIAL).get(strategy) for name, basis in bases.items()}
    return _listed(
        [
            f"{_span(each, sign=-1)} ({name})"
            for name, each in over_ranked.items()
            if each is not None and bases[name].worse(each)
        ]
    )


def _needed(basis: VerdictBasis) -> str:
    if basis.needed is None:
        return ""
    difference = f"a difference of {basis.effect:g}"
    if basis.needed <= basis.n:
        return (
            f"; these {counted(basis.n, 'question')} would show {difference} with a chance of "
            f"about {basis.power:.0%} or more"
        )
    return (
        f"; it takes about {counted(basis.needed, 'question')} to show {difference} with a "
        f"chance of {basis.power:.0%}"
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

"""The verdict on one setting: what its figures mean for the user, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shared_core.comparison.records import Verdict
from shared_core.comparison.statistics import SEQUENTIAL, SHUFFLE
from shared_core.evaluation.significance import PairedComparison
from shared_core.wording import counted

_ALL_WRONG = Verdict(
    kind="all_wrong",
    text="no answer is right in any order, so the orders cannot be compared; look at the answers, "
    "or try other --graders, a higher --max-new-tokens, another --template or --model",
)
_ALL_RIGHT = Verdict(
    kind="all_right",
    text="every answer is right in every order, so the orders cannot be compared; ask harder "
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
        Questions below which no order is shown to beat the ranked one, unless other differences
        are shown: Holm's correction then asks less of the rest.
    needed
        Questions that would show a difference of `effect`; None if that is not known.
    effect
        In outcome units.
    power
        The chance that they would.
    level
        Of the tests.
    alike
        0 if no strategy was ever right, 1 if all always were, otherwise None.
    """

    against: Mapping[str, Mapping[str, PairedComparison]]
    n: int
    fewest: int
    needed: int | None
    effect: float
    power: float
    level: float
    alike: float | None = None

    def over(self, baseline: str) -> dict[str, PairedComparison]:
        """Return strategy -> difference from a baseline."""
        return {
            name: by_baseline[baseline]
            for name, by_baseline in self.against.items()
            if baseline in by_baseline
        }

    @property
    def differs(self) -> bool:
        """Whether any difference from the ranked order is shown."""
        return any(self.better(each) or self.worse(each) for each in self.over(SEQUENTIAL).values())

    @property
    def beats_shuffle(self) -> bool:
        """Whether any order is shown to beat shuffling."""
        return any(map(self.better, self.over(SHUFFLE).values()))

    def better(self, comparison: PairedComparison) -> bool:
        """Whether a gain is shown: by the corrected p-value, and by the interval."""
        return comparison.adjusted <= self.level and comparison.interval[0] > 0

    def worse(self, comparison: PairedComparison) -> bool:
        """Whether a loss is shown, in the same way."""
        return comparison.adjusted <= self.level and comparison.interval[1] < 0


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
    over_ranked = basis.over(SEQUENTIAL)
    if not over_ranked or (basis.n < basis.fewest and not basis.differs):
        return Verdict(kind="too_few", text=_too_few(basis))
    shuffled = over_ranked.pop(SHUFFLE)
    shown = {name: each.difference for name, each in over_ranked.items() if basis.better(each)}
    if basis.better(shuffled) and max(shown.values(), default=0.0) <= shuffled.difference:
        text = _put_best_elsewhere(basis, shuffled, over_ranked)
        return Verdict(kind="put_best_elsewhere", text=text)
    if shown:
        best = max(shown, key=lambda name: shown[name])
        return Verdict(kind="gain", text=_gain(basis, best), strategy=best)
    if basis.worse(shuffled):
        text = _ranked_order_helps(basis, over_ranked)
        return Verdict(kind="ranked_order_helps", text=text)
    text = keep(basis, "here", beats_shuffle=basis.beats_shuffle)
    return Verdict(kind="no_difference", text=text + losses(basis, over_ranked))


def _too_few(basis: VerdictBasis) -> str:
    """Say how many questions there are, and how many it takes."""
    return (
        f"too few questions to tell: {basis.n}, where a verdict takes {basis.fewest}; keep "
        f"the ranked order{_needed(basis)}"
    )


def _gain(basis: VerdictBasis, best: str) -> str:
    """Advise a strategy, with what it gains over both baselines."""
    gained = span(basis.against[best][SEQUENTIAL])
    text = f"use {best}: it gains {gained} over the ranked order"
    over_shuffle = basis.against[best][SHUFFLE]
    if basis.better(over_shuffle):
        return f"{text} and {span(over_shuffle)} over shuffling"
    return f"{text}, though it is not shown to beat shuffling"


def _put_best_elsewhere(
    basis: VerdictBasis, shuffled: PairedComparison, others: Mapping[str, PairedComparison]
) -> str:
    """Advise against the ranked order, and say which strategies do better, if any do."""
    text = f"do not keep the ranked order: it is worse than shuffling by {span(shuffled)}"
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
        but += f" of {listed(unsure)}"
    return (
        f"{text}; of the strategies {listed(best)} {'comes' if len(best) == 1 else 'come'} out "
        f"best ({most:+.{_digits(most)}f} from the ranked order{but}){losses(basis, others)}"
    )


def _ranked_order_helps(basis: VerdictBasis, others: Mapping[str, PairedComparison]) -> str:
    """Advise the ranked order, with what it gains, and say which strategies lose against it."""
    ranked = span(basis.against[SEQUENTIAL][SHUFFLE])
    return (
        f"keep the ranked order: it beats shuffling by {ranked}, and no other order is shown to "
        f"beat it{losses(basis, others)}"
    )


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
        f"{name} loses {span(each, sign=-1)}{where}"
        for name, each in others.items()
        if basis.worse(each)
    ]
    return f"; {', '.join(lost)}" if lost else ""


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


def span(comparison: PairedComparison, *, sign: int = 1) -> str:
    """Return a difference with its interval, with enough decimals that none of them looks 0."""
    lower, upper = sorted(sign * bound for bound in comparison.interval)
    digits = _digits(min(abs(value) for value in (lower, upper, comparison.difference)))
    return f"{sign * comparison.difference:.{digits}f} [{lower:.{digits}f}, {upper:.{digits}f}]"


def _digits(value: float) -> int:
    """Return how many decimals show that a value is not 0: 2 if that will do, 6 at most."""
    return next((digits for digits in range(2, 6) if round(value, digits) > 0), 6)


def listed(parts: Sequence[str]) -> str:
    """Return an enumeration, as ``a, b and c``; empty if there is nothing."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))

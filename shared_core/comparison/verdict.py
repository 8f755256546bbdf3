"""What the figures mean for the user, in words. Pure functions of the figures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from shared_core.comparison import phrases
from shared_core.comparison.basis import VerdictBasis
from shared_core.comparison.figures import SEQUENTIAL, SHUFFLE
from shared_core.comparison.records import Verdict, VerdictKind
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


def setting_verdict(basis: VerdictBasis) -> Verdict:
    """Return what follows for one setting.

    A difference counts as shown if its corrected p-value is at most the level and its interval
    lies on one side of 0. A strategy gains if it is shown to beat the ranked order, and by more
    than shuffling does; otherwise it is the ranked order that is bad. Outcomes that are all
    alike speak of the set-up and not of the order, however many they are. Questions are too few
    only where no difference from the ranked order is shown.
    """
    if basis.alike is not None:
        return _ALL_RIGHT if basis.alike else _ALL_WRONG
    over_ranked = basis.over(SEQUENTIAL)
    told = any(basis.better(each) or basis.worse(each) for each in over_ranked.values())
    if not over_ranked or (basis.n < basis.fewest and not told):
        return Verdict(kind="too_few", text=phrases.too_few(basis))
    shuffled = over_ranked.pop(SHUFFLE)
    shown = {name: each.difference for name, each in over_ranked.items() if basis.better(each)}
    if basis.better(shuffled) and max(shown.values(), default=0.0) <= shuffled.difference:
        text = phrases.put_best_elsewhere(basis, shuffled, over_ranked)
        return Verdict(kind="put_best_elsewhere", text=text)
    if shown:
        best = max(shown, key=lambda name: shown[name])
        return Verdict(kind="gain", text=phrases.gain(basis, best), strategy=best)
    if basis.worse(shuffled):
        text = phrases.ranked_order_helps(basis, over_ranked)
        return Verdict(kind="ranked_order_helps", text=text)
    text = phrases.keep(basis, "here", beats_shuffle=_beats_shuffle(basis))
    return Verdict(kind="no_difference", text=text + phrases.losses(basis, over_ranked))


def overall_verdict(settings: Mapping[str, tuple[Verdict, VerdictBasis]]) -> Verdict:
    """Return what follows from all settings, named as "hybrid, k=10".

    What is advised because of some of them comes with what others are shown to lose by it.
    """
    kind = min((verdict.kind for verdict, _ in settings.values()), key=_FIRST.index)
    named = {name: verdict for name, (verdict, _) in settings.items() if verdict.kind == kind}
    bases = {name: basis for name, (_, basis) in settings.items()}
    if kind == "no_difference" and len(settings) == len(named) > 1:
        # Of the setting that needs the most questions beyond those it has.
        widest = max(bases.values(), key=lambda basis: (basis.needed or 0) - basis.n)
        beaten = any(map(_beats_shuffle, bases.values()))
        where = f"in any of the {len(settings)} settings"
        return Verdict(kind=kind, text=phrases.keep(widest, where, beats_shuffle=beaten))
    said = [f"{verdict.text} ({name})" for name, verdict in named.items()]
    if kind != "gain" and len(said) > 1:
        others = counted(len(said) - 1, "other setting")
        keeps = kind in ("ranked_order_helps", "no_difference")
        said = [said[0], f"keep it in {others} as well" if keeps else f"likewise in {others}"]
    said += _objections(named.values(), bases)
    if rest := len(settings) - len(named):
        said.append(f"nothing of the kind is shown in {counted(rest, 'other setting')}")
    strategy = next(iter(named.values())).strategy
    return Verdict(kind=kind, text="; ".join(said), strategy=strategy)


def _objections(told: Iterable[Verdict], bases: Mapping[str, VerdictBasis]) -> Iterator[str]:
    """Yield what is shown in some setting against what is advised because of others."""
    for kind, strategy in dict.fromkeys((each.kind, each.strategy) for each in told):
        if strategy is not None and (lost := phrases.shown_losses(strategy, bases)):
            yield f"but {strategy} loses {lost}"
        if kind == "put_best_elsewhere" and (lost := phrases.shown_losses(SHUFFLE, bases)):
            yield f"but the ranked order beats shuffling by {lost}"


def _beats_shuffle(basis: VerdictBasis) -> bool:
    return any(map(basis.better, basis.over(SHUFFLE).values()))

"""The verdict on one setting."""

from __future__ import annotations

from shared_core.comparison.records import Verdict
from shared_core.comparison.statistics import SEQUENTIAL, SHUFFLE
from shared_core.comparison.verdict import phrases
from shared_core.comparison.verdict.basis import VerdictBasis

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
    text = phrases.keep(basis, "here", beats_shuffle=basis.beats_shuffle)
    return Verdict(kind="no_difference", text=text + phrases.losses(basis, over_ranked))

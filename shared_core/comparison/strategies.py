"""Arrangement strategies: the orders in which a model is given the passages of a question."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from shared_core.attention import Case, OneRound, TwoRound
from shared_core.checking import check_distinct
from shared_core.comparison.questions import RankedCase
from shared_core.comparison.result import BASELINES, SEQUENTIAL, SHUFFLE
from shared_core.comparison.retrieval import places_of
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.models import Generator, ScoringModel
from shared_core.generation.responses import Request, Response
from shared_core.placement import PLACEMENTS, MaxRelevance, Placement, Sequential, Shuffle
from shared_core.placement.order_gate import CANDIDATES, length_for
from shared_core.placement.scored import distraction_placement
from shared_core.sensitivity.distraction import abstention_request, effect_of
from shared_core.sensitivity.profile import PositionProfile
from shared_core.tokens import estimate_tokens

if TYPE_CHECKING:
    from shared_core.comparison.comparison import Comparison

Order: TypeAlias = tuple[int, ...]
"""Slot -> rank."""

Reading: TypeAlias = Mapping[Request, Response]
"""What the model answered to the requests of `Strategy.reads`."""


@dataclass(frozen=True)
class Strategy:
    """Arranges the passages of each question, by whatever it knows about them.

    One that reads the model by itself, and not by the model's own methods, is a `Generator`, too:
    it is asked in the model's place.
    """

    options: Comparison
    model: Generator

    @property
    def name(self) -> str:
        """Name under which its results are reported."""
        raise NotImplementedError

    def reads(self, case: RankedCase) -> list[Request]:
        """Return the requests that the model must answer before the case can be ordered."""
        return []

    def orders(self, case: RankedCase, read: Reading) -> list[Order]:
        """Return one order or several of the passages, which are ranked best first.

        Raises
        ------
        GenerationError
            If the model does not give an order.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Placed(Strategy):
    """One placement."""

    placement: Placement

    def __post_init__(self) -> None:
        if self.placement.needs_profile:
            _profile(self.options, self.name)
        self.placement(2, self.options.known_profile)

    @property
    def name(self) -> str:
        """Name of the placement."""
        return self.placement.name

    def orders(self, case: RankedCase, read: Reading) -> list[Order]:
        """Return one order."""
        placement = self.placement
        if placement.reads_places:
            placement = placement.of_places(places_of(case.passages))
        profile = self.options.known_profile
        if placement.needs_profile:
            profile = _profile_for(case, placement, _profile(self.options, self.name))
        return [placement(len(case.passages), profile)]


@dataclass(frozen=True)
class Shuffled(Strategy):
    """Random orders, different for each question, so that the draw favours no slot."""

    name = SHUFFLE

    def orders(self, case: RankedCase, read: Reading) -> list[Order]:
        """Return `Comparison.shuffles` orders, which depend only on the question and k."""
        numbers = range(self.options.shuffles)
        seeds = (self._seed(case.question, number) for number in numbers)
        return [Shuffle(seed=seed)(len(case.passages)) for seed in seeds]

    def _seed(self, question: str, number: int) -> int:
        text = json.dumps([self.options.seed, number, question])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@dataclass(frozen=True)
class ByCurve(Strategy):
    """One round: U-shaped by the model's known attention to each position (GoodPositions)."""

    name = "attention"

    def __post_init__(self) -> None:
        _local(self.model, self.name)
        if self.options.known_curve is None:
            raise ValueError(
                f"strategy {self.name!r} needs the model's positional curve (curve=, or --curve); "
                "`posrag attention MODEL` measures one"
            )

    def orders(self, case: RankedCase, read: Reading) -> list[Order]:
        """Return one order."""
        curve, ranking = self.options.known_curve, range(len(case.passages))
        placing = OneRound(placement="attention_u_shape", curve=curve, template=case.template)
        return [placing.order(self.model, _unplaced(case), ranking)]


@dataclass(frozen=True)
class TwoRounds(Strategy):
    """Two rounds: ranked and placed by the attention in the first one (GoodPositions)."""

    name = "two_round"
    _cases: dict[str, RankedCase] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        _local(self.model, self.name)

    def reads(self, case: RankedCase) -> list[Request]:
        """Return one request if there are several passages; its answer is the order found."""
        if len(case.passages) < 2:
            return []
        prompt = f"order by attention: {case.template.render(case.documents, case.question)}"
        self._cases[prompt] = case
        return [(prompt,)]

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Return what the first round places where, as JSON."""
        model = _local(self.model, self.name)
        orders: dict[str, str] = {}
        cases = {prompt: self._cases[prompt] for prompt in prompts}
        for template in {case.template for case in cases.values()}:
            asked = {at: each for at, each in cases.items() if each.template == template}
            found = TwoRound(template=template).first(model, [*map(_unplaced, asked.values())])
            orders |= zip(asked, (json.dumps(placed.order) for placed in found), strict=True)
        return [orders[prompt] for prompt in prompts]

    def orders(self, case: RankedCase, read: Reading) -> list[Order]:
        """Return one order."""
        found = [tuple(json.loads(str(read[request]))) for request in self.reads(case)]
        return found or [tuple(range(len(case.passages)))]


@dataclass(frozen=True)
class DistractionAware(Strategy):
    """Puts the highest utility where the model reads best; utility is relevance less harm.

    Relevance is `RankedCase.relevance`, and harm the distracting effect (lambda = 1): 1 less the
    probability that the model abstains when it is shown the passage alone. A passage that holds
    the answer keeps the model from abstaining as well, and it is not known here which ones do.
    """

    name = "distraction_aware"

    def __post_init__(self) -> None:
        if not isinstance(self.model, ScoringModel):
            raise ValueError(
                f"strategy {self.name!r} reads the probability of an abstention from a local "
                f"model, and {self.model.name!r} is not one"
            )
        _profile(self.options, self.name).accuracy_at(2)

    def reads(self, case: RankedCase) -> list[Request]:
        """Return one request for each passage, if there are several."""
        abstain = self.options.abstain
        prompts = (abstain.render([text], case.question) for text in case.documents)
        requests = [abstention_request(prompt, exact=True) for prompt in prompts]
        return requests if len(requests) > 1 else []

    def orders(self, case: RankedCase, read: Reading) -> list[Order]:
        """Return one order."""
        effects = [effect_of(read[request]) for request in self.reads(case)]
        if not effects:
            return [tuple(range(len(case.passages)))]
        profile = _profile_for(case, MaxRelevance(), _profile(self.options, self.name))
        return [distraction_placement(case.relevance, effects, profile)]


def _unplaced(case: RankedCase) -> Case:
    return Case(question=case.question, documents=case.documents)


def _profile(options: Comparison, strategy: str) -> PositionProfile:
    """Return the profile, or raise ValueError if a strategy needs it and there is none."""
    if options.known_profile is None:
        raise ValueError(
            f"strategy {strategy!r} needs the model's position profile (profile=, or --profile); "
            "`posrag probe` measures one"
        )
    return options.known_profile


def _profile_for(
    case: RankedCase, placement: Placement, profile: PositionProfile
) -> PositionProfile:
    """Return the length by which the gate of a retriever places the same passages."""
    tokens = sum(map(estimate_tokens, case.documents))
    return length_for(profile, placement, len(case.passages), tokens)


def _local(model: Generator, strategy: str) -> HuggingFaceModel:
    """Return the model, or raise ValueError if its attention cannot be read."""
    if isinstance(model, HuggingFaceModel):
        return model
    raise ValueError(
        f"strategy {strategy!r} reads the attention of a local model, and {model.name!r} is not one"
    )


DEFAULTS = (*BASELINES, *(each.name for each in CANDIDATES))
"""The orders between which the order gate chooses, and what they are compared with."""

_OTHERS: dict[str, Callable[[Comparison, Generator], Strategy]] = {
    SHUFFLE: Shuffled,
    "attention": ByCurve,
    "two_round": TwoRounds,
    "distraction_aware": DistractionAware,
}
"""What is no `Placed`, by name; the shuffle of a comparison differs from question to question."""

STRATEGIES = {**PLACEMENTS, **_OTHERS}
"""Name -> the placement, or what makes the strategy."""

AnyStrategy: TypeAlias = str | Placement
"""A name in `STRATEGIES`, or a placement."""


def make_strategies(
    specs: Sequence[AnyStrategy], options: Comparison, model: Generator
) -> tuple[Strategy, ...]:
    """Return the baselines and what is asked for.

    Raises
    ------
    ValueError
        As `by_name`, or if one needs what is not given.
    """
    return tuple(
        Placed(options, model, each)
        if isinstance(each, Placement)
        else _OTHERS[each](options, model)
        for each in by_name(specs).values()
    )


def by_name(specs: Sequence[AnyStrategy]) -> dict[str, AnyStrategy]:
    """Return the baselines, as they are, and the other strategies by name, placements as such.

    Raises
    ------
    ValueError
        If there is no strategy, or a name is unknown or occurs twice.
    """
    known = [_known(spec) for spec in specs]
    names = [each if isinstance(each, str) else each.name for each in known]
    check_distinct("strategies", names)
    baselines: dict[str, AnyStrategy] = {SEQUENTIAL: Sequential(), SHUFFLE: SHUFFLE}
    return {**baselines, **dict(zip(names, known, strict=True)), **baselines}


def _known(spec: AnyStrategy) -> AnyStrategy:
    """Return the placement of a name, if it is one's; it has several, and its own counts."""
    if isinstance(spec, Placement) or (isinstance(spec, str) and spec in _OTHERS):
        return spec
    if spec not in PLACEMENTS:
        raise ValueError(
            f"no strategy {spec!r}; there are {', '.join(STRATEGIES)}, and Placement objects"
        )
    return PLACEMENTS[spec]()

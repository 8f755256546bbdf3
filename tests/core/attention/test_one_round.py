"""One round: the baselines, and placement on a curve by a ranking from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from instruments.cases import shuffled_cases
from shared_core import GenerationError, PositionProfile
from shared_core.attention import Case, OneRound, RankGPT, render_prompt
from shared_core.placement import PLACEMENTS, Placement, Shuffle, resolve_placement
from shared_core.placement.by_attention import ATTENTION_PLACEMENTS
from shared_core.sensitivity import ANSWER
from shared_core.sensitivity.curve import PositionalCurve
from tests.core.attention.readers import reader

CURVE = PositionalCurve(model="some", scores=(3.0, 1.0, 0.5, 1.0, 2.0), n=7)
CASES, _, _ = shuffled_cases(5, k=6, seed=2)
OF_RANKS = [name for name in PLACEMENTS if name not in ("max_relevance", "min_distraction")]


def echo(prompts: Sequence[str]) -> list[str]:
    return [*prompts]


@pytest.mark.parametrize("placement", [*OF_RANKS, Shuffle(seed=3)])
def test_documents_are_placed_by_the_order_they_come_in(placement: Any) -> None:
    """Rank 0 is the first; any model will do."""
    order = resolve_placement(placement)(6)
    found = OneRound(placement=placement).run(echo, CASES)
    for case, each in zip(CASES, found, strict=True):
        assert each.order == order
        assert each.answer == each.first_answer
        assert each.answer == ANSWER.render([case.documents[at] for at in order], case.question)
        assert (each.scores, each.rounds) == ((6.0, 5.0, 4.0, 3.0, 2.0, 1.0), 1)


def test_as_it_stands_it_is_vanilla() -> None:
    """What the model answers to the documents as they come."""
    prompts = [ANSWER.render(case.documents, case.question) for case in CASES]
    assert [each.answer for each in OneRound().run(reader(), CASES)] == reader().generate(prompts)


@pytest.mark.parametrize("placement", ATTENTION_PLACEMENTS)
def test_a_curve_places_a_ranking(placement: str) -> None:
    """By the tokens of each document; the ranking may be that of the order, or RankGPT's."""
    (case, *_), ranking = CASES, [3, 1, 5, 0, 2, 4]
    lengths = render_prompt(reader().encoder, ANSWER, case.documents, case.question).lengths
    place, scores = ATTENTION_PLACEMENTS[placement], CURVE.scores_for(sum(lengths))
    one_round = OneRound(placement=placement, curve=CURVE)
    assert one_round.order(reader(), case, ranking) == place(ranking, scores, lengths)
    [found] = one_round.run(reader(), [case])
    assert found.order == place(range(6), scores, lengths)
    # this reader cannot rank, so that its ranking is the order again
    [ranked] = RankGPT(placement=placement, curve=CURVE).run(reader(), [case])
    assert (ranked.named, ranked.order) == ((), found.order)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"placement": "vibes"}, "unknown placement 'vibes'; known: sequential"),
        ({"placement": "max_relevance"}, "'max_relevance' is made from a position profile"),
        (
            {"placement": "best_slot_first"},
            "'best_slot_first' needs to know .* give a curve, or use TwoRound",
        ),
        ({"placement": "u_shape", "curve": CURVE}, "'u_shape' does not use a curve"),
        ({"curve": CURVE}, "'sequential' does not use a curve; .* one of attention_u_shape"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    """At once, with the way out."""
    with pytest.raises(ValueError, match=message):
        OneRound(**options)


class Odd(Placement):
    """Takes odd numbers of documents alone."""

    name = "odd"

    def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
        if k % 2 == 0:
            raise ValueError(f"odd takes an odd number of documents, got {k}")
        return tuple(range(k))


class ByProfile(Odd):
    """Says that it is made from a profile."""

    name = "by_profile"
    needs_profile = True


def test_a_placement_of_ones_own_fails_in_its_own_words() -> None:
    """Rather than being taken for one that is made from a profile, unless it says so."""
    method = OneRound(placement=Odd())
    [found] = method.run(echo, [Case(question="q?", documents=["a", "b", "c"])])
    assert found.order == (0, 1, 2)
    with pytest.raises(ValueError, match="odd takes an odd number of documents, got 6"):
        method.run(echo, CASES)
    with pytest.raises(ValueError, match="'by_profile' is made from a position profile"):
        OneRound(placement=ByProfile())


def test_a_curve_needs_a_model_whose_tokens_can_be_counted() -> None:
    """Which a function is not."""
    method = OneRound(placement="attention_u_shape", curve=CURVE)
    with pytest.raises(ValueError, match="give a HuggingFaceModel, got 'echo', a CallableModel"):
        method.run(echo, CASES)


def test_a_prompt_beyond_the_context_is_an_error() -> None:
    """Of the model, which says how long it may be."""
    case = Case(question="q?", documents=["amber " * 600])
    with pytest.raises(GenerationError, match="more than the 512 that biased reads"):
        OneRound().run(reader(), [case])

"""One round and two on the readers: what moves, what is asked again, and what comes out."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from instruments.cases import shuffled_cases
from shared_core import GenerationError
from shared_core.attention import Case, OneRound, RankGPT, SelfElicit, TwoRound
from shared_core.attention.prompt import render_prompt
from shared_core.attention.relevance import ESTIMATORS
from shared_core.evaluation import GRADERS
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.placement import PLACEMENTS, Shuffle, resolve_placement
from shared_core.placement.scored import ATTENTION_PLACEMENTS
from shared_core.sensitivity.curve import PositionalCurve
from tests.core.attention.readers import reader
from tests.core.generation.test_models import shout

CURVE = PositionalCurve(model="some", scores=(3.0, 1.0, 0.5, 1.0, 2.0), n=7)
OF_RANKS = [name for name in PLACEMENTS if name not in ("max_relevance", "min_distraction")]
METHODS: dict[str, Any] = {
    "vanilla": OneRound(),
    "two rounds": TwoRound(),
    "icr": TwoRound(estimator="icr", placement="back_first"),
    "self_elicit": SelfElicit(),
    "rankgpt": RankGPT(),
}


def cases(n: int, k: int = 10) -> list[Case]:
    return shuffled_cases(n, k=k, seed=7)[0]


# --- every method ---


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> Any:
    return METHODS[request.param]


def test_batches_do_not_change_the_result(method: Any) -> None:
    """One by one, or padded together; nothing is touched, and progress counts cases."""
    asked, seen = [*cases(12, 5), *cases(8, 2)], []
    before = copy.deepcopy(asked)
    found = method.run(reader(), asked, on_answer=seen.append)
    assert seen == [16, 4]
    assert asked == before
    for together, case in zip(found, asked, strict=True):
        [alone] = method.run(reader(), [case])
        assert (together.order, together.answer) == (alone.order, alone.answer)
        assert together.scores == pytest.approx(alone.scores, abs=1e-5)
        assert sorted(alone.order) == [*range(len(case.documents))]
        assert {type(score) for score in alone.scores} == {float}
        assert alone.rounds > 1 or alone.answer == alone.first_answer
        assert hash(alone)


# --- one round ---


@pytest.mark.parametrize("placement", [*OF_RANKS, Shuffle(seed=3)])
def test_documents_are_placed_by_the_order_they_come_in(placement: Any) -> None:
    """Rank 0 is the first; any model will do, and by default they stay as they come (Vanilla)."""
    order = resolve_placement(placement)(6)
    for case in cases(3, k=6):
        [found] = OneRound(placement=placement).run(shout, [case])
        assert found.order == order
        assert found.answer == found.first_answer
        prompt = ANSWER.render([case.documents[at] for at in order], case.question)
        assert found.answer == prompt.upper()
        assert (found.scores, found.rounds) == ((6.0, 5.0, 4.0, 3.0, 2.0, 1.0), 1)
    assert OneRound().placement == "sequential"


@pytest.mark.parametrize("placement", ATTENTION_PLACEMENTS)
def test_a_curve_places_a_ranking(placement: str) -> None:
    """By the tokens of each document; the ranking may be that of the order, or RankGPT's."""
    [case], ranking = cases(1, k=6), [3, 1, 5, 0, 2, 4]
    lengths = render_prompt(reader().encoder, ANSWER, case.documents, case.question).lengths
    place, scores = ATTENTION_PLACEMENTS[placement], CURVE.scores_for(sum(lengths))
    one_round = OneRound(placement=placement, curve=CURVE)
    assert one_round.order(reader(), case, ranking) == place(ranking, scores, lengths)
    [found] = one_round.run(reader(), [case])
    assert found.order == place(range(6), scores, lengths)
    # this reader cannot rank, so that its ranking is the order again
    [ranked] = RankGPT(placement=placement, curve=CURVE).run(reader(), [case])
    assert ranked.order == found.order


def test_what_one_round_cannot_do_is_said_in_one_line() -> None:
    """Only a local model's tokens are counted, and it reads so many."""
    with pytest.raises(ValueError, match="give a HuggingFaceModel, got 'shout', a CallableModel"):
        OneRound(placement="attention_u_shape", curve=CURVE).run(shout, cases(1))
    with pytest.raises(GenerationError, match="more than the 512 that biased reads"):
        OneRound().run(reader(), [Case(question="q?", documents=["amber " * 600])])


# --- two rounds ---


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("placement", [*ATTENTION_PLACEMENTS, "back_first"])
def test_both_answers_are_the_models_own(estimator: str, placement: str) -> None:
    """The first to the documents as they came, the final one, if asked, to them as placed."""
    asked = [*cases(5), *cases(1, k=1)]
    found = TwoRound(estimator=estimator, placement=placement).run(reader(), asked)
    for case, placed in zip(asked, found, strict=True):
        first, final = (
            ANSWER.render([case.documents[at] for at in order], case.question)
            for order in (range(len(case.documents)), placed.order)
        )
        assert [placed.first_answer, placed.answer] == [
            reader().generate([prompt])[0] for prompt in (first, final)
        ]
        assert placed.rounds == (1 if list(placed.order) == sorted(placed.order) else 2)
        if placement == "back_first":
            scores = [placed.scores[document] for document in placed.order]
            assert scores == sorted(scores)


def test_calibrated_query_attention_finds_the_gold_document() -> None:
    """Far more often than chance, one of ten; and EM rises for the biased reader."""
    asked, answers, gold = shuffled_cases(60, k=10, seed=7)
    found = TwoRound(estimator="icr").run(reader(), asked)
    hits = [int(np.argmax(each.scores)) == at for each, at in zip(found, gold, strict=True)]
    assert np.mean(hits) > 0.25
    grade = GRADERS["exact"]
    first = [grade(e.first_answer, a) for e, a in zip(found, answers, strict=True)]
    final = [grade(e.answer, a) for e, a in zip(found, answers, strict=True)]
    assert np.mean(final) > np.mean(first) + 0.1


def test_a_question_whose_tokens_are_read_must_be_after_the_documents() -> None:
    """Before them they see none of them, and every document would score 0."""
    template = PromptTemplate("Question: {question}\n\n{context}\n\nAnswer:")
    message = "estimator 'icr' .* put {question} after {context}, or use another estimator"
    with pytest.raises(ValueError, match=message):
        TwoRound(estimator="icr", template=template)
    for estimator in ESTIMATORS:  # a blank one has no tokens to read, but at the end of the prompt
        put = {} if estimator == "icr" else {"template": template}
        method = TwoRound(estimator=estimator, placement="back_first", **put)
        (found,) = method.run(reader(), [Case(question=" ", documents=["amber", "blue", "cat"])])
        assert len({*found.scores}) == 3


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        (TwoRound, {"estimator": "vibes"}, "estimator must be one of answer, .*got 'vibes'"),
        (OneRound, {"placement": "vibes"}, "unknown placement 'vibes'; known: sequential"),
        (OneRound, {"placement": "attention_u_shape"}, "needs to know .* give a curve, or use Two"),
        (OneRound, {"placement": "u_shape", "curve": CURVE}, "'u_shape' does not use a curve"),
        (SelfElicit, {"alpha": 0}, r"alpha must be in \(0, 1\], got 0"),
    ],
)
def test_bad_options_are_refused(method: Any, options: dict[str, Any], message: str) -> None:
    """At once, with the way out."""
    with pytest.raises(ValueError, match=message):
        method(**options)

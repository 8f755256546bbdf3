"""What holds of every method that answers cases, on a reader."""

from __future__ import annotations

import copy

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from instruments.cases import shuffled_cases
from shared_core.attention import AnsweringMethod, Case, OneRound, RankGPT, SelfElicit, TwoRound
from shared_core.sensitivity import ANSWER
from tests.core.attention.readers import reader

METHODS: dict[str, AnsweringMethod] = {
    "vanilla": OneRound(),
    "two rounds": TwoRound(),
    "icr": TwoRound(estimator="icr", placement="relevant_last"),
    "self_elicit": SelfElicit(),
    "rankgpt": RankGPT(),
}


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> AnsweringMethod:
    return METHODS[request.param]


def cases(n: int, k: int = 3) -> list[Case]:
    asked, _, _ = shuffled_cases(n, k=k, seed=7)
    return asked


def test_batches_do_not_change_the_result(method: AnsweringMethod) -> None:
    """One by one, or padded together."""
    asked = [*cases(3, 5), *cases(3, 2)]
    for together, case in zip(method.run(reader(), asked), asked, strict=True):
        [alone] = method.run(reader(), [case])
        assert (together.order, together.answer) == (alone.order, alone.answer)
        assert together.scores == pytest.approx(alone.scores, abs=1e-5)


def test_the_result_can_be_relied_on(method: AnsweringMethod) -> None:
    """An order of all documents, a float for each, and the same once more; nothing is touched."""
    asked = cases(4)
    before = copy.deepcopy(asked)
    found = method.run(reader(), asked)
    assert list(found) == list(method.run(reader(), asked))
    assert asked == before
    for each in found:
        assert sorted(each.order) == [0, 1, 2]
        assert [type(score) for score in each.scores] == [float] * 3
        assert hash(each)
        assert (each.rounds > 1) or each.answer == each.first_answer


def test_progress_adds_up(method: AnsweringMethod) -> None:
    """In cases, not in prompts."""
    seen: list[int] = []
    method.run(reader(), cases(20), on_answer=seen.append)
    assert seen == [16, 4]
    assert not method.run(reader(), [])


def test_without_documents_the_question_is_asked_all_the_same(method: AnsweringMethod) -> None:
    """In one round."""
    [case] = cases(1)
    [found] = method.run(reader(), [Case(question=case.question, documents=[])])
    assert (found.order, found.scores, found.rounds) == ((), (), 1)
    assert [found.answer] == reader().generate([ANSWER.render([], case.question)])


def test_one_document_stays_where_it_is(method: AnsweringMethod) -> None:
    """Its evidence may be marked all the same."""
    [case] = cases(1, k=1)
    [found] = method.run(reader(), [case])
    assert found.order == (0,)
    assert found.rounds == (2 if isinstance(method, SelfElicit) else 1)
    assert [found.first_answer] == reader().generate([ANSWER.render(case.documents, case.question)])

"""RankGPT: what is asked of a model that ranks, and what becomes of one that does not."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import GenerationError
from shared_core.attention import Case, OneRound, RankGPT, rankgpt_prompt
from shared_core.generation import CallableModel
from shared_core.sensitivity import ANSWER, PromptTemplate


class Ranker:
    """Ranks passages that are numbers, highest first, and answers with what it is asked."""

    name = "ranker"
    batch_size = 4

    def __init__(self, ranking: Callable[[list[int]], str] | None = None) -> None:
        self.ranking = ranking or self.by_number
        self.asked: list[list[int]] = []

    @staticmethod
    def by_number(passages: list[int]) -> str:
        best = sorted(range(len(passages)), key=lambda at: -passages[at])
        return " > ".join(f"[{at + 1}]" for at in best)

    def generate(self, prompts: Sequence[str]) -> list[str]:
        return [self.answer(prompt) for prompt in prompts]

    def answer(self, prompt: str) -> str:
        if not prompt.startswith("This is RankGPT"):
            return prompt
        passages = [int(each) for each in re.findall(r"^\[\d+\] (\d+)$", prompt, re.MULTILINE)]
        self.asked.append(passages)
        return self.ranking(passages)


def case(*numbers: int) -> Case:
    return Case(question="which?", documents=[str(number) for number in numbers])


def test_it_asks_for_a_ranking_and_answers_with_the_best_one_last() -> None:
    """The prompt is the paper's; the answer is to the documents as placed."""
    prompts: list[str] = []

    def model(batch: Sequence[str]) -> list[str]:
        prompts.extend(batch)
        return ["[2] > [3] > [1]" if each.startswith("This is") else "final" for each in batch]

    asked = Case(question="which?", documents=["a", "b", "c"])
    [found] = RankGPT().run(model, [asked])
    assert prompts == [
        rankgpt_prompt("which?", ["a", "b", "c"]),
        ANSWER.render(["a", "c", "b"], "which?"),
    ]
    assert (found.answer, found.first_answer) == ("final", "[2] > [3] > [1]")
    assert (found.order, found.named) == ((0, 2, 1), (1, 2, 0))
    assert found.scores == (1.0, 3.0, 2.0)
    assert (found.rounds, found.ignored) == (2, 0)


@pytest.mark.parametrize(
    ("placement", "order"),
    [("back_first", "0123"), ("front_first", "3210"), ("u_shape", "3102")],
)
def test_any_placement_takes_the_ranking(placement: str, order: str) -> None:
    """The paper's Default and its reverse (Table 3), and others of the package."""
    template = PromptTemplate("{question}{context}", separator=",")
    [found] = RankGPT(placement=placement, template=template).run(Ranker(), [case(1, 0, 3, 2)])
    assert found.answer == "which?" + ",".join(order)


@pytest.mark.parametrize(
    ("text", "named", "ignored", "order"),
    [
        ("[3] > [1] > [3] > [9]", (2, 0), 2, (2, 0, 1)),
        ("[2] > [1] > [3]", (1, 0, 2), 0, (1, 0, 2)),
        ("I cannot tell.", (), 0, (0, 1, 2)),
        ("[0] > [4]", (), 2, (0, 1, 2)),
        ("", (), 0, (0, 1, 2)),
    ],
)
def test_what_is_missing_repeated_or_made_up_is_said(
    text: str, named: tuple[int, ...], ignored: int, order: tuple[int, ...]
) -> None:
    """Documents that are not named keep their order behind the others."""
    ranker = Ranker(lambda passages: text)
    [found] = RankGPT(placement="sequential").run(ranker, [case(5, 6, 7)])
    assert (found.named, found.ignored, found.order) == (named, ignored, order)
    assert found.first_answer == text


@pytest.mark.parametrize("n", [2, 3, 19, 20, 21, 25, 29, 30, 31, 100])
def test_a_long_list_is_ranked_by_windows_from_the_back(n: int) -> None:
    """Of 20, each 10 further on; whatever the number, the best ten of all come out first."""
    ranker = Ranker()
    [found] = RankGPT(placement="sequential").run(ranker, [case(*range(n))])
    assert found.order[:10] == tuple(range(n - 1, max(-1, n - 11), -1))
    assert sorted(found.order) == list(range(n))
    assert sorted(found.named) == list(range(n))
    assert ranker.asked[0] == [*range(max(0, n - 20), n)]
    assert ranker.asked[-1][0] == 0
    assert [len(each) for each in ranker.asked[:-1]] == [20] * (found.rounds - 2)
    assert found.first_answer.count("\n") == found.rounds - 2


@given(st.integers(0, 40), st.integers(2, 12), st.data())
def test_windows_of_any_size_leave_nothing_out(n: int, window: int, data: st.DataObject) -> None:
    """Each document is asked for; as many of the best come first as one window hands on."""
    step = data.draw(st.integers(1, window - 1))
    ranker = Ranker()
    method = RankGPT(placement="sequential", window=window, step=step)
    [found] = method.run(ranker, [case(*range(n))])
    assert {each for asked in ranker.asked for each in asked} == {*range(n if n > 1 else 0)}
    kept = min(n, window - step)
    assert found.order[:kept] == (tuple(range(n))[::-1][:kept] if n > 1 else tuple(range(n)))


def test_cases_of_different_lengths_are_ranked_side_by_side() -> None:
    """And get what they get alone; progress counts cases, not prompts."""
    cases = [case(*range(n)) for n in (3, 0, 45, 1, 21, 20)]
    seen: list[int] = []
    together = RankGPT().run(Ranker(), cases, on_answer=seen.append)
    assert together == [RankGPT().run(Ranker(), [each])[0] for each in cases]
    assert sum(seen) == len(cases)
    assert [each.rounds for each in together] == [2, 1, 5, 1, 3, 2]


@pytest.mark.parametrize("n", [0, 1])
def test_where_there_is_nothing_to_rank_no_ranking_is_asked_for(n: int) -> None:
    """One round."""
    ranker = Ranker()
    [found] = RankGPT().run(ranker, [case(*range(n))])
    assert not ranker.asked
    assert (found.order, found.rounds) == (tuple(range(n)), 1)
    assert found.answer == found.first_answer == ANSWER.render(["0"][:n], "which?")


def test_an_empty_answer_is_an_answer() -> None:
    """To the ranking and to the question."""
    [found] = RankGPT().run(
        CallableModel(lambda prompts: [""] * len(prompts), name="mute"), [case(1, 2)]
    )
    assert (found.answer, found.first_answer, found.named) == ("", "", ())


@pytest.mark.parametrize("method", [RankGPT(), OneRound()])
def test_a_model_that_fails_is_named(method: Any) -> None:
    """With what it did."""
    few = CallableModel(lambda prompts: [], name="curt")
    with pytest.raises(GenerationError, match="'curt' returned 0 answers"):
        method.run(few, [case(1, 2)])
    with pytest.raises(TypeError, match="int"):
        method.run(3, [case(1, 2)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 1}, "window must be an integer >= 2, got 1"),
        ({"step": 0}, "step must be an integer >= 1, got 0"),
        ({"window": 5, "step": 5}, "below the window of 5, got 5"),
        ({"placement": "vibes"}, "unknown placement 'vibes'"),
        ({"placement": "attention_u_shape"}, "'attention_u_shape' .* give a curve, or use TwoRo"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    """At once."""
    with pytest.raises(ValueError, match=message):
        RankGPT(**options)

"""RankGPT: what is asked of a model that ranks, and how its answers are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from shared_core import GenerationError
from shared_core.attention import Case, OneRound, RankGPT
from shared_core.attention.rankgpt import rankgpt_prompt
from shared_core.generation import CallableModel
from shared_core.sensitivity import PromptTemplate


class Ranker:
    """Ranks passages that are numbers, highest first, and answers with what it is asked."""

    name = "ranker"
    batch_size = 4

    def __init__(self, ranking: Callable[[list[int]], str] | None = None) -> None:
        self.ranking = ranking or self.by_number

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
        return self.ranking(passages)


def case(*numbers: int) -> Case:
    return Case(question="which?", documents=[str(number) for number in numbers])


def test_rankgpt_prompt_word_for_word() -> None:
    """Appendix F, with the sign turned to where the best comes first."""
    assert rankgpt_prompt("Which {context}?", ["Rome is old.", "[1] Paris\nParis"]) == (
        "This is RankGPT, an intelligent assistant that can rank passages based on their relevancy "
        "to the query.\n"
        "\n"
        "The following are 2 passages, each indicated by number identifier []. I can rank them "
        "based on their relevance to query: Which {context}?\n"
        "\n"
        "[1] Rome is old.\n"
        "\n"
        "[2] [1] Paris\nParis\n"
        "\n"
        "The search query is: Which {context}?\n"
        "\n"
        "I will rank the 2 passages above based on their relevance to the search query. The "
        "passages will be listed in descending order using identifiers, and the most relevant "
        "passages should be listed first, and the output format should be [] > [] > etc, e.g., "
        "[1] > [2] > etc.\n"
        "\n"
        "The ranking results of the 2 passages (only identifiers) is:"
    )


@pytest.mark.parametrize(
    ("answer", "ranking"),
    [
        ("[2] > [1] > [4] > [3]", (1, 0, 3, 2)),
        ("[2] < [1] < [4] < [3]", (1, 0, 3, 2)),
        ("The 4 passages in order are:\n[4], [ 2 ], then [1]. [3] is of no use", (3, 1, 0, 2)),
        ("3 > 1 >2", (2, 0, 1, 3)),
        ("I cannot rank these 4 passages.", (0, 1, 2, 3)),
        ("The format is [] > [], so 2 > 1", (1, 0, 2, 3)),
        ("<think>[1] is off, [3] good</think>[3] > [1] > [2]", (2, 0, 1, 3)),
        ("Not [1] > [2] > [3], but [3] > [2] > [1]", (2, 1, 0, 3)),
        ("As in [1] > [2]: [4] > [3] > [2]. So [2] > [1]", (3, 2, 1, 0)),
        ("[4], [3], [2] as [1] is off", (3, 2, 1, 0)),
        ("[4, 3] > [2] > [1]", (3, 2, 1, 0)),
        ("**[4]** >> [3] > [2]", (3, 2, 1, 0)),
        ("[4] (the city) > [3] > [2]", (3, 2, 1, 0)),
        ("Of [1], [2]\n\n**[4] > [3]**", (3, 2, 0, 1)),
        ("[3] > [3] > [9] > [0]", (2, 0, 1, 3)),
    ],
)  # fmt: skip
def test_answers_are_read_as_permutations(answer: str, ranking: tuple[int, ...]) -> None:
    """Missing, repeated and made-up identifiers; other signs, words between, no brackets.

    And thoughts before the ranking, or words behind it.
    """
    [found] = RankGPT(placement="sequential").run(Ranker(lambda _: answer), [case(*range(4))])
    assert found.order == ranking


def test_it_asks_for_a_ranking_and_answers_with_the_best_one_last() -> None:
    """The prompt is the paper's; the answer is to the documents as placed."""
    prompts: list[str] = []

    def model(batch: Sequence[str]) -> list[str]:
        prompts.extend(batch)
        return ["[2] > [3] > [1]" if each.startswith("This is") else "final" for each in batch]

    asked = Case(question="which?", documents=["a", "b", "c"])
    template = PromptTemplate("{question}{context}", separator=",")
    [found] = RankGPT(template=template).run(model, [asked])
    assert prompts == [rankgpt_prompt("which?", ["a", "b", "c"]), "which?a,c,b"]
    assert (found.answer, found.first_answer) == ("final", "[2] > [3] > [1]")
    assert (found.order, found.scores) == ((0, 2, 1), (1.0, 3.0, 2.0))
    assert found.rounds == 2


def test_cases_of_different_lengths_are_ranked_side_by_side() -> None:
    """And get what they get alone; progress counts cases, not prompts."""
    cases = [case(*range(n)) for n in (3, 0, 45, 1, 21, 20)]
    seen: list[int] = []
    together = RankGPT().run(Ranker(), cases, on_answer=seen.append)
    assert together == [RankGPT().run(Ranker(), [each])[0] for each in cases]
    assert sum(seen) == len(cases)
    assert together[2].order == tuple(range(45))  # the best, which has the highest number, last
    assert [each.rounds for each in together] == [2, 1, 2, 1, 2, 2]


@pytest.mark.parametrize("method", [RankGPT(), OneRound()])
def test_a_model_that_fails_is_named(method: Any) -> None:
    """With what it did."""
    few = CallableModel(lambda prompts: [], name="curt")
    with pytest.raises(GenerationError, match="'curt' returned 0 answers"):
        method.run(few, [case(1, 2)])
    with pytest.raises(TypeError, match="int"):
        method.run(3, [case(1, 2)])

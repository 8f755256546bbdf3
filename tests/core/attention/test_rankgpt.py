"""RankGPT: what is asked of a model that ranks, and how its answers are read."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from shared_core.attention import Case, RankGPT
from shared_core.attention.rankgpt import rankgpt_prompt
from shared_core.sensitivity import PromptTemplate


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
        ("I cannot rank these 4 passages.", (0, 1, 2, 3)),
        ("The format is [] > [], so 2 > 1", (1, 0, 2, 3)),
        ("<think>[1] is off, [3] good</think>[3] > [1] > [2]", (2, 0, 1, 3)),
        ("Not [1] > [2] > [3], but [3] > [2] > [1]", (2, 1, 0, 3)),
        ("As in [1] > [2]: [4] > [3] > [2]. So [2] > [1]", (3, 2, 1, 0)),
        ("**[4, 3]** >> [2] > [1]", (3, 2, 1, 0)),
        ("[4] (the city) > [3] > [2]", (3, 2, 1, 0)),
        ("Of [1], [2]\n\n**[4] > [3]**", (3, 2, 0, 1)),
        ("[3] > [3] > [9] > [0]", (2, 0, 1, 3)),
    ],
)  # fmt: skip
def test_answers_are_read_as_permutations(answer: str, ranking: tuple[int, ...]) -> None:
    """Missing, repeated and made-up identifiers; other signs, words between, no brackets.

    And thoughts before the ranking, or words behind it.
    """
    [found] = RankGPT(placement="sequential").run(
        lambda prompts: [answer] * len(prompts), [Case(question="which?", documents=[*"abcd"])]
    )
    assert found.order == ranking


def test_it_asks_for_a_ranking_and_answers_with_the_best_one_last() -> None:
    """The prompt is the paper's; the answer is to the documents as placed, each case by its own."""
    prompts: list[str] = []
    rankings = {rankgpt_prompt("which?", [*"abc"]): "[2] > [3] > [1]"}
    rankings[rankgpt_prompt("who?", [*"xy"])] = "[1] > [2]"

    def model(batch: Sequence[str]) -> list[str]:
        prompts.extend(batch)
        return [rankings.get(each, "final") for each in batch]

    cases = [Case(question="which?", documents=[*"abc"]), Case(question="who?", documents=[*"xy"])]
    cases.append(Case(question="what?", documents=["alone"]))
    template = PromptTemplate("{question}{context}", separator=",")
    found = RankGPT(template=template).run(model, cases)
    assert sorted(prompts) == sorted([*rankings, "which?a,c,b", "who?y,x", "what?alone"])
    assert (found[0].answer, found[0].first_answer) == ("final", "[2] > [3] > [1]")
    assert (found[0].order, found[0].scores) == ((0, 2, 1), (1.0, 3.0, 2.0))
    assert [each.rounds for each in found] == [2, 2, 1]

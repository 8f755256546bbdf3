"""RankGPT's prompt, and what models answer to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.attention.listwise import parse_permutation, rankgpt_prompt


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
        ("[3]>[1]", (2, 0, 1, 3)),
        ("The 4 passages in order are:\n[4], [ 2 ], then [1]. [3] is of no use", (3, 1, 0, 2)),
        ("[2] > [2] > [1] > [2]", (1, 0, 2, 3)),
        ("[0] > [7] > [3] > [-1] > [1]", (2, 0, 1, 3)),
        (f"[{'9' * 5000}] > [4]", (3, 0, 1, 2)),
        ("[3, 1; 2]", (2, 0, 1, 3)),
        ("3 > 1 >2", (2, 0, 1, 3)),
        ("Of 4: 3 < 1", (2, 0, 1, 3)),
        ("I cannot rank these 4 passages.", (0, 1, 2, 3)),
        ("The format is [] > [], so 2 > 1", (1, 0, 2, 3)),
        ("", (0, 1, 2, 3)),
        ("\u0663 > \u0662", (0, 1, 2, 3)),
        ("<think>[1] is off, [3] good</think>[3] > [1] > [2]", (2, 0, 1, 3)),
        ("<think>[1], [2]: no</think>[4] > [0] > [-1] > [2]", (3, 1, 0, 2)),
        ("Not [1] > [2] > [3], but [3] > [2] > [1]", (2, 1, 0, 3)),
        ("As in [1] > [2]: [4] > [3] > [2]. So [2] > [1]", (3, 2, 1, 0)),
        ("[1] is of no use. [4] > [3], then [2]", (3, 2, 1, 0)),
        ("[4], [3], [2] as [1] is off", (3, 2, 1, 0)),
        ("[4, 3] > [2] > [1]", (3, 2, 1, 0)),
        ("[4], [3] > [2] > [1]", (3, 2, 1, 0)),
        ("[4] = [3] > [2] > [1]", (3, 2, 1, 0)),
        ("**[4]** >> [3] > [2]", (3, 2, 1, 0)),
        ("[4] (the city) > [3] > [2]", (3, 2, 1, 0)),
        ("Of [1], [2]\n\n**[4] > [3]**", (3, 2, 0, 1)),
    ],
)  # fmt: skip
def test_answers_are_read_as_permutations(answer: str, ranking: tuple[int, ...]) -> None:
    """Missing, repeated and made-up identifiers; other signs, words between, no brackets.

    And thoughts before the ranking, or words behind it.
    """
    assert parse_permutation(answer, 4) == ranking


@given(st.text(alphabet="[]0123456789 ><,a\n", max_size=40), st.integers(0, 15))
def test_any_answer_gives_a_permutation(answer: str, n: int) -> None:
    """Of exactly the passages there are."""
    assert sorted(parse_permutation(answer, n)) == list(range(n))


@given(st.integers(0, 12).flatmap(lambda n: st.permutations(range(n))))
def test_a_proper_answer_is_taken_at_its_word(ranking: list[int]) -> None:
    """Identifiers count from 1, ranks from 0."""
    answer = " > ".join(f"[{passage + 1}]" for passage in ranking)
    assert parse_permutation(answer, len(ranking)) == tuple(ranking)


def test_there_are_no_fewer_than_no_passages() -> None:
    """By name."""
    with pytest.raises(ValueError, match="n must be an integer >= 0, got -1"):
        parse_permutation("[1]", -1)

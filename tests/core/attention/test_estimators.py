"""Relevance of documents: each estimator by hand, and what models answer to RankGPT's prompt."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.attention.estimators import (
    ESTIMATORS,
    AnswerTokens,
    CalibratedQuery,
    Calibration,
    FirstToken,
    SelfElicit,
    mark_spans,
    parse_permutation,
    rankgpt_prompt,
    ranking_of,
    sentence_spans,
)

SCORES = [9.0, 1.0, 2.0, 3.0, 4.0, 9.0, 0.5, 1.5]
SPANS = [(1, 2), (2, 5), (6, 8)]


def test_each_estimator_says_what_it_reads() -> None:
    """GoodPositions, section 5.1: by name, rows, layers, and whether an empty question is asked."""
    assert {
        name: (each.rows, each.layers, each.calibrated) for name, each in ESTIMATORS.items()
    } == {
        "answer": ("answer", "upper", False),
        "attention_sorting": ("first", "all", False),
        "icr": ("query", "all", True),
    }
    assert all(each.__doc__ for each in ESTIMATORS.values())
    assert (SelfElicit.rows, SelfElicit.layers, SelfElicit().alpha) == ("first", "upper", 0.5)


@pytest.mark.parametrize("estimator", [AnswerTokens(), FirstToken()])
def test_means_over_the_tokens_of_each_document(estimator: AnswerTokens | FirstToken) -> None:
    """Eq. 2."""
    assert estimator(SCORES, SPANS).tolist() == [1.0, 3.0, 1.0]


def test_icr_sums_what_the_question_adds() -> None:
    """Token by token, over documents that stand elsewhere in the prompt without a question."""
    calibration = Calibration(
        token_scores=[0.5, 1.0, 1.0, 1.0, 0.0, 2.0], spans=[(0, 1), (1, 4), (4, 6)]
    )
    found = CalibratedQuery()(SCORES, SPANS, calibration)
    assert found.tolist() == [0.5, 6.0, 0.0]  # 1-.5; 2-1 + 3-1 + 4-1; .5-0 + 1.5-2


def test_icr_drops_tokens_far_below_the_rest_of_their_document() -> None:
    """Nine tokens of 1 and one of -9: mean 0, deviation 3, so -9 goes; -5.9 stays, as does 11."""
    empty = Calibration(token_scores=np.zeros(10), spans=[(0, 10)])

    def score(last: float) -> float:
        return float(CalibratedQuery()([1.0] * 9 + [last], [(0, 10)], empty)[0])

    assert score(-9) == 9
    assert score(11) == 20
    few = Calibration(token_scores=np.zeros(4), spans=[(0, 4)])
    assert CalibratedQuery()([1.0, 1.0, 1.0, -5.9], [(0, 4)], few)[0] == pytest.approx(-2.9)


def test_icr_keeps_tokens_that_do_not_deviate_at_all() -> None:
    """Equal scores, or a single token: nothing is below."""
    empty = Calibration(token_scores=np.zeros(5), spans=[(0, 4), (4, 5)])
    found = CalibratedQuery()([0.1] * 5, [(0, 4), (4, 5)], empty)
    assert found == pytest.approx([0.4, 0.1])


@given(st.lists(st.integers(0, 5).map(float), max_size=12))
def test_a_ranking_is_stable(scores: list[float]) -> None:
    """Highest first; equal ones by input index; plain ints."""
    ranking = ranking_of(scores)
    assert list(ranking) == sorted(range(len(scores)), key=lambda at: (-scores[at], at))
    assert {type(document) for document in ranking} <= {int}


def test_evidence_is_every_sentence_of_at_least_half_the_highest_mean() -> None:
    """Means 1, 3, 1 and 1.5: the threshold itself is in; with alpha 1 only the highest is."""
    spans = [*SPANS, (2, 2), (7, 8)]
    assert SelfElicit()(SCORES, spans) == (1, 4)
    assert SelfElicit(alpha=1.0)(SCORES, spans) == (1,)
    assert SelfElicit(alpha=1 / 3)(SCORES, spans) == (0, 1, 2, 4)
    assert SelfElicit()(SCORES, []) == ()
    assert SelfElicit()(SCORES, [(3, 3)]) == ()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Rome is old. Paris too! Why? ", ["Rome is old.", "Paris too!", "Why?"]),
        ('He said "Go." Then left', ['He said "Go."', "Then left"]),
        ("Pi is 3.14 (about). Or...\n more", ["Pi is 3.14 (about).", "Or...", "more"]),
        ("東京。大阪\uff01 Kyoto", ["東京。", "大阪\uff01", "Kyoto"]),
        ("Title\r\n\r\n- one\n- two", ["Title", "- one", "- two"]),
        ("...", ["..."]),
        ("", []),
        (" \n\n ", []),
    ],
)  # fmt: skip
def test_sentences(text: str, sentences: list[str]) -> None:
    """At stops that space follows, CJK stops and line breaks."""
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


@given(st.text(alphabet="a .!?\"')\n。」\u2029", max_size=30))
def test_sentences_leave_out_nothing_but_space(text: str) -> None:
    """In order and apart; none blank or with space at its ends."""
    spans = sentence_spans(text)
    parts = [text[start:end] for start, end in spans]
    assert "".join("".join(parts).split()) == "".join(text.split())
    assert all(part and part == part.strip() for part in parts)
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_a_long_row_of_stops_does_not_take_for_ever() -> None:
    """Tables of contents have them; tried at every stop it would take minutes."""
    assert sentence_spans("." * 300_000 + "a") == [(0, 300_001)]


def test_evidence_is_marked_in_the_text() -> None:
    """Nothing else changes; the marks can be others."""
    text = "Rome is old. Paris too! Why?"
    spans = sentence_spans(text)
    assert mark_spans(text, spans[1:2]) == "Rome is old. **Paris too!** Why?"
    marked = mark_spans(text, [spans[0], spans[2]], marks=("<a>", "</a>"))
    assert marked == "<a>Rome is old.</a> Paris too! <a>Why?</a>"
    assert mark_spans(text, []) == text
    assert mark_spans("ab", [(0, 1), (1, 2)]) == "**a****b**"


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
    ],
)  # fmt: skip
def test_answers_are_read_as_permutations(answer: str, ranking: tuple[int, ...]) -> None:
    """Missing, repeated and made-up identifiers; other signs, words between, no brackets."""
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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CalibratedQuery()(SCORES, SPANS), "give as calibration .* that asks 'N/A'"),
        (
            lambda: AnswerTokens()(SCORES, SPANS, Calibration(token_scores=SCORES, spans=SPANS)),
            "AnswerTokens is not calibrated: leave calibration out",
        ),
        (
            lambda: CalibratedQuery()(
                SCORES, SPANS, Calibration(token_scores=SCORES, spans=SPANS[:2])
            ),
            r"of documents of \[1, 3\] tokens, these have \[1, 3, 2\]; render the same",
        ),
        (lambda: FirstToken()(SCORES, [(3, 3)]), r"span 0 is \[3, 3\), which is empty"),
        (lambda: FirstToken()([math.nan], [(0, 1)]), "must be finite, got nan"),
        (lambda: ranking_of([1.0, math.nan]), "must be finite, got nan at position 1"),
        (lambda: SelfElicit(alpha=0), r"alpha must be in \(0, 1\], got 0"),
        (lambda: SelfElicit(alpha=1.5), "alpha .*got 1.5"),
        (lambda: SelfElicit()(SCORES, [(0, 9)]), r"\[0, 9\), .* within the 8 tokens"),
        (lambda: mark_spans("abc", [(1, 2), (0, 1)]), r"ascend .*got \[0, 1\) after 2"),
        (lambda: mark_spans("abc", [(1, 4)]), r"the 3 characters, got \[1, 4\)"),
        (lambda: parse_permutation("[1]", -1), "n must be >= 0, got -1"),
    ],
)
def test_bad_input_is_refused(call: Callable[[], object], message: str) -> None:
    """The message names the value and the way out."""
    with pytest.raises(ValueError, match=message):
        call()

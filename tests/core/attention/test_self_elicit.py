"""SelfElicit on the readers: which sentences are evidence, and what is asked the second time."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("transformers")

from instruments.cases import shuffled_cases
from shared_core.attention import Case, SelfElicit
from shared_core.attention.prompt import render_prompt
from shared_core.attention.reading import answer_with_attention
from shared_core.attention.self_elicit import READ, sentence_spans
from shared_core.sensitivity import PromptTemplate
from tests.core.attention.readers import reader
from tests.core.attention.test_relevance import SCORES, SPANS

NOTE = "<start_important> and <end_important> mark the important evidence in the context.\n\n"


def test_evidence_is_every_sentence_of_at_least_half_the_highest_mean() -> None:
    """Means 1, 3, 1 and 1.5: the threshold itself is in; with alpha 1 only the highest is."""
    spans = [*SPANS, (2, 2), (7, 8)]
    assert SelfElicit().evidence(SCORES, spans) == (1, 4)
    assert SelfElicit(alpha=1.0).evidence(SCORES, spans) == (1,)
    assert SelfElicit(alpha=1 / 3).evidence(SCORES, spans) == (0, 1, 2, 4)
    assert SelfElicit().evidence(SCORES, []) == ()
    assert SelfElicit().evidence(SCORES, [(3, 3)]) == ()


def cases(n: int, k: int = 4) -> list[Case]:
    """Make cases whose documents have several sentences."""
    asked, _, _ = shuffled_cases(n, k=2 * k, seed=3)
    return [
        Case(
            question=case.question,
            documents=[
                f"{one} {other}" for one, other in zip(*[iter(case.documents)] * 2, strict=True)
            ],
        )
        for case in asked
    ]


def test_evidence_is_what_the_first_token_attends_to_and_is_marked_in_the_second_prompt() -> None:
    """Sentence by sentence, by their means; the note is in front, and documents stay in order."""
    template = PromptTemplate("{context}\nQ: {question}\nAnswer:", separator=" / ")
    found = SelfElicit(template=template, alpha=0.7).run(reader(), cases(6))
    for case, each in zip(cases(6), found, strict=True):
        prompt = render_prompt(reader().encoder, template, case.documents, case.question)
        [reading] = answer_with_attention(reader(), [prompt], wanted=[READ])
        scores = reading.scores[READ]
        means = {
            (at, span): scores[slice(*prompt.part(at, *span))].mean()
            for at, text in enumerate(case.documents)
            for span in sentence_spans(text)
        }
        expected = {key for key, mean in means.items() if mean >= 0.7 * max(means.values())}
        assert {(at, span) for at, spans in enumerate(each.evidence) for span in spans} == expected
        assert 0 < len(expected) < len(means)
        assert each.scores == pytest.approx(
            [scores[slice(*content)].mean() for content in prompt.contents]
        )
        documents = [*case.documents]
        for at, (start, end) in sorted(expected, reverse=True):
            text = documents[at]
            marked = f"<start_important>{text[start:end]}<end_important>"
            documents[at] = text[:start] + marked + text[end:]
        second = NOTE + template.render(documents, case.question)
        assert [each.answer] == reader().generate([second])
        assert each.first_answer == reading.answer
        assert (each.order, each.rounds) == ((0, 1, 2, 3), 2)


def test_where_there_is_no_sentence_there_is_nothing_to_mark() -> None:
    """A document of spaces has tokens, but no words: one round."""
    [found] = SelfElicit().run(reader(), [Case(question="Which?", documents=["  ", "\n"])])
    assert (found.evidence, found.rounds) == (((), ()), 1)
    assert found.answer == found.first_answer


def test_marks_that_leave_no_room_are_an_error() -> None:
    """Not cut off in silence: the first prompt fits, the second does not."""
    limit = reader().model.config.max_position_embeddings
    word = " amber"
    case = Case(question="Code of slow elm?", documents=[word * (limit - 40), "We."])
    with pytest.raises(ValueError, match=f"more than the {limit} that biased reads"):
        SelfElicit(alpha=0.01).run(reader(), [case])


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Rome is old. Paris too! Why? ", ["Rome is old.", "Paris too!", "Why?"]),
        ('He said "Go." Then left', ['He said "Go."', "Then left"]),
        ("Pi is 3.14 (about). Or...\n more", ["Pi is 3.14 (about).", "Or...", "more"]),
        ("東京。大阪\uff01 Kyoto", ["東京。", "大阪\uff01", "Kyoto"]),
        ("Title\r\n\r\n- one\n- two", ["Title", "- one", "- two"]),
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

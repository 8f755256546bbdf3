"""Two rounds on the readers: what moves, what is asked again, and what comes out."""

from __future__ import annotations

import copy

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from instruments.cases import shuffled_cases
from shared_core.attention import ESTIMATORS, Case, TwoRound
from shared_core.attention.method import AttentionMethod
from shared_core.attention.reading import answer_with_attention
from shared_core.attention.rendering import render_prompt
from shared_core.evaluation import GRADERS
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.local_model import LocalModel
from shared_core.generation.templates import PromptTemplate
from shared_core.placement.by_attention import ATTENTION_PLACEMENTS
from shared_core.sensitivity import ANSWER
from tests.core.attention.models import tiny
from tests.core.attention.readers import reader


def cases(n: int, k: int = 10) -> tuple[list[Case], list[list[str]], list[int]]:
    """Make shuffled cases, their answers, and where the gold document stands."""
    return shuffled_cases(n, k=k, seed=7)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("placement", [*ATTENTION_PLACEMENTS, "relevant_last"])
def test_both_answers_are_the_models_own(estimator: str, placement: str) -> None:
    """The first to the documents as they came, the final one to them as placed."""
    asked, _, _ = cases(5)
    found = TwoRound(estimator=estimator, placement=placement).run(reader(), asked)
    for case, placed in zip(asked, found, strict=True):
        assert sorted(placed.order) == list(range(10))
        assert len(placed.scores) == 10
        first, final = (
            ANSWER.render([case.documents[at] for at in order], case.question)
            for order in (range(10), placed.order)
        )
        assert [placed.first_answer, placed.answer] == [
            reader().generate([prompt])[0] for prompt in (first, final)
        ]
        assert placed.rounds == (1 if list(placed.order) == list(range(10)) else 2)


def endless() -> HuggingFaceModel:
    """Return a random model without end tokens: its answers have eight tokens."""
    tokenizer = copy.deepcopy(reader().tokenizer)
    model = tiny("llama", vocab_size=len(tokenizer), max_position_embeddings=512)
    model.generation_config.eos_token_id = tokenizer.eos_token = None
    return HuggingFaceModel(model, tokenizer, max_new_tokens=8)


@pytest.mark.parametrize(
    ("estimator", "placement", "passes"),
    [
        ("icr", "relevant_last", 3),
        ("attention_sorting", "relevant_last", 2),
        ("icr", "attention_u_shape", 10),
        ("answer", "relevant_last", 9),
    ],
)
def test_where_only_the_order_counts_the_answer_ends_where_it_is_no_longer_read(
    estimator: str, placement: str, passes: int
) -> None:
    """The order and the scores are those of the whole answer."""
    model, rounds = endless(), TwoRound(estimator=estimator, placement=placement)
    asked, _, _ = cases(3)
    wholes = rounds.first(model, asked)
    made: list[object] = []
    model.model.register_forward_pre_hook(lambda *given: made.append(given))
    method = AttentionMethod(model=LocalModel(model), two_rounds=rounds)
    for case, whole in zip(asked, wholes, strict=True):
        made.clear()
        order, details = method.place(case.documents, case.question)
        assert len(made) == passes
        assert order == whole.order
        expected = [whole.scores[document] for document in order]
        assert [each["score"] for each in details] == pytest.approx(expected, abs=1e-6)


def test_special_tokens_before_the_first_of_an_answer_are_read_on() -> None:
    """As of models that name a channel first: they are no part of the answer."""
    model, rounds = endless(), TwoRound(estimator="attention_sorting", placement="relevant_last")
    ([case], _, _) = cases(1)
    prompt = render_prompt(model.encoder, ANSWER, case.documents, case.question)
    (answer,) = answer_with_attention(model, [prompt.ids])
    tokens = model.tokenizer.convert_ids_to_tokens(answer.answer_ids[:2])
    model.tokenizer.add_tokens(tokens, special_tokens=True)
    (whole,) = rounds.first(model, [case])
    assert rounds.place(model, case).scores == pytest.approx(whole.scores)


def test_relevant_documents_stand_next_to_the_question() -> None:
    """Under the placement of that name."""
    asked, _, _ = cases(4)
    for placed in TwoRound(estimator="icr", placement="relevant_last").run(reader(), asked):
        scores = [placed.scores[document] for document in placed.order]
        assert scores == sorted(scores)


def test_calibrated_query_attention_finds_the_gold_document() -> None:
    """Far more often than chance, one of ten; and EM rises for the biased reader."""
    asked, answers, gold = cases(60)
    found = TwoRound(estimator="icr").run(reader(), asked)
    hits = [int(np.argmax(each.scores)) == at for each, at in zip(found, gold, strict=True)]
    assert np.mean(hits) > 0.25
    grade = GRADERS["exact"]
    first = [grade(e.first_answer, a) for e, a in zip(found, answers, strict=True)]
    final = [grade(e.answer, a) for e, a in zip(found, answers, strict=True)]
    assert np.mean(final) > np.mean(first) + 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "vibes"}, "estimator must be one of answer, .*got 'vibes'"),
        ({"placement": "vibes"}, "placement must be one of attention_u_shape, .*got 'vibes'"),
    ],
)
def test_unknown_names_are_named(options: dict[str, str], message: str) -> None:
    """With those there are."""
    with pytest.raises(ValueError, match=message):
        TwoRound(**options)


def test_a_question_before_the_documents_is_refused_where_its_tokens_are_read() -> None:
    """They see none of them, so that every document would score 0."""
    template = PromptTemplate("Question: {question}\n\n{context}\n\nAnswer:")
    message = "estimator 'icr' .* put {question} after {context}, or use another estimator"
    with pytest.raises(ValueError, match=message):
        TwoRound(estimator="icr", template=template)
    case = Case(question="Which code?", documents=["a", "b", "c"])
    for estimator in [name for name in ESTIMATORS if name != "icr"]:
        (found,) = TwoRound(estimator=estimator, template=template).run(reader(), [case])
        assert any(found.scores)


@pytest.mark.parametrize("question", ["", "  "])
def test_a_blank_question_is_named_where_its_tokens_are_read(question: str) -> None:
    """The other estimators do without."""
    case = Case(question=question, documents=["a", "b", "c"])
    message = f"estimator 'icr' reads .* the question is {question!r}; give one, or use another"
    with pytest.raises(ValueError, match=message):
        TwoRound(estimator="icr").run(reader(), [case])
    (found,) = TwoRound().run(reader(), [case])
    assert sorted(found.order) == [0, 1, 2]


def test_a_blank_document_is_named() -> None:
    """It has no token to attend to."""
    with pytest.raises(ValueError, match="document 1 has no token"):
        TwoRound().run(reader(), [Case(question="q?", documents=["a", "", "c"])])

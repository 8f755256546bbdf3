"""Graders: the published codes' cases, identifiers, and texts that are not English."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared_core.evaluation.graders import GRADERS, grade, normalize_answer, resolve_grader

names = pytest.mark.parametrize("name", GRADERS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat, and an  Owl!", "cat and owl"),
        ("A", ""),
        ("«Zürich»", "zürich"),
        ("a\u0300 la carte", "\u00e0 la carte"),  # decomposed, it is the letter a and a mark
    ],
)
def test_answers_are_normalised_as_by_squad(text: str, expected: str) -> None:
    """Punctuation goes before the articles, and joins what stood around it."""
    assert normalize_answer(text) == expected


@pytest.mark.parametrize(
    ("answer", "references", "f1", "exact"),
    [
        ("the Denver Broncos.", ["Denver Broncos"], 1.0, 1.0),
        ("Broncos", ["Denver Broncos"], 2 / 3, 0.0),
        ("Santa Clara, California", ["Levi's Stadium", "Santa Clara"], 0.8, 0.0),
        ("the the cat", ["cat cat"], 2 / 3, 0.0),
        ("", ["A"], 0.0, 0.0),  # nothing is left of the reference, which is right all the same
        ("(a).", ["A"], 1.0, 1.0),
        ("B.", ["A."], 0.0, 0.0),
        ("The A", ["A"], 2 / 3, 0.0),
        ("*", ["*"], 1.0, 1.0),
        ("北京市", ["北京"], 0.8, 0.0),  # by characters, as words are not spaced
    ],
)
def test_f1_and_exact_match_are_those_of_squad(
    answer: str, references: list[str], f1: float, exact: float
) -> None:
    """Worked by hand from the published code, with SQuAD 2.0's rule for empty answers."""
    assert GRADERS["f1"](answer, references) == pytest.approx(f1)
    assert GRADERS["exact"](answer, references) == exact


@pytest.mark.parametrize(
    ("name", "wanted", "answer", "expected"),
    [
        # ``best_subspan_em`` of Liu et al., character by character after normalisation
        ("subspan", "Wilhelm Conrad Röntgen", "It was wilhelm conrad röntgen of Germany", 1),
        ("subspan", "president of US", "He was the President of the U.S.", 1),
        ("subspan", "art", "a party", 1),
        # neither identifiers nor numbers within longer ones; white space may differ
        ("em", "torch.add", "use torch.addmm(a, b)", 0),
        ("em", "torch.add", "use torch.addmm or torch.add(a, b)", 1),
        ("em", "torch.add", "my_torch.add(a)", 0),
        ("em", "interpolate(", "interpolate (x)", 0),
        ("em", "Conv2d(3, 8,\n    kernel_size=1)", "nn.Conv2d(3,  8, kernel_size=1)", 1),
        ("em", "3", "dim=3.", 1),
        ("em", "3", "about 3.14", 0),
        ("em", "3", "-3", 0),
        ("em", "3", "(dim=\u22123)", 0),
        ("em", "5", "3-5", 1),
        ("em", "-1", "10-1 is 9", 0),
        ("em", "$3", "US$3 million", 1),
        ("em", "1", "all 1,234 of them", 0),
        ("em", "5", "lr=2e-5", 0),
        ("em", "v3", "version v3.5", 0),
        ("em", "torch.add", "应该用torch.addmm函数", 0),
        # a vowel sign of Hindi goes on with its word; a Chinese neighbour ends nothing
        ("kw", "STRASSE", "die Straße", 1),
        ("kw", "größe", "Die GRÖSSE zählt", 1),
        ("kw", "größe", "noch größer", 0),
        ("kw", "learning rate", "the Learning\nRate", 1),
        ("kw", "कम", "पानी की कमी", 0),
        ("kw", "torch", "请使用torch库", 1),
        ("kw", "ไทย", "ประเทศไทยครับ", 1),
        ("kw", "İstanbul", "i̇stanbul", 1),
        ("kw", "2024", "２０２４年", 1),
    ],
)
def test_where_a_string_is_found(name: str, wanted: str, answer: str, expected: float) -> None:
    """Anywhere in the answer, whole, or as whole words in scripts that have them."""
    assert GRADERS[name](answer, [wanted]) == expected


@pytest.mark.parametrize("reference", ["The", "a", "!", " "])
def test_a_reference_that_normalises_to_nothing_is_refused(reference: str) -> None:
    """The published code would find it in every answer."""
    with pytest.raises(ValueError, match="would match every answer"):
        GRADERS["subspan"]("anything", ["right", reference])


def test_one_required_string_is_enough_and_all_keywords_are_needed() -> None:
    """The two measures of CAUS differ in that too."""
    answer = "nn.Linear(in_features=4)"
    assert GRADERS["em"](answer, ["nn.Conv2d", "nn.Linear"]) == 1
    assert GRADERS["kw"](answer, ["linear", "in_features"]) == 1
    assert GRADERS["kw"](answer, ["linear", "bias"]) == 0


@names
@pytest.mark.parametrize(
    ("answer", "reference"), [("cafe\u0301", "caf\u00e9"), ("caf\u00e9", "cafe\u0301")]
)
def test_a_combining_accent_equals_the_composed_letter(
    name: str, answer: str, reference: str
) -> None:
    """Which of the two a model writes is an accident of its training texts."""
    assert GRADERS[name](answer, [reference]) == 1
    assert GRADERS[name]("cafe", [reference]) == 0


@names
@given(text=st.text(min_size=1), before=st.text(), after=st.text())
def test_every_value_lies_between_0_and_1(name: str, text: str, before: str, after: str) -> None:
    """On any text at all; and an answer grades fully against itself."""
    assume(normalize_answer(text))
    assert GRADERS[name](text, [text]) == 1
    assert 0 <= GRADERS[name](before + text + after, [text]) <= 1


@names
def test_there_must_be_a_reference(name: str) -> None:
    """An unanswerable question would otherwise count as answered, or as failed."""
    with pytest.raises(ValueError, match="no reference"):
        GRADERS[name]("answer", [])
    with pytest.raises(ValueError, match="wrap 'torch' in a list"):
        GRADERS[name]("answer", "torch")


def test_a_grader_is_found_by_name_or_taken_as_it_is() -> None:
    """An unknown name is answered with the known ones."""

    def own(answer: str, references: Any) -> bool:
        return answer in references

    assert resolve_grader("em") is GRADERS["em"]
    assert resolve_grader(own) is own
    with pytest.raises(ValueError, match="no grader 'bleu'; there are em, subspan, exact, kw, f1"):
        resolve_grader("bleu")


@pytest.mark.parametrize("value", [True, False, 0, 1, 0.25, np.float32(0.5), np.True_])
def test_numbers_and_truth_values_are_grades(value: Any) -> None:
    """As a plain float, whatever the grader made of them."""
    graded = grade(lambda answer, references: value, "answer", ["reference"])
    assert type(graded) is float
    assert graded == value


@pytest.mark.parametrize("value", [math.nan, -0.1, 1.1, math.inf, None, "1", 1j])
def test_a_grade_outside_0_to_1_is_refused(value: Any) -> None:
    """A percentage or a missing return would spoil every mean after it."""

    def own(answer: str, references: Any) -> Any:
        return value

    with pytest.raises(ValueError, match=rf"grader own must .*, got {value!r}".replace("(", r"\(")):
        grade(own, "answer", ["reference"])
    with pytest.raises(ValueError, match="no reference"):
        grade(lambda answer, references: 1.0, "answer", [])

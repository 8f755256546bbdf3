"""Words and prompts of the gate: key phrases, coverage, pseudo-queries, transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from shared_core.errors import GenerationError
from shared_core.gating import (
    GatedPrompts,
    WordCoverage,
    generate_pseudo_queries,
    hyde,
    rewriting,
)
from shared_core.gating.words import plain_words, telling_words
from shared_core.generation import CallableModel


def answering(text: str) -> CallableModel:
    def answer(prompts: Sequence[str]) -> list[str]:
        return [text.replace("<prompt>", prompt) for prompt in prompts]

    return CallableModel(answer, name="canned")


def key_phrases(texts: Sequence[str], **options: Any) -> list[str]:
    words = WordCoverage.of(texts, options.pop("tokenizer", plain_words))
    return [telling_words(text, words, **options) for text in texts]


def test_key_phrases_are_the_rare_words_in_their_own_order() -> None:
    """Words that every passage holds tell nothing; one that is repeated tells more."""
    texts = ["the bee makes the honey", "the bee makes the wax", "the bee makes the comb wild"]
    assert key_phrases(texts, count=1) == ["honey", "wax", "comb"]
    assert key_phrases(texts, count=2)[2] == "comb wild"
    assert key_phrases(["comb wild wild", "x"], count=1)[0] == "wild"
    assert key_phrases(["a b"]) == ["a b"], "nothing telling: the text itself"


def test_words_of_a_language_without_spaces_are_those_of_the_tokenizer() -> None:
    """By default a clause would be one word; of a tokenizer's words none is too short."""
    texts = ["图书馆星期一关门", "图书馆星期二到星期日开门"]
    split = {texts[0]: ["图书馆", "星期一", "关门"], texts[1]: ["图书馆", "星期二", "到", "开门"]}
    assert key_phrases(texts) == texts
    assert key_phrases(texts, count=2, tokenizer=split.__getitem__) == ["星期一 关门", "星期二 到"]


def test_coverage_weighs_rare_words() -> None:
    """The share is that of the best passage."""
    words = WordCoverage.of(["the bee", "the wasp", "the fly"])
    assert words.share("the bee", ["the bee"]) == pytest.approx(1.0)
    assert words.share("the bee", ["bee", "the"]) > 0.5 > words.share("the bee", ["the"])
    assert words.share("", ["the"]) == words.share("bee", []) == 0.0
    assert words.weight("bee") == pytest.approx(0.9808293)  # log(1 + (3 - 1 + .5) / (1 + .5))


def test_a_model_writes_pseudo_queries() -> None:
    """Numbering and bullets are dropped, as is what exceeds the count; a year is no number."""
    model = answering("1- What is it?\n2. Why?\n\n* 1984 was what?\n1984 again?\nextra")
    expected = ["What is it?", "Why?", "1984 was what?", "1984 again?"]
    assert generate_pseudo_queries(["p", "q"], model, count=4) == [expected] * 2


def test_the_prompt_of_pseudo_queries_is_replaceable_and_checked() -> None:
    """Other braces are text; the passage may hold braces too."""
    loud = CallableModel(lambda prompts: [prompt.upper() for prompt in prompts], name="loud")
    prompt = "{x} {count}: {passage}"
    assert generate_pseudo_queries(["a {count}"], loud, prompt=prompt, count=2) == [
        ["{X} 2: A {COUNT}"]
    ]
    with pytest.raises(GenerationError, match="wrote no question"):
        generate_pseudo_queries(["a"], answering("\n"))
    with pytest.raises(ValueError, match=r"prompt must hold \{passage\} once, got it 0 times"):
        generate_pseudo_queries(["a"], loud, prompt="{count}?")


def test_transforms_ask_the_model_with_the_query() -> None:
    """An empty answer is an error, not an empty query."""
    assert rewriting(answering(" <prompt> "), prompt="say {query} {x}")("bees") == "say bees {x}"
    assert "passage" in hyde(answering("<prompt>"))("bees")
    with pytest.raises(GenerationError, match=r"made nothing of the query 'bees'"):
        rewriting(answering("  "))("bees")


def test_no_retrieval_never_means_an_empty_context() -> None:
    """The direct prompt takes its place; braces in the question stay."""
    prompts = GatedPrompts()
    assert "Context:" in prompts.render("why {x}?", ["bees"])
    direct = prompts.render("why {question}?", [])
    assert "why {question}?" in direct
    assert "Context" not in direct
    with pytest.raises(ValueError, match=r"direct must hold \{question\} once, got it 2 times"):
        GatedPrompts(direct="{question} {question}")

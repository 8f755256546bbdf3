"""Words and prompts of the gate: key phrases, coverage, pseudo-queries, transforms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from shared_core.errors import GenerationError
from shared_core.gating import (
    GatedPrompts,
    WordCoverage,
    generate_pseudo_queries,
    hyde,
    key_phrases,
    read_pseudo_queries,
    rewriting,
    unwrapped,
)
from shared_core.generation import CallableModel


def answering(text: str) -> CallableModel:
    def answer(prompts: Sequence[str]) -> list[str]:
        return [text.replace("<prompt>", prompt) for prompt in prompts]

    return CallableModel(answer, name="canned")


def test_key_phrases_are_the_rare_words_in_their_own_order() -> None:
    """Words that every passage holds tell nothing; one that is repeated tells more."""
    texts = ["the bee makes the honey", "the bee makes the wax", "the bee makes the comb wild"]
    assert key_phrases(texts, count=1) == ["honey", "wax", "comb"]
    assert key_phrases(texts, count=2)[2] == "comb wild"
    assert key_phrases(["comb wild wild", "x"], count=1)[0] == "wild"
    assert key_phrases(["a b"]) == ["a b"], "nothing telling: the text itself"
    with pytest.raises(ValueError, match="count must be an integer >= 1, got 0"):
        key_phrases(texts, count=0)


def test_words_of_a_language_without_spaces_are_those_of_the_tokenizer() -> None:
    """By default a clause would be one word; of a tokenizer's words none is too short."""
    texts = ["图书馆星期一关门", "图书馆星期二到星期日开门"]
    split = {texts[0]: ["图书馆", "星期一", "关门"], texts[1]: ["图书馆", "星期二", "到", "开门"]}
    assert key_phrases(texts) == texts
    assert key_phrases(texts, count=2, tokenizer=split.__getitem__) == ["星期一 关门", "星期二 到"]


def test_coverage_weighs_rare_words_and_follows_the_corpus() -> None:
    """The share is that of the best passage, and deletion undoes addition."""
    words = WordCoverage()
    words.add(["the bee", "the wasp", "the fly"])
    assert words.share("the bee", ["the bee"]) == pytest.approx(1.0)
    assert words.share("the bee", ["bee", "the"]) > 0.5 > words.share("the bee", ["the"])
    assert words.share("", ["the"]) == words.share("bee", []) == 0.0
    assert words.weight("bee") == pytest.approx(0.9808293)  # log(1 + (3 - 1 + .5) / (1 + .5))
    before = words.share("the bee", ["the"])
    words.add(["bee hive"])
    words.delete(["bee hive"])
    assert words.share("the bee", ["the"]) == before
    assert len(words) == 3
    with pytest.raises(ValueError, match="was never added"):
        words.delete(["ant"])
    with pytest.raises(ValueError, match="no counted passage holds it"):
        WordCoverage().delete([""])


def test_a_model_writes_pseudo_queries() -> None:
    """Numbering and bullets are dropped, as is what exceeds the count; a year is no number."""
    model = answering("1- What is it?\n2. Why?\n\n* 1984 was what?\n1984 again?\nextra")
    expected = ["What is it?", "Why?", "1984 was what?", "1984 again?"]
    assert generate_pseudo_queries(["p", "q"], model, count=4) == [expected] * 2
    assert generate_pseudo_queries([], model) == []


def test_the_prompt_of_pseudo_queries_is_replaceable_and_checked() -> None:
    """Other braces are text; the passage may hold braces too."""
    loud = CallableModel(lambda prompts: [prompt.upper() for prompt in prompts], name="loud")
    prompt = "{x} {count}: {passage}"
    assert generate_pseudo_queries(["a {count}"], loud, prompt=prompt, count=2) == [
        ["{X} 2: A {COUNT}"]
    ]
    with pytest.raises(ValueError, match=r"prompt must hold \{passage\} once, got it 0 times"):
        generate_pseudo_queries(["a"], loud, prompt="no place")
    with pytest.raises(GenerationError, match="wrote no question"):
        generate_pseudo_queries(["a"], answering("\n"))


def test_pseudo_queries_come_from_a_file(tmp_path: Path) -> None:
    """As other files of JSON lines; an error names the line."""
    path = tmp_path / "queries.jsonl"
    first = '{"id": "p0", "text": "why"}\n'
    path.write_text(first + '\n{"id": "p0", "text": "how"}\n', "utf-8-sig")
    assert read_pseudo_queries(path) == [("p0", "why"), ("p0", "how")]
    for bad, why in {
        '{"id": "p0"}': 'no field "text"; it has id',
        '{"id": "p0", "text": " "}': r'id and text must be strings, not blank, got \["p0", " "\]',
    }.items():
        path.write_text(first + bad)
        with pytest.raises(ValueError, match=f"line 2: {why}"):
            read_pseudo_queries(path)


def test_llama_indexs_wrapping_is_taken_off_and_nothing_else() -> None:
    """By its own tool, so that a new wording there would be noticed."""
    tools = pytest.importorskip("llama_index.core.tools")
    retrievers = pytest.importorskip("llama_index.core.retrievers")
    seen: list[str] = []

    class Spy(retrievers.BaseRetriever):  # type: ignore[name-defined, misc]
        def _retrieve(self, query_bundle: object) -> list[object]:
            seen.append(query_bundle.query_str)  # type: ignore[attr-defined]
            return []

    tools.RetrieverTool.from_defaults(Spy())(input="why\nbees?")
    assert seen != ["why\nbees?"]
    assert unwrapped(seen[0]) == "why\nbees?"
    for plain in ("why bees?", "my input is a bee\n", "\ninput is x", ""):
        assert unwrapped(plain) == plain


def test_transforms_ask_the_model_with_the_query() -> None:
    """An empty answer is an error, not an empty query."""
    assert rewriting(answering(" <prompt> "), prompt="say {query} {x}")("bees") == "say bees {x}"
    assert "passage" in hyde(answering("<prompt>"))("bees")
    with pytest.raises(GenerationError, match=r"made nothing of the query 'bees'"):
        rewriting(answering("  "))("bees")
    with pytest.raises(ValueError, match=r"must hold \{query\} once"):
        rewriting(answering("x"), prompt="nothing")


def test_no_retrieval_never_means_an_empty_context() -> None:
    """The direct prompt takes its place; braces in the question stay."""
    prompts = GatedPrompts()
    assert "Context:" in prompts.render("why {x}?", ["bees"])
    for nothing in (None, []):
        direct = prompts.render("why {question}?", nothing)
        assert "why {question}?" in direct
        assert "Context" not in direct
    with pytest.raises(ValueError, match=r"direct must hold \{question\} once, got it 2 times"):
        GatedPrompts(direct="{question} {question}")

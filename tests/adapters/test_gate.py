"""The retrieval gate of both frameworks: the core's decision, before whatever retrieves."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core import Passage
from shared_core.errors import EmbeddingMismatchError
from shared_core.gating import ContextGate, GatedPrompts
from shared_core.gating.fit import fit_gate
from tests.core.gating.words import IDS, INSIDE, OUTSIDE, PASSAGES, embed

from .drivers import ids
from .gates import Answer, GateAdapter, LangChainGate, LlamaIndexGate

DRIVERS = LangChainGate, LlamaIndexGate
CORPUS = [Passage(id, text) for id, text in zip(IDS, PASSAGES, strict=True)]
QUESTIONS = (
    *(INSIDE, OUTSIDE, "honey", "which bread needs acid", "who wrote the first detective novel"),
    *("a starter for honey: honey, honey and flour", "xylophone"),
)


def embedded(text: str) -> list[float]:
    """Embed by words; a function of a module, as pickle wants it."""
    return embed(text)


def other(text: str) -> list[float]:
    """Embed as another model does."""
    return embed(" ".join(f"{word}x" for word in text.split()))


@pytest.fixture
def retriever(adapter: GateAdapter) -> Any:
    return adapter.build(CORPUS, adapter.model(embedded), k=3)


@pytest.fixture(params=["asked", "awaited"])
def ask(request: pytest.FixtureRequest, adapter: GateAdapter) -> Callable[..., Answer]:
    """Ask one way or the other."""
    return adapter.decide if request.param == "asked" else adapter.adecide


def similarities(text: str) -> list[float]:
    found: list[float] = (np.array([embed(each) for each in PASSAGES]) @ embed(text)).tolist()
    return found


def fitted(**options: Any) -> ContextGate:
    """Return the gate that the core fits."""
    vectors = [embed(text) for text in PASSAGES]
    return fit_gate(IDS, PASSAGES, vectors, lambda texts: [embed(t) for t in texts], **options)


def test_a_question_inside_is_asked_with_context_and_one_outside_without(
    adapter: GateAdapter, retriever: Any, ask: Callable[..., Answer]
) -> None:
    """The decision comes along, on each passage too, beside what explained it before."""
    host = adapter.fit(retriever)
    inside, outside = ask(host, INSIDE), ask(host, OUTSIDE)
    assert PASSAGES[4] in inside.prompt
    assert INSIDE in inside.prompt
    assert inside.ids[0] == "p4"
    assert inside.ids == ids(adapter.retrieve(retriever, INSIDE))
    assert inside.decision["retrieve"] is True
    assert all(why["retrieval"] == inside.decision and "slot" in why for why in inside.why)
    assert "Think step by step" in outside.prompt
    assert OUTSIDE in outside.prompt
    assert (outside.ids, outside.decision["retrieve"]) == ([], False)
    assert "answer without context" in outside.decision["reason"]


@pytest.mark.parametrize(
    "fit",
    [
        {},
        {"policy": "median", "threshold": -0.1},
        {"transform": str.upper, "tokenizer": str.split},
        {"coverage": False},
        {
            "pseudo_queries": [
                (id, text.split(",")[0]) for id, text in zip(IDS, PASSAGES, strict=True)
            ]
        },
    ],
    ids=lambda fit: "+".join(fit) or "default",
)
def test_it_decides_as_the_core_does(
    adapter: GateAdapter, retriever: Any, fit: dict[str, Any]
) -> None:
    """With every option of the fit; the nearest passage counts where it is not among the best."""
    host, core = adapter.fit(retriever, **fit), fitted(**fit)
    decided = []
    for question in QUESTIONS:
        near = similarities(core.prepare(question))
        told = adapter.decide(host, question).decision
        expected = core.candidates.decide(near).explain()
        assert told["similarity"] == pytest.approx(expected["similarity"], abs=1e-6)
        assert told["statistic"] == pytest.approx(expected["statistic"], abs=1e-6)
        words = fit.get("coverage", "policy" not in fit)
        assert ("of its words there" in told["reason"]) is words
        if not words:
            assert told["retrieve"] is expected["retrieve"]
        decided.append(told["retrieve"])
    if not fit:
        assert {*decided} == {True, False}


@pytest.mark.parametrize("over", ["build", "over_store"])
def test_words_are_split_as_the_retriever_splits_them(adapter: GateAdapter, over: str) -> None:
    """Also where the passages are given, as over a store."""
    retriever = getattr(adapter, over)(CORPUS, tokenizer=str.split)
    host = adapter.fit(retriever, CORPUS, adapter.model(embedded))
    assert host.gate.coverage is not None
    assert host.gate.coverage.tokenizer is str.split


def test_any_other_retriever_has_its_finds_embedded(
    adapter: GateAdapter, retriever: Any, ask: Callable[..., Answer]
) -> None:
    """And comes to the same decision; without a model it says what is missing."""
    model = adapter.model(embedded)
    host, plain = adapter.fit(retriever), adapter.plain(CORPUS, model)
    gated = adapter.fit(plain, CORPUS, model)
    for question in (INSIDE, OUTSIDE):
        one, two = ask(host, question).decision, ask(gated, question).decision
        assert two["retrieve"] == one["retrieve"]
        assert two["similarity"] == pytest.approx(one["similarity"], abs=1e-6)
    with pytest.raises(ValueError, match=adapter.no_cosines):
        ask(adapter.host(plain, host.gate), INSIDE)
    with pytest.raises(ValueError, match=adapter.no_model):
        adapter.fit(plain)
    with pytest.raises(ValueError, match=adapter.no_passages):
        adapter.fit(plain, model=model)


def test_the_question_is_judged_not_what_it_was_rewritten_to(
    adapter: GateAdapter, retriever: Any, ask: Callable[..., Answer]
) -> None:
    """The cosines that passages tell are of the text that was searched."""
    rewriting = adapter.rewriting(retriever, PASSAGES[4])
    found = ids(adapter.retrieve(rewriting, OUTSIDE))
    own = max(similarities(OUTSIDE)[IDS.index(str(id))] for id in found)
    told = ask(adapter.fit(rewriting, CORPUS, adapter.model(embedded)), OUTSIDE).decision
    assert told["similarity"] == pytest.approx(own, abs=1e-6)
    assert not told["retrieve"]


def test_nothing_is_embedded_twice(adapter: GateAdapter, ask: Callable[..., Answer]) -> None:
    """The fit takes the vectors of the index, and a decision the cosines of the search."""
    asked: list[str] = []

    def noted(text: str) -> list[float]:
        asked.append(text)
        return embed(text)

    retriever = adapter.build(CORPUS, adapter.model(noted), k=3)
    asked.clear()
    host = adapter.fit(retriever, transform=str.upper)
    assert not {*asked} & {*PASSAGES}
    asked.clear()
    assert ask(host, INSIDE).decision["retrieve"] is True
    assert asked == [INSIDE.upper()]


def test_a_call_sets_options_of_the_retriever(adapter: GateAdapter, retriever: Any) -> None:
    """For this call alone; what it does not know is refused."""
    host = adapter.fit(retriever)
    assert len(adapter.decide(host, INSIDE, k=1).ids) == 1
    assert len(adapter.decide(host, INSIDE, k=5, alpha=1.0, fetch_k=9).ids) == 5
    assert len(adapter.decide(host, INSIDE).ids) == 3
    with pytest.raises(TypeError, match="kk"):
        adapter.decide(host, INSIDE, kk=1)


def test_a_transform_changes_what_is_searched_and_not_what_is_asked(
    adapter: GateAdapter, retriever: Any, ask: Callable[..., Answer]
) -> None:
    host = adapter.fit(
        retriever,
        transform=lambda query: INSIDE if query == "what about it?" else query,
        prompts=GatedPrompts(direct="Plainly, {as} it is: {question}"),
    )
    found = ask(host, "what about it?")
    assert found.ids[0] == "p4"
    assert ("what about it?" in found.prompt, INSIDE in found.prompt) == (True, False)
    assert ask(host, OUTSIDE).prompt == f"Plainly, {{as}} it is: {OUTSIDE}"


def test_a_wrapping_of_tools_is_taken_off(
    adapter: GateAdapter, retriever: Any, ask: Callable[..., Answer]
) -> None:
    """Before the decision, the search and both prompts; nothing may be all that is left."""
    host = adapter.fit(retriever)
    for question in (INSIDE, OUTSIDE):
        assert ask(host, f"\ninput is {question}\n") == ask(host, question)
    for blank in ("", " ", "\ninput is  \n"):
        with pytest.raises(ValueError, match="the query is blank"):
            ask(host, blank)


def test_a_gate_decides_after_loading_as_before(
    adapter: GateAdapter, retriever: Any, tmp_path: Path
) -> None:
    """With its functions given again; another embedding model is refused, here and in the fit."""
    own: Any = {"transform": str.lower, "tokenizer": str.split}
    host = adapter.fit(retriever, coverage=True, **own)
    host.gate.save(tmp_path / "gate")
    again = adapter.load_gate(tmp_path / "gate", retriever, **own)
    for question in (INSIDE, OUTSIDE, *PASSAGES):
        assert adapter.decide(again, question) == adapter.decide(host, question)
    with pytest.raises(EmbeddingMismatchError, match="not the one the gate was fitted with"):
        adapter.load_gate(tmp_path / "gate", retriever, adapter.model(other), **own)
    with pytest.raises(EmbeddingMismatchError, match="not the one the index was built with"):
        adapter.fit(retriever, model=adapter.model(other))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda host: pickle.loads(pickle.dumps(host))])
def test_a_copy_answers_as_the_original(
    adapter: GateAdapter, retriever: Any, copied: Callable[[Any], Any]
) -> None:
    host = adapter.fit(retriever)
    again = copied(host)
    for question in (INSIDE, OUTSIDE):
        assert adapter.decide(again, question) == adapter.decide(host, question)


def test_an_empty_index_is_answered_without_context(
    adapter: GateAdapter, retriever: Any, ask: Callable[..., Answer]
) -> None:
    """Everything was deleted since the fit; and there is nothing to fit on from the start."""
    empty = adapter.build([], adapter.model(embedded))
    found = ask(adapter.host(empty, adapter.fit(retriever).gate), INSIDE)
    assert found.decision["reason"].startswith("the retriever returned no passage")
    assert "Think step by step" in found.prompt
    with pytest.raises(ValueError, match="on passages, and there are none"):
        adapter.fit(empty)

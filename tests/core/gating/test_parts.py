"""What stands around the fit: pseudo-queries, transforms, prompts, words, choosing, drift."""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from shared_core.cli.embedding import EmbeddingModel
from shared_core.errors import GenerationError
from shared_core.gating import (
    FEW_SHOT,
    ContextGate,
    DriftMonitor,
    GatedPrompts,
    VectorCandidates,
    WordCoverage,
    choose,
    first_sentences,
    generate_pseudo_queries,
    hyde,
    key_phrases,
    read_pseudo_queries,
    rewriting,
    unwrapped,
)
from shared_core.gating.pseudo_queries import telling_words
from shared_core.generation import CallableModel
from tests.core.gating.conftest import highest, synthetic
from tests.core.gating.texts import ASKED, ELSEWHERE, PASSAGES


def answering(text: str) -> CallableModel:
    def answer(prompts: Sequence[str]) -> list[str]:
        return [text.replace("<prompt>", prompt) for prompt in prompts]

    return CallableModel(answer, name="canned")


def test_key_phrases_are_the_rare_words_in_their_own_order() -> None:
    """Words that every passage holds tell nothing."""
    texts = ["the bee makes the honey", "the bee makes the wax", "the bee makes the comb wild"]
    assert [phrase.split()[-1] for phrase in key_phrases(texts, count=1)] == [
        "honey",
        "wax",
        "comb",
    ]
    assert key_phrases(texts, count=2)[2] == "comb wild"
    assert key_phrases(["a b"]) == ["a b"], "nothing telling: the text itself"
    with pytest.raises(ValueError, match="count must be an integer >= 1, got 0"):
        key_phrases(texts, count=0)


def test_words_of_a_language_without_spaces_are_those_of_the_tokenizer() -> None:
    """By default a clause would be one word; of a tokenizer's words none is too short."""
    texts = ["图书馆星期一关门", "图书馆星期二到星期日开门"]
    split = {texts[0]: ["图书馆", "星期一", "关门"], texts[1]: ["图书馆", "星期二", "到", "开门"]}
    assert key_phrases(texts) == texts
    assert key_phrases(texts, count=2, tokenizer=split.__getitem__) == ["星期一 关门", "星期二 到"]


def test_a_query_is_cut_down_to_what_tells_in_the_corpus() -> None:
    """A word that no passage holds tells most; one that all hold goes first."""
    words = WordCoverage()
    words.add(["the bee makes the honey", "the bee makes the wax"])
    assert telling_words("does the bee like the honey", words, count=3) == "does like honey"
    assert telling_words("a b", words) == "a b"
    with pytest.raises(ValueError, match="count must be an integer >= 1, got 0"):
        telling_words("honey", words, count=0)


def test_first_sentences_end_where_a_sentence_does() -> None:
    """And are the whole text where it has but one."""
    assert first_sentences(["One. Two.", "Only one"]) == ["One.", "Only one"]


def test_a_model_writes_pseudo_queries() -> None:
    """Numbering and bullets are dropped, as is what exceeds the count; a year is no number."""
    model = answering("1- What is it?\n2. Why?\n\n* 1984 was what?\n1984 again?\nextra")
    assert (
        generate_pseudo_queries(["p", "q"], model, count=4)
        == [["What is it?", "Why?", "1984 was what?", "1984 again?"]] * 2
    )


def test_the_prompt_is_replaceable_and_checked() -> None:
    """Other braces are text; the passage may hold braces too."""
    model = answering("<prompt>")
    written = generate_pseudo_queries(
        ["a {count}"], model, prompt="{x} {count}: {passage}", count=2
    )
    assert written == [["{x} 2: a {count}"]]
    with pytest.raises(ValueError, match=r"must hold \{passage\} once"):
        generate_pseudo_queries(["a"], model, prompt="no place")
    with pytest.raises(GenerationError, match="wrote no question"):
        generate_pseudo_queries(["a"], answering("\n"))


def test_pseudo_queries_come_from_a_file(tmp_path: Path) -> None:
    """As other files of JSON lines: a byte order mark does no harm, an error names the line."""
    path = tmp_path / "queries.jsonl"
    first = '{"id": "p0", "text": "why"}\n'
    for encoding in ("utf-8", "utf-8-sig"):
        path.write_text(first + '\n{"id": "p0", "text": "how"}\n', encoding)
        assert read_pseudo_queries(path) == [("p0", "why"), ("p0", "how")]
    for bad, why in {
        '{"id": "p0"}': 'no field "text"; it has id',
        "no json": "expected one JSON object per line, in UTF-8, got no json",
        "7": "expected an object, got 7",
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
    for plain in ("why bees?", "my input is a bee\n", "input is x", ""):
        assert unwrapped(plain) == plain


def shouting(prompts: Sequence[str]) -> list[str]:
    return [prompt.upper() for prompt in prompts]


def test_transforms_ask_the_model_with_the_query() -> None:
    """Which may be a function. An empty answer is an error, not an empty query."""
    assert rewriting(answering(" <prompt> "), prompt="say {query} {x}")("bees") == "say bees {x}"
    assert "passage" in hyde(answering("<prompt>"))("bees")
    assert rewriting(shouting, prompt="{query}")("bees") == "BEES"
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
    few = GatedPrompts(direct=FEW_SHOT, examples=[("2+2?", "4")]).render("why?", None)
    assert few.index("2+2?") < few.index("why?")
    with pytest.raises(ValueError, match=r"\{question\} once, got it 0 times"):
        GatedPrompts(direct="x")
    with pytest.raises(ValueError, match="no examples"):
        GatedPrompts(direct=FEW_SHOT, examples=())


def test_coverage_weighs_rare_words_and_follows_the_corpus() -> None:
    """The share is that of the best passage, and deletion undoes addition."""
    words = WordCoverage()
    words.add(["the bee", "the wasp", "the fly"])
    assert words.share("the bee", ["the bee"]) == pytest.approx(1.0)
    assert words.share("the bee", ["bee", "the"]) > 0.5 > words.share("the bee", ["the"])
    assert words.share("", ["the"]) == words.share("bee", []) == 0.0
    before = words.share("the bee", ["the"])
    words.add(["bee hive"])
    words.delete(["bee hive"])
    assert words.share("the bee", ["the"]) == before
    assert len(words) == 3
    with pytest.raises(ValueError, match="was never added"):
        words.delete(["ant"])


def test_labelled_queries_choose_a_policy_and_threshold(
    gate: VectorCandidates, model: EmbeddingModel, contexts: np.ndarray
) -> None:
    """What is chosen does at least as well on them as any policy without a threshold."""
    positives = highest(model.embed(ASKED), contexts)
    negatives = highest(model.embed(ELSEWHERE), contexts)
    choice = choose(gate, positives, negatives)
    chosen = gate.with_policy(choice.policy, choice.threshold)
    hits = np.mean([chosen.decide(s).retrieve for s in positives])
    refusals = np.mean([not chosen.decide(s).retrieve for s in negatives])
    assert (hits + refusals) / 2 >= choice.uncorrected
    assert 0.8 <= choice.balanced_accuracy <= 1
    assert choice == choose(gate, positives, negatives), "deterministic"
    with pytest.raises(ValueError, match="negatives: at least 5 queries, got 2"):
        choose(gate, positives, negatives[:2])
    with pytest.raises(ValueError, match="folds must be an integer >= 2, got 1"):
        choose(gate, positives, negatives, folds=1)


def test_useless_labels_are_seen_through(gate: VectorCandidates) -> None:
    """Cross-validation gives chance where both sides come from one distribution."""
    rng = np.random.default_rng(0)
    choice = choose(gate, rng.random(200), rng.random(200))
    assert 0.4 < choice.balanced_accuracy < 0.6


def test_drift_is_told_once_and_again_after_it_came_back(gate: VectorCandidates) -> None:
    """A mixture of both kinds of question is no drift."""
    monitor = DriftMonitor(gate, window=20)
    edge = gate.levels.edge
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(60):
            assert not monitor.observe(edge + (0.1 if number % 4 == 0 else -0.1))
    with pytest.warns(UserWarning, match="left the fitted distribution") as caught:
        drifted = [monitor.observe(0.0) for _ in range(40)]
    assert drifted[-1]
    assert len(caught) == 1
    assert not [monitor.observe(edge + 0.1) for _ in range(20)][-1]
    with pytest.warns(UserWarning, match="above every pseudo-query"):
        assert [monitor.observe(1.0) for _ in range(20)][-1]
    with pytest.raises(ValueError, match="window must be at least 20, got 5"):
        DriftMonitor(gate, window=5)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda monitor: pickle.loads(pickle.dumps(monitor))]
)
def test_a_copied_monitor_watches_by_itself(
    copied: Callable[[DriftMonitor], DriftMonitor],
) -> None:
    """From what it had seen when it was copied."""
    ids, vectors, owners, pseudo, foreign = synthetic()
    gate = VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign)
    monitor, inside = DriftMonitor(gate, window=20), gate.levels.edge + 0.1
    for _ in range(19):
        monitor.observe(inside)
    again = copied(monitor)
    assert not monitor.observe(inside)
    with pytest.warns(UserWarning, match="left the fitted distribution"):
        assert any(again.observe(0.0) for _ in range(20))
    assert not monitor.observe(inside)


def test_threads_may_share_a_monitor(gate: VectorCandidates) -> None:
    """As the queries of a batch do; none fails because another one is being observed."""
    monitor = DriftMonitor(gate, window=200)
    similarity = gate.levels.edge + 0.1
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            assert not any(threads.map(monitor.observe, [similarity] * 4000))
    finally:
        sys.setswitchinterval(interval)


def test_the_gate_decides_by_what_was_found(gate: VectorCandidates) -> None:
    """Blank queries are refused, wrapped ones unwrapped; words count where they are known."""
    words = WordCoverage()
    words.add(PASSAGES)
    plain, wordy = ContextGate(candidates=gate), ContextGate(candidates=gate, coverage=words)
    just_below = gate.levels.edge - 0.02
    assert plain.prepare("\ninput is bees\n") == "bees"
    assert ContextGate(candidates=gate, transform=str.upper).prepare("bees") == "BEES"
    assert not plain.decide("queen bee", [just_below]).retrieve
    assert wordy.decide("\ninput is queen bee\n", [just_below, 0.1], PASSAGES[:2]).retrieve
    assert not wordy.decide("queen bee", []).retrieve
    for blank in ("", "  ", "\ninput is \n"):
        with pytest.raises(ValueError, match="the query is blank"):
            plain.decide(blank, [0.9])
        with pytest.raises(ValueError, match="the query is blank"):
            plain.prepare(blank)
    with pytest.raises(ValueError, match="got 2 similarities and 1 texts"):
        wordy.decide("bee", [0.1, 0.2], ["one"])

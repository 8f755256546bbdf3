"""Texts placed by a local model's attention, and its two rounds: both sides as the core."""

from __future__ import annotations

import copy
import json
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, QueryBundle

from instruments.corpus import held_out_questions
from langchain_posrag import AttentionPlacement, TwoRoundChain
from llamaindex_posrag import AttentionPlacementPostprocessor, TwoRoundQueryEngine
from shared_core import HuggingFaceModel, Passage, ProfileNotFoundError
from shared_core.attention import Case, OneRound, TwoRound, ranking_of
from shared_core.attention.relevance import ESTIMATORS
from shared_core.generation.local_model import LocalModel
from shared_core.placement.scored import ATTENTION_PLACEMENTS
from shared_core.sensitivity.curve import PositionalCurve
from tests.llamaindex.doubles import Given

from .drivers import LangChain, LlamaIndex

FOLDER = Path(__file__).parents[2] / "instruments"
PLACEMENTS = (*ATTENTION_PLACEMENTS, "back_first")
CURVE = PositionalCurve(model="some", scores=(3.0, 1.0, 0.5, 1.0, 2.0), n=7)
Slots = list[tuple[str | None, dict[str, Any]]]


@cache
def reader(name: str = "biased") -> HuggingFaceModel:
    return HuggingFaceModel.from_pretrained(FOLDER / name, max_new_tokens=4)


@cache
def asked(k: int) -> Case:
    """A question and `k` texts, the one with the answer in the middle."""
    [each] = held_out_questions(1, k=max(k, 1), seed=100 + k, confusable=0.5)
    texts = [*each["distractors"]]
    texts.insert(k // 2, each["gold"])
    return Case(question=each["question"], documents=texts[:k])


def passages(case: Case) -> list[Passage]:
    return [Passage(f"p{at}", text) for at, text in enumerate(case.documents)]


class Answered(NamedTuple):
    """What came out of two rounds."""

    answer: str
    first_answer: str
    order: list[int]
    scores: list[float]
    rounds: int
    slots: Slots


class OfLangChain(LangChain):
    """A compressor and a chain."""

    attention_placer = AttentionPlacement
    two_rounds = TwoRoundChain

    def given(self, case: Case) -> list[Document]:
        return self.items(passages(case))

    def placed(self, step: Any, items: Any, question: str) -> Slots:
        found = step.compress_documents(items, question)
        return [(each.id, each.metadata.get("posrag", {})) for each in found]

    def answered(self, model: Any, case: Case, **options: Any) -> Answered:
        chain = TwoRoundChain(model, **options)
        found = chain.invoke({"question": case.question, "documents": self.given(case)})
        slots = [(each.id, each.metadata["posrag"]) for each in found.pop("documents")]
        return Answered(**found, slots=slots)


class OfLlamaIndex(LlamaIndex):
    """A postprocessor and a query engine."""

    attention_placer = AttentionPlacementPostprocessor

    def two_rounds(self, model: Any, **options: Any) -> TwoRoundQueryEngine:
        return TwoRoundQueryEngine(Given([]), model, **options)

    def given(self, case: Case) -> list[NodeWithScore]:
        return [NodeWithScore(node=node) for node in self.items(passages(case))]

    def placed(self, step: Any, items: Any, question: str) -> Slots:
        found = step.postprocess_nodes(items, QueryBundle(question))
        return [(each.node_id, each.posrag) for each in found]

    def answered(self, model: Any, case: Case, **options: Any) -> Answered:
        engine = TwoRoundQueryEngine(Given(self.given(case)), model, **options)
        found: Any = engine.query(case.question)
        metadata = {**found.metadata}
        assert metadata.pop("without_context") == (not case.documents)
        slots = [(each.node_id, each.posrag) for each in found.source_nodes]
        return Answered(answer=found.response, **metadata, slots=slots)


Side = OfLangChain | OfLlamaIndex


@pytest.fixture(params=[OfLangChain, OfLlamaIndex], ids=["LangChain", "LlamaIndex"])
def side(request: pytest.FixtureRequest) -> Side:
    made: Side = request.param()
    return made


def place(side: Side, model: Any, case: Case, **options: Any) -> Slots:
    return side.placed(side.attention_placer(model, **options), side.given(case), case.question)


# --- what the core does ---


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_one_round_places_as_the_core_does(side: Side, estimator: str, placement: str) -> None:
    """Order, ranks and scores, bit for bit; nothing of the caller is touched."""
    options = {"estimator": estimator, "placement": placement}
    for k, model in ((2, reader()), (5, reader("uniform")), (12, reader())):
        [core] = TwoRound(**options).first(model, [asked(k)])
        ranking, items = ranking_of(core.scores), side.given(asked(k))
        found = side.placed(side.attention_placer(model, **options), items, asked(k).question)
        assert found == [
            (f"p{at}", {"rank": ranking.index(at), "slot": n, "score": core.scores[at], **options})
            for n, at in enumerate(core.order)
        ]
        assert json.dumps(found)
        assert items == side.given(asked(k))


@pytest.mark.parametrize("placement", ATTENTION_PLACEMENTS)
def test_a_curve_places_what_is_ranked_already(
    side: Side, placement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given as it is, by its file or by the name of its model, and without a round of the model."""
    case, model = asked(7), reader("uniform")
    order = OneRound(placement=placement, curve=CURVE).order(model, case, range(7))
    monkeypatch.setattr(model.model, "forward", None)
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path))
    for curve in (CURVE, CURVE.save(), CURVE.model):
        assert place(side, model, case, placement=placement, curve=curve) == [
            (f"p{at}", {"rank": at, "slot": slot, "placement": placement, "curve": "some"})
            for slot, at in enumerate(order)
        ]
    with pytest.raises(ProfileNotFoundError, match="no positional curve 'absent'"):
        side.attention_placer("no such model", curve="absent")


@pytest.mark.parametrize("k", [0, 1, 2, 6])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_two_rounds_answer_as_the_core_does(side: Side, estimator: str, k: int) -> None:
    """Without texts, too; and each text says why it is where it is."""
    for placement in ("attention_u_shape", "back_first"):
        options = {"estimator": estimator, "placement": placement}
        [core] = TwoRound(**options).run(reader(), [asked(k)])
        found = side.answered(reader(), asked(k), **options)
        assert found[:2] == (core.answer, core.first_answer)
        assert (found.order, found.scores) == ([*core.order], [*core.scores])
        assert found.rounds == core.rounds
        assert [(id_, why["score"], why["slot"]) for id_, why in found.slots] == [
            (f"p{at}", core.scores[at], slot) for slot, at in enumerate(core.order)
        ]


# --- what is given, and what comes back ---


@pytest.mark.parametrize("curve", [None, CURVE])
def test_fewer_than_two_texts_stay_as_they_are(side: Side, curve: PositionalCurve | None) -> None:
    """Without the model, which need not be there."""
    step = side.attention_placer("no such folder", curve=curve)
    assert side.placed(step, [], "x") == []
    assert side.placed(step, side.given(asked(1)), "x") == [("p0", {})]


@pytest.mark.parametrize("curve", [None, CURVE], ids=["own round", "curve"])
def test_steps_before_and_after_have_their_say(side: Side, curve: PositionalCurve | None) -> None:
    """Each placement takes over what is said of the slot; all else that explains a text stays."""
    first = side.place(side.placer("u_shape", psi="never"), side.given(asked(5)))
    step = side.attention_placer(reader(), curve=curve)
    placed = side.placed(step, first, asked(5).question)
    of_slot = {"rank", "slot", "placement"}
    own = {"curve"} if curve else {"estimator", "score"}
    assert [why.keys() for _, why in placed] == [of_slot | own] * 5
    again: Any = (
        step.compress_documents(first, asked(5).question)
        if isinstance(side, OfLangChain)
        else step.postprocess_nodes(first, QueryBundle(asked(5).question))
    )
    last = side.hits(side.place(side.placer("inverse"), again))
    assert {hit.why["placement"] for hit in last} == {"inverse"}
    assert [({"estimator", "score"} <= hit.why.keys(), "curve" in hit.why) for hit in last] == [
        (curve is None, False)
    ] * 5


def test_a_model_is_given_in_any_form(side: Side) -> None:
    """Loaded, as a pair, as a folder and as its path: the same order."""
    loaded, folder = reader(), FOLDER / "biased"
    forms = [loaded, (loaded.model, loaded.tokenizer), folder, str(folder), LocalModel(folder)]
    # by default 64 tokens are generated, by the fixture's model four
    found = [place(side, form, asked(5), estimator="attention_sorting") for form in forms]
    assert all(each == found[0] for each in found)


def test_a_curve_takes_the_tokenizer_alone(side: Side, tmp_path: Path) -> None:
    """The weights are not loaded; and where they are, nobody waits for who holds the model."""
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(FOLDER / "biased" / name, tmp_path)
    whole = LocalModel(FOLDER / "biased")
    with ThreadPoolExecutor(1) as pool, whole.alone():
        models = (tmp_path, whole, LocalModel(whole.loaded))
        done = [pool.submit(place, side, each, asked(7), curve=CURVE) for each in models]
        one, *others = [each.result(timeout=60) for each in done]
    assert [one, one] == others


def test_a_folder_is_loaded_once_and_late(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask for it first; they take turns, whichever object holds the model."""
    loads, inside, most = [], [], []
    first = TwoRound.first

    def load(name: str) -> HuggingFaceModel:
        loads.append(name)
        return reader()

    def watched(*args: Any, **options: Any) -> Any:
        inside.append(threading.get_ident())
        most.append(len(inside))
        try:
            time.sleep(0.01)
            return first(*args, **options)
        finally:
            inside.pop()

    monkeypatch.setattr(HuggingFaceModel, "from_pretrained", load)
    monkeypatch.setattr(TwoRound, "first", watched)
    step = side.attention_placer("some/model")
    assert not loads
    loaded = (reader().model, reader().tokenizer)
    with ThreadPoolExecutor(4) as pool:
        done = [
            *(pool.submit(side.placed, step, side.given(asked(5)), "x") for _ in range(3)),
            *(pool.submit(side.answered, loaded, asked(5)) for _ in range(3)),
        ]
        assert all(each.result() for each in done)
    assert loads == ["some/model"]
    assert most == [1] * 6


# --- what goes wrong ---


def test_a_tokenizer_that_truncates_costs_no_document(side: Side) -> None:
    """Whatever length it was saved with: no document vanishes behind the cut."""
    tokenizer = copy.deepcopy(reader().tokenizer)
    tokenizer.model_max_length = 16
    tokenizer.backend_tokenizer.enable_truncation(16)
    short = HuggingFaceModel(reader().model, tokenizer, max_new_tokens=4)
    assert side.answered(short, asked(3)) == side.answered(reader(), asked(3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": ("one",)}, "model must be a HuggingFaceModel, the folder"),
        ({"estimator": "guess"}, "guess"),
        ({"slot": 3}, "slot"),
    ],
    ids=repr,
)
def test_bad_options_are_refused(side: Side, options: dict[str, Any], message: str) -> None:
    """At once."""
    for make in (side.attention_placer, side.two_rounds):
        with pytest.raises((ValueError, TypeError), match=message):
            make(**{"model": "some/model", **options})

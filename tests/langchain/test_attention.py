"""Documents placed by a local model's attention, and its two rounds, on the two readers."""

import asyncio
import copy
import json
import pickle
import shutil
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough

from instruments.corpus import held_out_questions
from langchain_posrag import CAUSRetriever, PlacementTransformer
from langchain_posrag.attention import AttentionPlacement
from langchain_posrag.two_round import TwoRoundChain
from shared_core import GenerationError, HuggingFaceModel
from shared_core.attention.prompt import render_prompt
from shared_core.attention.relevance import ESTIMATORS, ranking_of
from shared_core.attention.rounds import Case, TwoRound
from shared_core.generation.local_model import LocalModel
from shared_core.generation.templates import PromptTemplate
from shared_core.placement.attention import ATTENTION_PLACEMENTS, attention_placement
from shared_core.sensitivity.curve import PositionalCurve

FOLDER = Path(__file__).parents[2] / "instruments"
PLACEMENTS = (*ATTENTION_PLACEMENTS, "relevant_last")
# a curve whose left end is the better one
CURVE = PositionalCurve(model="some", scores=(3.0, 1.0, 0.5, 1.0, 2.0), n=7)


@cache
def reader(name: str) -> HuggingFaceModel:
    return HuggingFaceModel.from_pretrained(FOLDER / name, max_new_tokens=4)


@pytest.fixture(params=["biased", "uniform"])
def model(request: pytest.FixtureRequest) -> HuggingFaceModel:
    return reader(request.param)


@cache
def _questions() -> list[dict[str, Any]]:
    return held_out_questions(9, k=8, seed=5, confusable=0.5)


def given(number: int, k: int = 6) -> dict[str, Any]:
    """An input of the chain, with nested metadata and the gold document in the middle."""
    each = _questions()[number]
    texts = [*each["distractors"][: k - 1]]
    texts.insert(k // 2, each["gold"])
    return {
        "question": each["question"],
        "documents": [
            Document(text, id=f"d{at}", metadata={"page": at, "tags": {"kind": [at]}})
            for at, text in enumerate(texts[:k])
        ],
    }


def many() -> list[dict[str, Any]]:
    """Inputs of different lengths; none, one and two documents among them."""
    return [given(number, k) for number, k in enumerate((6, 0, 3, 8, 1, 2, 5, 7, 6))]


def case_of(asked: dict[str, Any]) -> Case:
    texts = [document.page_content for document in asked["documents"]]
    return Case(question=asked["question"], documents=texts)


def ids(documents: Sequence[Document]) -> list[str | None]:
    return [document.id for document in documents]


def details(documents: Sequence[Document]) -> list[dict[str, Any]]:
    return [document.metadata["posrag"] for document in documents]


def bare(documents: Sequence[Document]) -> list[Document]:
    """The documents as they were before they explained themselves."""
    found = [copy.deepcopy(document) for document in documents]
    for document in found:
        document.metadata.pop("posrag", None)
    return found


# --- the compressor ---


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_order_is_that_of_the_core(
    model: HuggingFaceModel, estimator: str, placement: str
) -> None:
    """With its scores and ranks, for every estimator and placement."""
    asked = given(0)
    [core] = TwoRound(estimator=estimator, placement=placement).first(model, [case_of(asked)])
    placer = AttentionPlacement(model, estimator=estimator, placement=placement)

    found = placer.compress_documents(asked["documents"], asked["question"])

    assert ids(found) == [f"d{at}" for at in core.order]
    ranking = ranking_of(core.scores)
    assert details(found) == [
        {
            "rank": ranking.index(at),
            "slot": slot,
            "score": core.scores[at],
            "placement": placement,
            "estimator": estimator,
        }
        for slot, at in enumerate(core.order)
    ]
    assert {type(each["score"]) for each in details(found)} == {float}
    assert json.dumps([document.metadata for document in found])


def test_nothing_of_the_caller_is_touched(model: HuggingFaceModel) -> None:
    """Ids, texts and metadata survive; what is returned shares nothing with what came."""
    asked = given(1)
    before = copy.deepcopy(asked["documents"])
    found = AttentionPlacement(model).compress_documents(asked["documents"], asked["question"])
    assert sorted(bare(found), key=lambda each: each.id or "") == before
    for document in found:
        document.metadata["tags"]["kind"].append("changed")
    assert asked["documents"] == before


@pytest.mark.parametrize("curve", [None, CURVE])
def test_fewer_than_two_documents_are_copied_as_they_are(curve: PositionalCurve | None) -> None:
    """Without the model, which need not be there."""
    placer = AttentionPlacement("no such folder", curve=curve)
    [document] = documents = given(0, 1)["documents"]
    assert placer.compress_documents([], "x") == []
    assert placer.compress_documents(documents, "x") == documents
    assert placer.compress_documents(documents, "x")[0] is not document
    assert asyncio.run(placer.acompress_documents(documents, "x")) == documents


def test_scores_can_be_left_out(model: HuggingFaceModel) -> None:
    """The order is the same, the metadata the caller's."""
    asked = given(2)
    plain = AttentionPlacement(model, include_scores=False)
    found = plain.compress_documents(asked["documents"], asked["question"])
    explained = AttentionPlacement(model).compress_documents(asked["documents"], asked["question"])
    assert found == bare(explained)


@pytest.mark.parametrize("placement", ATTENTION_PLACEMENTS)
def test_a_curve_places_what_is_ranked_already(
    model: HuggingFaceModel, placement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the tokens of the rendered documents, and without a round of the model."""
    asked = given(3, 7)
    case, template = case_of(asked), PromptTemplate("{question}|{context}", separator=" / ")
    lengths = render_prompt(model.encoder, template, case.documents, case.question).lengths
    expected = ATTENTION_PLACEMENTS[placement](range(7), CURVE.scores_for(sum(lengths)), lengths)
    monkeypatch.setattr(model.model, "forward", None)
    placer = AttentionPlacement(model, placement=placement, curve=CURVE, template=template)

    found = placer.compress_documents(asked["documents"], asked["question"])

    assert ids(found) == [f"d{at}" for at in expected]
    assert details(found) == [
        {"rank": at, "slot": slot, "placement": placement, "curve": "some"}
        for slot, at in enumerate(expected)
    ]


def test_a_curve_takes_the_tokenizer_alone(tmp_path: Path) -> None:
    """The weights are not loaded; and where they are, nobody waits for who holds the model."""
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(FOLDER / "biased" / name, tmp_path)
    asked = given(3, 7)
    whole = LocalModel(FOLDER / "biased")

    def placed(model: Any) -> list[Document]:
        placer = AttentionPlacement(model, curve=CURVE)
        return placer.compress_documents(asked["documents"], asked["question"])

    with ThreadPoolExecutor(1) as pool, whole.alone():
        models = (tmp_path, whole, LocalModel(whole.loaded))
        one, *others = [pool.submit(placed, model).result(timeout=60) for model in models]
    assert [one, one] == others
    with pytest.raises(GenerationError, match="no such/folder at all"):
        AttentionPlacement("no such/folder at all", curve=CURVE).compress_documents(
            asked["documents"], "x"
        )


def test_a_curve_and_the_models_own_ranking_differ(model: HuggingFaceModel) -> None:
    """By Algorithm 1, the first document gets the left end of this curve."""
    found = AttentionPlacement(model, curve=CURVE).compress_documents(given(4)["documents"], "x")
    assert found[0].id == "d0"
    assert attention_placement([0, 1], CURVE.scores_for(10), [5, 5]) == (0, 1)


def test_what_explained_a_document_so_far_stays_but_for_its_slot(model: HuggingFaceModel) -> None:
    """The gate that left it where it was has no say in the new slot."""
    asked = given(5)
    earlier = PlacementTransformer("u_shape", psi="never").invoke(asked["documents"])
    for document in earlier:
        document.metadata["posrag"]["dense"] = 0.5
        document.metadata["score"] = 0.25
    found = AttentionPlacement(model).compress_documents(earlier, asked["question"])
    keys = {"rank", "slot", "score", "placement", "estimator", "dense"}
    assert [each.keys() for each in details(found)] == [keys] * len(found)
    assert {document.metadata["score"] for document in found} == {0.25}


def test_it_works_in_the_compression_retrievers(model: HuggingFaceModel) -> None:
    """Alone and in a pipeline, sync and async."""
    asked = given(6)
    retriever = CAUSRetriever.from_documents(
        asked["documents"], DeterministicFakeEmbedding(size=8), k=6
    )
    placer = AttentionPlacement(model)
    retrieved = retriever.invoke(asked["question"])
    expected = placer.compress_documents(retrieved, asked["question"])
    pipeline = DocumentCompressorPipeline(transformers=[placer])
    for compressor in (placer, pipeline):
        both = ContextualCompressionRetriever(base_compressor=compressor, base_retriever=retriever)
        assert both.invoke(asked["question"]) == expected
        assert asyncio.run(both.ainvoke(asked["question"])) == expected


async def test_async_is_sync(model: HuggingFaceModel) -> None:
    """Also many at once on one model."""
    placer = AttentionPlacement(model)
    asked = many()
    expected = [placer.compress_documents(e["documents"], e["question"]) for e in asked]
    calls = (placer.acompress_documents(e["documents"], e["question"]) for e in asked)
    assert await asyncio.gather(*calls) == expected


def test_threads_take_turns(model: HuggingFaceModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of different objects that hold one model: its concurrency is 1."""
    inside, most = [], []
    first = TwoRound.first

    def watched(self: TwoRound, model: Any, cases: Sequence[Case]) -> Any:
        inside.append(1)
        most.append(len(inside))
        try:
            time.sleep(0.01)
            return first(self, model, cases)
        finally:
            inside.pop()

    monkeypatch.setattr(TwoRound, "first", watched)
    again = (model.model, model.tokenizer)
    asked = given(0)
    calls: list[Any] = [
        *(TwoRoundChain(each).invoke for each in (model, again)),
        *(
            partial(AttentionPlacement(each).compress_documents, query=asked["question"])
            for each in (model, again)
        ),
    ]
    with ThreadPoolExecutor(4) as pool:
        done = [
            pool.submit(call, asked if at < 2 else asked["documents"])
            for at, call in enumerate(calls)
        ]
        assert all(each.result() for each in done)
    assert most == [1] * 4


# --- the model ---


def test_a_model_is_given_in_any_form() -> None:
    """Loaded, as a pair, as a folder and as its path: the same order."""
    loaded, folder = reader("biased"), FOLDER / "biased"
    asked = given(0)
    forms = [loaded, (loaded.model, loaded.tokenizer), folder, str(folder), LocalModel(folder)]
    # by default 64 tokens are generated, by the fixture's model four
    found = [
        AttentionPlacement(form, estimator="attention_sorting").compress_documents(
            asked["documents"], asked["question"]
        )
        for form in forms
    ]
    assert all(each == found[0] for each in found)


def test_a_folder_is_loaded_once_and_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is made of the chain, and however many ask for it first."""
    loads = []

    def load(name: str) -> HuggingFaceModel:
        loads.append(name)
        return reader("biased")

    monkeypatch.setattr(HuggingFaceModel, "from_pretrained", load)
    chain = TwoRoundChain("some/model")
    configurable = chain.configurable_fields(placement=ConfigurableField(id="placement"))
    assert not loads
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(chain.invoke, many()))
    configurable.invoke(given(0), {"configurable": {"placement": "direct_u"}})
    copy.deepcopy(chain).invoke(given(0))
    assert loads == ["some/model"]


def test_a_folder_that_is_not_there_is_an_error_of_one_line() -> None:
    """When it is first asked for, not before."""
    chain = TwoRoundChain("no such/folder at all")
    with pytest.raises(GenerationError, match="no such/folder at all") as caught:
        chain.invoke(given(0))
    assert "\n" not in str(caught.value)
    placer = AttentionPlacement("no such/folder at all")
    with pytest.raises(GenerationError):
        placer.compress_documents(given(0)["documents"], "x")


@pytest.mark.parametrize("wrong", [3, None, ("one",), ("a", "b", "c"), object()])
def test_what_is_no_model_is_refused(wrong: Any) -> None:
    """With what would be one."""
    for make in (AttentionPlacement, TwoRoundChain):
        with pytest.raises(ValueError, match="model must be a HuggingFaceModel, the folder"):
            make(wrong)


@pytest.mark.parametrize(
    "options",
    [{"estimator": "guess"}, {"placement": "u_shape"}, {"slot": 3}, {"template": "{context}"}],
    ids=repr,
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    """At once, the unknown ones too."""
    for make in (AttentionPlacement, TwoRoundChain):
        with pytest.raises(ValueError, match=next(iter(options))):
            make("some/model", **options)


def test_a_curve_that_would_be_of_no_use_is_refused() -> None:
    """Relevant last looks at no position."""
    with pytest.raises(ValueError, match="'relevant_last' does not use a curve"):
        AttentionPlacement("some/model", placement="relevant_last", curve=CURVE)


def test_options_survive_json_and_pickle() -> None:
    """Of a model that was given by its name; a loaded one cannot be written."""
    placer = AttentionPlacement(str(FOLDER / "biased"), curve=CURVE, placement="direct_u")
    asked = given(0)["documents"]
    expected = placer.compress_documents(asked, "x")
    written = AttentionPlacement(**json.loads(placer.model_dump_json()))
    assert written.curve == CURVE
    for same in (written, pickle.loads(pickle.dumps(placer))):
        assert same.compress_documents(asked, "x") == expected
    with pytest.raises(ValueError, match="give its folder or hub name"):
        AttentionPlacement(reader("biased")).model_dump_json()


def test_an_empty_document_and_a_prompt_that_is_too_long_are_refused(
    model: HuggingFaceModel,
) -> None:
    """By the core's own messages."""
    empty = [Document("a b"), Document("")]
    limit = model.model.config.max_position_embeddings
    long = [Document("word " * limit), Document("word " * limit)]
    for documents, message in (
        (empty, "document 1 has no token"),
        (long, f"more than the {limit}"),
    ):
        with pytest.raises(ValueError, match=message):
            AttentionPlacement(model).compress_documents(documents, "x")
        with pytest.raises(ValueError, match=message):
            TwoRoundChain(model).invoke({"question": "x", "documents": documents})


# --- the chain ---


def check_answer(found: dict[str, Any], asked: dict[str, Any], two_rounds: TwoRound, model: Any):
    [core] = two_rounds.run(model, [case_of(asked)])
    assert found.keys() == {"answer", "first_answer", "documents", "order", "scores", "rounds"}
    assert found["answer"] == core.answer
    assert found["first_answer"] == core.first_answer
    assert found["order"] == list(core.order)
    assert found["scores"] == pytest.approx(core.scores, abs=1e-6)
    assert found["rounds"] == core.rounds
    assert bare(found["documents"]) == [asked["documents"][at] for at in core.order]
    for slot, why in enumerate(details(found["documents"])):
        assert why["slot"] == slot
        assert why["score"] == found["scores"][found["order"][slot]]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_chain_answers_as_the_core_does(model: HuggingFaceModel, estimator: str) -> None:
    """Over no, one and more documents."""
    two_rounds = TwoRound(estimator=estimator, placement="direct_u")
    chain = TwoRoundChain(model, estimator=estimator, placement="direct_u")
    for asked in many():
        before = copy.deepcopy(asked)
        check_answer(chain.invoke(asked), asked, two_rounds, model)
        assert asked == before


async def test_batches_and_async_are_what_one_by_one_is(model: HuggingFaceModel) -> None:
    """Up to rounding of the scores, which padding causes."""
    chain = TwoRoundChain(model)
    inputs = many()
    one_by_one = [chain.invoke(asked) for asked in inputs]
    assert [await chain.ainvoke(asked) for asked in inputs] == one_by_one
    for found in (chain.batch(inputs), await chain.abatch(inputs)):
        for asked, answered in zip(inputs, found, strict=True):
            check_answer(answered, asked, TwoRound(), model)
    assert chain.batch([]) == await chain.abatch([]) == []


def test_a_batch_is_one_run(model: HuggingFaceModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that questions share forward passes."""
    runs = []
    run = TwoRound.run

    def counted(self: TwoRound, model: Any, cases: Sequence[Case]) -> Any:
        runs.append(len(cases))
        return run(self, model, cases)

    monkeypatch.setattr(TwoRound, "run", counted)
    TwoRoundChain(model).batch(many())
    assert runs == [9]


def test_the_second_round_is_skipped_where_nothing_moves(
    model: HuggingFaceModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the answer says so."""
    chain = TwoRoundChain(model, placement="relevant_last")
    inputs = [given(number, 2) for number in range(9)]
    rounds = [chain.invoke(asked)["rounds"] for asked in inputs]
    assert {*rounds} == {1, 2}
    monkeypatch.setattr(HuggingFaceModel, "generate", lambda model, prompts: ["?"] * len(prompts))
    found = chain.invoke(inputs[rounds.index(1)])
    assert found["rounds"] == 1
    assert found["order"] == [0, 1]
    assert found["answer"] == found["first_answer"]


class Runs(BaseCallbackHandler):
    """What started, ended and failed, by tag."""

    def __init__(self) -> None:
        self.started: list[list[str]] = []
        self.ended: list[Any] = []
        self.failed: list[BaseException] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        assert kwargs["name"] == "TwoRoundChain"
        self.started.append(kwargs["tags"])

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.ended.append(outputs)

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        self.failed.append(error)


async def test_every_input_is_a_run_with_its_own_config(model: HuggingFaceModel) -> None:
    """One at a time and in batches."""
    chain, runs = TwoRoundChain(model), Runs()
    configs: Any = [{"callbacks": [runs], "tags": [str(at)]} for at in range(2)]
    first = chain.invoke(given(0), configs[0])
    assert (runs.started, runs.ended) == ([["0"]], [first])
    await chain.ainvoke(given(0), configs[1])
    chain.batch([given(0), given(1)], configs)
    await chain.abatch([given(0), given(1)], configs)
    assert runs.started == [["0"], ["1"], ["0"], ["1"], ["0"], ["1"]]
    assert len(runs.ended) == 6
    assert not runs.failed
    with pytest.raises(ValueError):
        chain.batch([given(0)], configs)


async def test_an_input_at_fault_costs_the_others_nothing(model: HuggingFaceModel) -> None:
    """If the exceptions are asked for; else the first of them is raised."""
    chain = TwoRoundChain(model)
    empty = {"question": "x", "documents": [Document("a"), Document("")]}
    inputs: list[Any] = [given(0), {"question": "x"}, given(1), empty, given(2), "x"]
    faults = {1: "must be a dict", 3: "document 1 has no token", 5: "must be a dict"}
    for asynchronous in (False, True):
        runs = Runs()
        options: Any = {"config": {"callbacks": [runs]}, "return_exceptions": True}
        found: list[Any] = (
            await chain.abatch(inputs, **options)
            if asynchronous
            else chain.batch(inputs, **options)
        )
        for at, asked in enumerate(inputs):
            if at in faults:
                assert isinstance(found[at], ValueError)
                assert faults[at] in str(found[at])
            else:
                check_answer(found[at], asked, TwoRound(), model)
        assert (len(runs.ended), len(runs.failed)) == (3, 3)
    with pytest.raises(ValueError, match="must be a dict"):
        chain.batch(inputs)
    with pytest.raises(ValueError, match="must be a dict"):
        await chain.abatch(inputs)


def test_a_batch_without_a_model_fails_once_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not looked for again and again."""
    loads = []
    load = HuggingFaceModel.from_pretrained

    def counted(name: str) -> HuggingFaceModel:
        loads.append(name)
        return load(name)

    monkeypatch.setattr(HuggingFaceModel, "from_pretrained", counted)
    found = TwoRoundChain("no such/folder at all").batch([given(0)] * 4, return_exceptions=True)
    assert [type(each) for each in found] == [GenerationError] * 4
    assert len(loads) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"documents": []}, "must be a dict with 'question' and 'documents', got ..documents"),
        ({"question": "x", "context": []}, "'documents', got ..context', 'question'"),
        ({"question": None, "documents": []}, "'question' must be a string, got NoneType"),
        ({"question": "x", "documents": "text"}, "documents must be"),
        ({"question": "x", "documents": None}, "documents must be a list, got None"),
        (
            {"question": "x", "documents": ["text"]},
            r"documents\[0\] must be a Document, got 'text'",
        ),
        ("x", "must be a dict with 'question' and 'documents', got str"),
    ],
)
def test_bad_input_is_named(wrong: Any, message: str) -> None:
    """Before the model is loaded."""
    with pytest.raises(ValueError, match=message):
        TwoRoundChain("no such folder").invoke(wrong)


def test_it_follows_a_retriever_in_a_pipe(model: HuggingFaceModel) -> None:
    """And is followed by what takes its answer, also in batches."""
    asked = [given(0), given(1)]
    documents = asked[0]["documents"]
    retriever = CAUSRetriever.from_documents(documents, DeterministicFakeEmbedding(size=8), k=4)
    inputs: Any = {"question": RunnablePassthrough(), "documents": retriever}
    chain = inputs | TwoRoundChain(model) | RunnableLambda(lambda found: found["answer"])
    questions = [each["question"] for each in asked]
    expected = [
        TwoRoundChain(model).invoke({"question": each, "documents": retriever.invoke(each)})
        for each in questions
    ]
    answers = [each["answer"] for each in expected]
    assert [chain.invoke(each) for each in questions] == answers
    assert chain.batch(questions) == answers

"""The comparison from questions to result, with readers whose bias is known."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("scipy")

from shared_core import CAUS, HuggingFaceModel, HybridIndex, Journal, PositionProfile
from shared_core.comparison import (
    STRATEGIES,
    Comparison,
    ComparisonResult,
    to_html,
    to_markdown,
)
from shared_core.comparison.strategies import TwoRounds
from shared_core.errors import GenerationError, ProfileNotFoundError
from shared_core.generation import retry
from shared_core.placement import (
    PLACEMENTS,
    UShape,
)
from shared_core.sensitivity.curve import PositionalCurve
from shared_core.tokens import estimate_tokens
from shared_core.types import Query
from tests.core.comparison.making import (
    Counting,
    Function,
    codes,
    first,
    last,
    numbered,
    reader_data,
    refusing,
    smallest,
)

RIGHT_BY_SLOT = (0.998, 0.595, 0.645, 0.833, 0.995)
"""Of the biased reader, k=5, over 400 questions in every slot (instruments/README.md)."""


def by_name(result: ComparisonResult, setting: int = 0) -> dict[str, list[float]]:
    """Return the deciding outcomes of each strategy."""
    strategies = result.settings[setting].strategies
    return {each.name: [*each.outcomes[result.graders[0]]] for each in strategies}


def test_the_gain_that_was_planted_is_found(biased: HuggingFaceModel) -> None:
    """Rank 1 goes from slot 1 to slot 4, rank 0 stays: half of the difference of those slots.

    A shuffle has all slots alike, less what gold has in ranked order.
    """
    data = reader_data(80, k=5, ranks=(0, 1), seed=21)
    planted = Comparison(ks=(5,), graders=("exact",), shuffles=2).run(biased, data)
    truths = {
        "u_shape": (RIGHT_BY_SLOT[4] - RIGHT_BY_SLOT[1]) / 2,
        "shuffle": np.mean(RIGHT_BY_SLOT) - np.mean(RIGHT_BY_SLOT[:2]),
    }
    found = {each.name: each.against for each in planted.settings[0].strategies}
    for name, truth in truths.items():
        lower, upper = found[name]["sequential"].interval
        assert lower <= truth <= upper
    assert (planted.verdict.kind, planted.verdict.strategy) == ("gain", "u_shape")
    gain = found["u_shape"]["sequential"].difference
    assert f"use u_shape: it gains {gain:.2f}" in planted.verdict.text
    assert "hit@1 0.50, hit@5 1.00" in to_markdown(planted)
    assert planted.settings[0].gold_ranks == (0, 1) * 40
    assert planted.settings[0].flips.again.mean == 0  # which a local model need not be asked
    assert planted.settings[0].hit_rates == (0.5, 0.5, 0, 0, 0)
    assert CAUS(hit_rates=planted.settings[0].hit_rates).hit_rates == (0.5, 0.5, 0, 0, 0)


def test_two_rounds_are_made_with_a_local_model_and_kept(
    tmp_path: Path, biased: HuggingFaceModel
) -> None:
    """The plan tells the first rounds; a second run makes none and comes to the same."""
    data = reader_data(12, k=4, ranks=(2,), seed=3)
    comparison = Comparison(ks=(4,), graders=("exact",), strategies=("two_round",), shuffles=1)
    job = comparison.job(biased, data, journal=Journal(tmp_path / "answers"))
    planned = job.plan().calls
    told: list[int] = []
    result = job.run(on_answer=told.append)
    assert sum(told) <= planned <= sum(told) + 12
    assert job.plan().calls == 0
    passes: list[int] = []
    hook = biased.model.register_forward_hook(lambda *_: passes.append(1))
    again = comparison.run(biased, data, journal=Journal(tmp_path / "answers"))
    hook.remove()
    assert passes == []
    assert again.to_json() == result.to_json()
    orders = result.settings[0].strategies[2].orders
    assert all(sorted(order) == [0, 1, 2, 3] for (order,) in orders)
    assert len({*orders}) > 1


def test_first_rounds_keep_to_the_batch_size_and_the_attempts(
    biased: HuggingFaceModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fails in passing, and is made again."""
    sizes, generate = [], TwoRounds.generate

    def failing_once(self: TwoRounds, prompts: Sequence[str]) -> list[str]:
        sizes.append(len(prompts))
        if len(sizes) == 1:
            raise ConnectionError("gone for a moment")
        return generate(self, prompts)

    monkeypatch.setattr(TwoRounds, "generate", failing_once)
    monkeypatch.setattr(retry, "FIRST_WAIT", 0)
    data = reader_data(4, k=4, ranks=(2,), seed=3)
    options = {"strategies": ("two_round",), "shuffles": 1, "max_failed": 0}
    Comparison(ks=(4,), batch_size=1, attempts=2, **options).run(biased, data)
    assert sizes == [1] * 5


def test_a_known_curve_places_in_one_round(biased: HuggingFaceModel) -> None:
    """The best passage at the end that is attended to most, the next one at the other."""
    curve = PositionalCurve(model="mine", scores=(0.8, 0.1, 0.1, 1.0), n=1)
    comparison = Comparison(ks=(4,), strategies=("attention",), shuffles=1, curve=curve)
    data = reader_data(6, k=4, ranks=(0,), seed=3)
    placed = comparison.run(biased, data).settings[0].strategies[2]
    assert {(order[-1], order[0]) for (order,) in placed.orders} == {(0, 1)}
    with pytest.raises(ValueError, match="needs the model's positional curve"):
        replace(comparison, curve=None).job(biased, data)


def test_every_strategy_is_found_and_reported_under_its_name(biased: HuggingFaceModel) -> None:
    """And puts every passage in one place; of several names of a placement its own counts."""
    own = {name: PLACEMENTS[name].name if name in PLACEMENTS else name for name in STRATEGIES}
    comparison = Comparison(
        ks=(3,),
        strategies=[*{name: by for by, name in own.items()}.values()],
        shuffles=1,
        profile=PositionProfile(
            model="mine", accuracy=(0.9, 0.5, 0.8), distraction=(0.3, 0.1, 0.2)
        ),
        curve=PositionalCurve(model="mine", scores=(0.8, 0.1, 1.0), n=1),
    )
    result = comparison.run(biased, reader_data(2, k=3, ranks=(1,), seed=3))
    found = {each.name: each for each in result.settings[0].strategies}
    assert found.keys() == {*own.values()}
    for each in found.values():
        assert all(sorted(order) == [0, 1, 2] for (order,) in each.orders)


def test_a_question_that_finds_no_passage_is_left_out() -> None:
    """As one that the model fails on."""
    data = codes(10)
    lost = replace(
        data, questions=(replace(data.questions[0], question="Zzz?"), *data.questions[1:])
    )
    comparison = Comparison(pipelines=("sparse",), ks=(3,), strategies=("inverse",))
    (failure,) = comparison.run(last, lost).settings[0].failures
    assert (failure.question, failure.reason) == (0, "the pipeline found no passage")
    with pytest.raises(GenerationError, match=r"1 of 10 questions has failed \(sparse, k=3\)"):
        replace(comparison, max_failed=0).run(last, lost)


def test_every_strategy_is_asked_what_it_says() -> None:
    """Best first for the ranked order, best last for its inverse, both edges for the U."""
    result = Comparison(ks=(4,), shuffles=2).run(last, codes(8))
    assert by_name(result)["sequential"] == [0.0] * 8
    assert by_name(result)["inverse"] == [1.0] * 8
    for strategy in result.settings[0].strategies:
        for number, (orders, answers) in enumerate(
            zip(strategy.orders, strategy.answers, strict=True)
        ):
            assert answers == tuple(f"{number}x{order[-1]}" for order in orders)
    assert [len(each.orders[0]) for each in result.settings[0].strategies] == [1, 2, 1, 1, 1]


def test_a_shuffled_question_is_the_mean_of_its_orders() -> None:
    """And the orders differ from question to question, so that no slot is favoured."""
    result = Comparison(ks=(4,), shuffles=4).run(last, codes(30))
    shuffled = result.settings[0].strategies[1]
    expected = [sum(order[-1] == 0 for order in orders) / len(orders) for orders in shuffled.orders]
    assert list(shuffled.outcomes["em"]) == expected
    assert [sum(each) / 4 for each in shuffled.by_order["em"]] == expected
    assert len({*expected}) > 2
    ends = Counter(order[-1] for orders in shuffled.orders for order in orders)
    assert all(15 <= ends[rank] <= 45 for rank in range(4))


def test_equal_prompts_are_asked_once_over_strategies_settings_and_runs(tmp_path: Path) -> None:
    """Two passages have two orders, whatever the strategies are called; the plan knows."""
    model, journal = Counting(first), Journal(tmp_path / "answers")
    comparison = Comparison(ks=(2,), pipelines=("given", "sparse"), shuffles=3)
    job = comparison.job(model, codes(6, k=2), journal=journal)
    plan = job.plan()
    assert model.asked == []
    job.run()
    assert len(model.asked) == len({*model.asked}) == plan.calls <= 6 * 4
    assert plan.prompt_tokens == sum(map(estimate_tokens, model.asked))
    assert (plan.questions, plan.settings, plan.strategies, plan.kept) == (6, 2, 5, 0)
    asked = len(model.asked)
    job.run()
    assert len(model.asked) == asked
    after = job.plan()
    assert (after.kept, after.calls, after.prompt_tokens) == (plan.calls, 0, 0)


def test_one_seed_is_one_result(tmp_path: Path) -> None:
    """Byte by byte, with and without a journal; another seed shuffles anew; JSON holds it all."""
    comparison, data = Comparison(ks=(2, 4), graders=("em", "f1")), codes(10, gold=2)
    result = comparison.run(last, data)
    kept = comparison.run(last, data, journal=Journal(tmp_path / "a"))
    assert kept.to_json() == result.to_json()
    assert replace(comparison, seed=1).run(last, data) != result
    assert ComparisonResult.from_json(result.to_json()) == result


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Invalid JSON"),
        ('{"format": 3, "settings": 5}', "model: Field required"),
    ],
)
def test_other_json_is_refused(text: str, reason: str) -> None:
    """With a sentence and the way out, not a stack of errors."""
    start = "^not the JSON of a comparison by this version of posrag:"
    with pytest.raises(ValueError, match=f"{start} {reason}.*; compare again: answers .*$"):
        ComparisonResult.from_json(text)
    earlier = (
        Comparison(ks=(4,)).run(last, codes(3)).to_json().replace('"format": 3', '"format": 2')
    )
    with pytest.raises(ValueError, match="format: Input should be 3; compare again"):
        ComparisonResult.from_json(earlier)


def failing_on(bad: Sequence[int]) -> Counting:
    return Counting(refusing(lambda number, _: number in bad, "content policy"))


def test_questions_that_the_model_fails_on_are_left_out_and_reported() -> None:
    """Of all strategies alike, with the reason; the others come out as if alone."""
    result = Comparison(ks=(4,)).run(failing_on([3, 11]), codes(20))  # as many as allowed
    setting = result.settings[0]
    assert [(each.question, each.reason) for each in setting.failures] == [
        (3, "RuntimeError: content policy"),
        (11, "RuntimeError: content policy"),
    ]
    assert setting.questions == tuple(n for n in range(20) if n not in (3, 11))
    assert by_name(result)["inverse"] == [1.0] * 18
    text = to_markdown(result)
    assert "2 of 20 questions are left out of all strategies" in text
    assert "- 2: RuntimeError: content policy (first: question 4, sequential)" in text


def test_a_question_that_one_strategy_fails_on_is_left_out_of_all() -> None:
    """Or the others would be compared on a question more; another setting loses nothing."""
    answer = refusing(lambda _, order: order == ["5x3", "5x2", "5x1", "5x0"])
    fewer, setting = Comparison(ks=(2, 4)).run(answer, codes(20)).settings
    assert (fewer.failures, len(fewer.questions)) == ((), 20)
    assert [(each.question, each.strategy) for each in setting.failures] == [(5, "inverse")]
    sequential = setting.strategies[0].answers
    assert sequential == tuple((f"{n}x3",) for n in range(20) if n != 5)


def test_a_function_grades_no_answer_twice_and_none_for_a_plan() -> None:
    """It may be a language model."""
    graded = []

    def judge(answer: str, answers: Sequence[str]) -> float:
        graded.append((answer, *answers))
        return 0.75 if answer in answers else 0.25

    job = Comparison(ks=(4,), graders=(judge, "em")).job(last, codes(10))
    job.plan()
    assert graded == []
    result = job.run()
    assert result.graders == (judge.__qualname__, "em")
    assert by_name(result)["inverse"] == [0.75] * 10
    assert len(graded) == len({*graded})


def test_keywords_are_what_the_keyword_grader_asks_for() -> None:
    """The answers are what the others do."""
    data = codes(10)
    asked = tuple(replace(each, keywords=("0x3",)) for each in data.questions)
    result = Comparison(ks=(4,), graders=("kw", "em")).run(last, replace(data, questions=asked))
    ranked = result.settings[0].strategies[0]
    assert ranked.outcomes["kw"] == (1.0, *[0.0] * 9)
    assert ranked.outcomes["em"] == (0.0,) * 10


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Return how often each of a few characters occurs."""
    return [[text.count(char) + 0.1 for char in "0123456789x"] for text in texts]


def test_pipelines_are_those_of_the_package() -> None:
    """Dense and hybrid rank as `CAUS` does, and sparse as BM25."""
    data = codes(12)
    pipelines = ("dense", "sparse", "hybrid")
    comparison = Comparison(ks=(2, 3), pipelines=pipelines, embed=embed, embedding="e", shuffles=1)
    result = comparison.run(last, data)
    index = HybridIndex()
    index.add(data.passages, embed([passage.text for passage in data.passages]))
    alphas = {"dense": 1.0, "hybrid": None}
    assert [setting.name for setting in result.settings[:2]] == ["dense, k=2", "dense, k=3"]
    for setting in result.settings:
        for question, ids in zip(data.questions, setting.passages, strict=True):
            assert len(ids) == setting.k
            if setting.pipeline in alphas:
                caus = CAUS(k=setting.k, alpha=alphas[setting.pipeline])
                found = caus.search(
                    index, [Query(question.question, embed([question.question])[0])]
                )[0]
                assert ids == tuple(passage.id for passage in found.ranking.passages)
            else:
                number = question.question.split()[-1][:-1]
                assert all(id.startswith(f"{number}-") for id in ids)
    assert result.embedding == "e"


def test_what_a_job_plans_and_runs_is_retrieved_once(tmp_path: Path) -> None:
    """An embedder may be paid by the text, and a reranker takes long."""
    embedded, reranked = [], []

    def embedder(texts: Sequence[str]) -> list[list[float]]:
        embedded.append(len(texts))
        return embed(texts)

    def reranker(question: str, texts: Sequence[str]) -> list[float]:
        reranked.append(question)
        return [float(len(text)) for text in texts]

    pipelines = ("dense", "hybrid", "hybrid+rerank")
    comparison = Comparison(ks=(2, 3), pipelines=pipelines, embed=embedder, reranker=reranker)
    job = comparison.job(last, codes(6), journal=Journal(tmp_path / "answers"))
    job.plan()
    result = job.run()
    assert (embedded, len(reranked)) == ([24, 6], 6)
    assert comparison.run(last, codes(6)) == result


def test_a_reranker_orders_what_was_found() -> None:
    """By its own scores, over more than k passages."""

    def newest(question: str, texts: Sequence[str]) -> list[float]:
        return [float(text.rpartition("x")[2]) for text in texts]

    comparison = Comparison(ks=(2,), pipelines=("given", "given+rerank"), reranker=newest)
    plain, reranked = comparison.run(last, codes(6)).settings
    assert plain.passages[0] == ("0-0", "0-1")
    assert reranked.passages[0] == ("0-3", "0-2")
    bad = Comparison(ks=(2,), pipelines=("given+rerank",), reranker=lambda *_: [1.0])
    with pytest.raises(ValueError, match="one finite number for each of 4 texts"):
        bad.job(last, codes(6))


def test_an_optional_step_gains_over_the_same_pipeline_without_it() -> None:
    """A reranker that puts the gold passage in is told its gain, and so is what adds nothing."""

    def late(question: str, texts: Sequence[str]) -> list[float]:
        return [float(text.endswith("x3")) for text in texts]

    pipelines = ("given", "given+rerank", "given+rerank+distinct")
    comparison = Comparison(ks=(2,), pipelines=pipelines, reranker=late)
    result = comparison.run(first, codes(12, gold=3))
    reranked, distinct = result.steps
    assert (reranked.step, reranked.setting) == ("+rerank", "given+rerank, k=2")
    assert (distinct.step, distinct.setting) == ("+distinct", "given+rerank+distinct, k=2")
    assert (reranked.gain.difference, distinct.gain.difference) == (1, 0)
    assert min(reranked.seconds, distinct.seconds) > 0
    text = to_markdown(result)
    assert "- +rerank gains (given+rerank, k=2): +100.0 [" in text
    assert text.count("points a second") == 1
    assert "- +distinct is not shown to gain (given+rerank+distinct, k=2): +0.0" in text
    assert ComparisonResult.from_json(result.to_json()) == result


def test_steps_leave_out_near_duplicates_and_second_passages_of_a_document() -> None:
    """And the next best take their places."""
    data = codes(3)
    same = tuple(
        replace(
            each,
            text=each.text.replace("x1", "x0"),
            metadata={"doc_id": each.id.replace("-3", "-2")},
        )
        for each in data.passages
    )
    pipelines = ("given", "given+distinct", "given+per_source", "given+distinct+per_source")
    comparison = Comparison(ks=(2,), pipelines=pipelines)
    found = comparison.job(last, replace(data, passages=same)).settings
    ids = [[passage.id for passage in setting.cases[0].passages] for setting in found]
    assert ids == [["0-0", "0-1"], ["0-0", "0-2"], ["0-0", "0-1"], ["0-0", "0-2"]]


def test_hits_and_spans_fill_one_budget() -> None:
    """Of three hits two fit; with neighbours the best one takes that after it instead."""
    data = numbered(codes(3, k=9))
    rest = tuple(replace(each, ranking=each.ranking[::3]) for each in data.questions)
    data = replace(data, questions=rest)
    tokens = estimate_tokens(data.passages[0].text)
    comparison = Comparison(
        ks=(3,), pipelines=("given", "given+spans"), token_budget=2 * tokens + 1
    )
    hits, spans = comparison.job(last, data).settings
    assert [passage.id for passage in hits.cases[0].passages] == ["0-0", "0-3"]
    assert [passage.id for passage in spans.cases[0].passages] == ["0-0+0-1"]
    for setting in (hits, spans):
        for case in setting.cases:
            assert sum(map(estimate_tokens, case.documents)) <= 2 * tokens + 1
    said = to_markdown(comparison.run(last, data))
    assert f"as many as about {2 * tokens + 1} tokens hold" in said
    with pytest.raises(ValueError, match="token_budget=1 is smaller than the best chunk"):
        replace(comparison, token_budget=1).job(last, data)


def test_passages_are_read_in_the_order_of_their_documents() -> None:
    """By each question's own passages; where no places are known, as ranked."""
    data = codes(6)
    placed = tuple(
        replace(
            each, metadata={"doc_id": f"d{int(each.id[-1]) % 2}", "chunk_id": -int(each.id[-1])}
        )
        for each in data.passages
    )
    comparison = Comparison(ks=(4,), strategies=("source_order",), shuffles=1)
    for given, order in ((replace(data, passages=placed), (2, 0, 3, 1)), (data, (0, 1, 2, 3))):
        setting = comparison.run(last, given).settings[0]
        assert setting.strategies[2].name == "source_order"
        assert {*setting.strategies[2].orders} == {(order,)}


def test_neighbours_join_what_was_found_and_count_for_it() -> None:
    """Two passages that touch are one span, and a span with the gold passage is relevant."""
    data = numbered(codes(6, gold=3))
    comparison = Comparison(ks=(2,), pipelines=("given", "given+spans"))
    plain, spans = comparison.run(last, data).settings
    assert plain.passages[0] == ("0-0", "0-1")
    assert spans.passages[0] == ("0-0+0-1+0-2+0-3",)
    assert [sum(setting.hit_rates) for setting in (plain, spans)] == [0, 1]
    assert (plain.gold_ranks[0], spans.gold_ranks[0]) == (None, 0)
    assert spans.strategies[0].estimates["em"].mean == 1
    with pytest.raises(ValueError, match=r"\+spans needs the fields \"document\" .*'0-0' has {}"):
        comparison.job(last, codes(6, gold=3))


def test_questions_that_only_given_passages_tell_apart_are_not_retrieved_for() -> None:
    """A retrieval pipeline finds the same for both, and one outcome would count as two."""
    data = codes(6)
    first = data.questions[0]
    again = replace(first, id="again", ranking=first.ranking[::-1][:3], gold=())
    data = replace(data, questions=(*data.questions, again))
    assert Comparison(ks=(2,), pipelines=("given",)).job(last, data).plan().questions == 7
    for pipelines in (("given", "sparse"), ("sparse",)):
        with pytest.raises(ValueError, match=r"question 7 repeats .*'sparse' finds the same for"):
            Comparison(ks=(2,), pipelines=pipelines).job(last, data)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ks": (1,)}, "k must be an integer >= 2, got 1"),
        ({"ks": ()}, "ks must name at least one"),
        ({"pipelines": ("colbert",)}, "no pipeline 'colbert'"),
        ({"strategies": ("best",)}, "no strategy 'best'"),
        ({"strategies": (UShape,)}, "no strategy <class .*UShape'>; .* and Placement objects"),
        ({"strategies": ("u_shape", "edge_balanced")}, "strategies must differ, got 'u_shape' twi"),
        ({"strategies": "u_shape"}, r"strategies must be a list, .*; give \['u_shape'\]"),
        (
            {"template": "{context} {question}"},
            r"give PromptTemplate\(text\) as a template, got '{c",
        ),
        ({"max_failed": 1.0}, r"max_failed must lie in \[0, 1\)"),
    ],
)
def test_options_are_checked_at_once(options: dict[str, object], message: str) -> None:
    """Before anything is retrieved or asked."""
    with pytest.raises(ValueError, match=message):
        Comparison(**options)  # type: ignore[arg-type]
    with pytest.raises(ProfileNotFoundError, match=r"nobody.*`posrag probe MODEL` measures one$"):
        Comparison(profile="nobody")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategies": ("max_relevance",)}, "needs the model's position profile"),
        ({"pipelines": ("dense",)}, "need embed="),
        ({"pipelines": ("given+rerank",)}, "needs a reranker; give one"),
        ({"pipelines": ("given+per_source",)}, r"the field \"document\" .*; passage '0-0' has {}"),
        ({"ks": (4, 10)}, r"k=10 \(--k\), but no question has more than 4 passages \(given\)"),
    ],
)
def test_what_is_missing_is_said_by_the_job(options: dict[str, object], message: str) -> None:
    """Before the model is asked."""
    with pytest.raises(ValueError, match=message):
        Comparison(**{"ks": (4,), **options}).job(last, codes(5))  # type: ignore[arg-type]


def test_without_a_k_it_is_ten_or_what_there_is_in_all_pipelines() -> None:
    """Four passages are as usual as ten; pipelines are told apart by nothing but their names."""
    for there, taken in ((5, 5), (12, 10)):
        assert Comparison().job(last, codes(3, k=there)).plan().ks == (taken,)
    plan = Comparison(pipelines=("sparse", "given")).job(last, codes(5)).plan()
    assert (plan.settings, plan.ks) == (2, (4,))


@pytest.mark.parametrize("ks", [None, (3,)])
def test_one_passage_has_no_order_to_compare(ks: tuple[int, ...] | None) -> None:
    """And a smaller k is no way out."""
    with pytest.raises(ValueError, match=r"more than 1 passage \(given\)$"):
        Comparison(ks=ks).job(last, codes(5, k=1))


def never_right(prompts: Sequence[str]) -> list[str]:
    return ["no idea"] * len(prompts)


@pytest.mark.parametrize(
    ("model", "kind", "text"),
    [
        (never_right, "all_wrong", "no answer is right in any order, so .* try other --graders"),
        (smallest, "all_right", "every answer is right in every order, so .* raise --k"),
    ],
)
def test_answers_that_are_all_wrong_or_all_right_are_no_finding(
    model: Function, kind: str, text: str
) -> None:
    """They speak of the set-up, of however many questions; no report asks for more of them."""
    result = Comparison(ks=(4,)).run(model, codes(1))
    assert (result.verdict.kind, result.settings[0].verdict.kind) == (kind, kind)
    assert re.match(text, result.verdict.text)
    assert "to show a difference" not in to_markdown(result) + to_html(result)


def test_a_question_without_documents_is_named_by_the_given_pipeline() -> None:
    """The others do not need them."""
    data = codes(5)
    asked = (*data.questions[:4], replace(data.questions[4], ranking=()))
    mixed = replace(data, questions=asked)
    with pytest.raises(ValueError, match="'What has thing 4\\?' has none"):
        Comparison(ks=(4,), pipelines=("given",)).job(last, mixed)
    assert Comparison(ks=(4,), pipelines=("sparse",)).job(last, mixed).plan().questions == 5

"""The probe: where the gold passage stands, what is asked, and what comes out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shared_core.errors import GenerationError
from shared_core.evaluation import bootstrap_interval
from shared_core.evaluation.interim import InterimAnalyses
from shared_core.generation import Journal
from shared_core.generation.fingerprint import model_fingerprint
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.placement.order_gate import decide_order
from shared_core.probe import Probe, stop_reason
from shared_core.sensitivity import PositionProfile, ProbeQuestion
from shared_core.sensitivity.position_sensitivity import index_statistic
from tests.core.sensitivity.models import ScoringReader, SlotReader, questions

U_SHAPE = (1.0, 0.8, 0.6, 0.7, 0.9)
EXACT = Probe(k=5, looks=1)


def test_the_gold_passage_visits_every_slot_and_nothing_else_moves() -> None:
    """One prompt a slot, in the user's template, as planned; the distractors keep their order."""
    sent: list[str] = []

    def model(prompts: Sequence[str]) -> list[str]:
        sent.extend(prompts)
        return ["value0"] * len(prompts)

    template = PromptTemplate("{question}? {{literal}} [{context}]", separator=" | ")
    (question,), probe = questions(1, 5), Probe(k=5, looks=1, template=template)
    plan = probe.plan(model, [question])
    assert sent == []
    profile = probe.run(model, [question])
    assert sorted(sent) == sorted(
        template.render(
            [*question.distractors[:slot], question.gold, *question.distractors[slot:]],
            question.question,
        )
        for slot in range(5)
    )
    assert (profile.n, profile.interval) == (1, None), "one question has no spread"
    assert profile.template == template.text
    assert (plan.questions, plan.slots, plan.calls, plan.kept) == (1, 5, 5, 0)
    assert plan.estimated
    assert plan.prompt_tokens == sum(math.ceil(len(prompt) / 3.5) for prompt in sent)


def test_the_curve_is_the_mean_of_the_outcomes() -> None:
    """Which are kept by question, and agree with what the model is known to read."""
    reader = SlotReader(U_SHAPE)
    asked = questions(60, 5)
    profile = EXACT.run(reader, asked)
    assert profile.outcomes is not None
    assert profile.accuracy is not None
    assert (len(profile.outcomes), profile.n, profile.k) == (60, 60, 5)
    for slot, chance in enumerate(U_SHAPE):
        column = [row[slot] for row in profile.outcomes]
        draws = [reader._draw(ANSWER.render([], question.question)) for question in asked]
        assert column == [float(draw < chance) for draw in draws]
        assert profile.accuracy[slot] == pytest.approx(sum(column) / 60)
    top, middle, bottom = (profile.accuracy[slot] for slot in (0, 2, 4))
    assert profile.psi == pytest.approx((top + bottom) / (2 * middle), abs=1e-5)
    assert profile.interval is not None
    assert profile.interval[0] < profile.psi < profile.interval[1]


def test_a_profile_says_how_it_was_made(tmp_path: Path) -> None:
    """And comes back from its file as it was."""
    probe = Probe(k=5, slots=(0, 2, 4), looks=1, task="codes", seed=3)
    profile = probe.run(SlotReader(U_SHAPE, name="org/reader"), questions(30, 5))
    assert (profile.model, profile.measure, profile.grader) == ("org/reader", "accuracy", "em")
    assert (profile.template, profile.task, profile.seed) == (ANSWER.text, "codes", 3)
    assert (profile.k, profile.slots) == (5, (0, 2, 4))
    assert profile.psi == pytest.approx(EXACT.run(SlotReader(U_SHAPE), questions(30, 5)).psi)
    assert profile.date is not None
    assert {"python", "numpy", "posrag"} <= {*profile.versions}
    assert PositionProfile.load(profile.save(tmp_path / "p.json")) == profile


@pytest.mark.parametrize(
    ("chances", "total", "stopped", "reason"),
    [
        ((1.0, 0.5, 0.5, 0.5, 1.0), 500, "after {n} of 500 questions .* above 1", None),
        ((0.8, 1, 0.95, 0.9, 0.6), 100, "after {n} of 100 questions .* below 1", ""),
        # the index is undefined: neither 0 nor a huge number
        ((0.0,) * 5, 100, "after 20 of 100 questions not one answer was right", "inconclusive"),
        ((0.8,) * 5, 100, None, ""),
    ],
)
def test_no_more_is_asked_once_the_gate_is_decided(
    chances: Sequence[float], total: int, stopped: str | None, reason: str | None
) -> None:
    """And the profile says so; a reader without bias is asked everything."""
    reader = SlotReader(chances)
    profile = Probe(k=5).run(reader, questions(total, 5))
    assert profile.n is not None
    assert len(reader.asked) == 5 * profile.n
    assert (profile.interval is not None and profile.interval[0] > 1) is (reason is None)
    assert (reason or "") in decide_order(profile).reason
    assert (profile.n < total) is (stopped is not None)
    if stopped is None:
        assert profile.stopped is None
        assert profile.interval is not None
        assert profile.interval[0] <= 1 <= profile.interval[1]
    else:
        assert re.match(stopped.format(n=profile.n), profile.stopped or "")
    assert math.isnan(profile.psi) is (profile.interval is None) is (max(chances) == 0)


def test_the_probability_of_the_answer_can_be_measured() -> None:
    """The geometric mean over its tokens, from a model that scores."""
    profile = Probe(k=5, looks=1, measure="logprob").run(ScoringReader(U_SHAPE), questions(3, 5))
    assert profile.measure == "logprob"
    assert profile.grader is None
    assert profile.accuracy == pytest.approx(U_SHAPE)


def test_the_distracting_effect_is_one_less_the_chance_of_abstaining() -> None:
    """PositionalBias, eq. 1, the hard distractor in each slot and no gold passage anywhere.

    On every question: it decides no gate, so there is nothing to stop for.
    """
    asked, probe = questions(100, 5, hard=True), Probe(k=5, measure="distraction")
    profile = probe.run(ScoringReader((0.9, 0.5, 0.4, 0.5, 0.8)), asked)
    assert profile.accuracy is None
    assert profile.distraction == pytest.approx((0.9, 0.5, 0.4, 0.5, 0.8))
    assert math.isnan(profile.psi)
    assert "holds no accuracy" in decide_order(profile).reason
    profile = probe.run(SlotReader((1.0, 0, 0, 0, 1.0)), asked)
    assert (profile.distraction_n, profile.n) == (100, None)
    assert profile.distraction == (1.0, 0.0, 0.0, 0.0, 1.0)


def test_the_interval_allows_for_the_looks() -> None:
    """It is as wide as five looks at an unbiased model demand."""
    every = questions(100, 5)
    looked, once = (Probe(k=5, looks=n).run(SlotReader((0.8,) * 5), every) for n in (5, 1))
    level = InterimAnalyses(total=100, count=5).confidence_at
    expected = bootstrap_interval(
        np.array(looked.outcomes), index_statistic(looked.slots, 5), confidence=level
    )
    assert looked.interval == expected
    assert once.interval is not None
    assert expected[0] < once.interval[0]
    assert expected[1] > once.interval[1]


def test_a_look_judges_by_an_interval_as_wide_as_the_one_reported() -> None:
    """One of a single look would end the run here, and wrongly in too many others."""
    looks, values = InterimAnalyses(total=100, count=5), np.ones((20, 3))
    values[:5, 1] = 0
    statistic = index_statistic((0, 1, 2), 3)
    assert bootstrap_interval(values, statistic, confidence=looks.confidence)[0] > 1
    assert bootstrap_interval(values, statistic, confidence=looks.confidence_at)[0] < 1
    assert stop_reason(values, asked=20, slots=(0, 1, 2), k=3, analyses=looks, seed=0) is None


def test_more_is_asked_while_an_order_may_gain() -> None:
    """The index is sure of its side of 1 long before the gate is sure of a gain."""
    slots, chance = (0, 1, 2, 3, 4), np.random.default_rng(0)
    shares = (0.9, 0.7, 0.5, 0.6, 0.75)
    few = np.stack([chance.permutation(40) < share * 40 for share in shares], axis=1).astype(float)
    looks = InterimAnalyses(total=1000, count=5)

    def told(values: np.ndarray) -> str | None:
        return stop_reason(values, asked=len(values), slots=slots, k=5, analyses=looks, seed=0)

    statistic = index_statistic(slots, 5)
    assert bootstrap_interval(few, statistic, confidence=looks.confidence_at)[0] > 1
    assert told(few) is None
    assert told(np.tile(few, (4, 1))) is not None


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_one_answer_is_no_reason_to_stop(kept: int) -> None:
    """Two are, and the sentence says how many there are, where the model failed on the rest."""

    def told(row: list[float]) -> str | None:
        values, looks = np.tile(row, (kept, 1)), InterimAnalyses(total=100)
        return stop_reason(values, asked=20, slots=(0, 2, 4), k=5, analyses=looks, seed=0)

    sentence = "after 20 of 100 questions (2 of them answered) not one answer was right"
    assert told([0.0, 0.0, 0.0]) == (sentence if kept == 2 else None)
    assert told([0.0, 1.0, 0.0]) is None


def failing_on(*numbers: int, answer: str | None = None) -> Callable[[Sequence[str]], list[str]]:
    """Return a model that fails on the second slot of some questions, or answers them with that."""

    def model(prompts: Sequence[str]) -> list[str]:
        texts = SlotReader((0.8,) * 5).generate(prompts)
        for at, prompt in enumerate(prompts):
            for number in numbers:
                shown = prompt.partition("Context:\n")[2].split("\n\n")
                if shown[1] == f"code of {number}: value{number}":
                    if answer is None:
                        raise RuntimeError("filtered")
                    texts[at] = answer
        return texts

    return model


@pytest.mark.parametrize("looks", [1, 5])
def test_questions_that_the_model_fails_on_are_left_out_and_reported(
    tmp_path: Path, looks: int
) -> None:
    """The profile is that of the others alone, and says how many failed, and why."""
    asked = questions(100, 5)
    others = [each for number, each in enumerate(asked) if number not in (3, 23)]
    probe, journal = Probe(k=5, looks=looks), Journal(tmp_path / "answers")
    answered: list[int] = []
    profile = probe.run(failing_on(3, 23), asked, journal=journal, on_answer=answered.append)
    assert profile.stopped is None
    assert profile.n == 98
    assert profile.outcomes == probe.run(failing_on(), others).outcomes
    assert profile.failures == {"RuntimeError: filtered": 2}
    assert sum(answered) == 500
    assert PositionProfile.load(profile.save(tmp_path / "profile.json")) == profile


def test_more_failures_than_allowed_end_the_probe() -> None:
    """With how many there may be, and why; as many as said are none too many."""
    asked = questions(20, 5)
    with pytest.raises(
        GenerationError, match=r"3 of 20 questions have failed \(model 'model'\), .*: filtered"
    ):
        Probe(k=5).run(failing_on(2, 3, 4), asked)
    assert Probe(k=5, max_failed=0.15).run(failing_on(2, 3, 4), asked).n == 17
    assert Probe(k=5, max_failed=0.5, looks=5).run(failing_on(*range(20, 40)), questions(40, 5)).n
    empty = Probe(k=5).run(failing_on(1, 2, answer=" "), questions(10, 5))
    assert (empty.n, empty.empty, empty.failures) == (10, 2, {}), "they are answers"


def test_any_function_grades_but_not_for_a_plan() -> None:
    """Graded outcomes are averaged as they are; it may be a language model paid by the call."""
    graded = []

    def half(answer: str, references: Sequence[str]) -> float:
        graded.append(answer)
        return 0.5 if answer in references else 0.25

    probe = Probe(k=5, looks=1, grader=half)
    plan = probe.plan(SlotReader((1, 0, 0, 0, 1)), questions(5, 5))
    assert graded == []
    profile = probe.run(SlotReader((1, 0, 0, 0, 1)), questions(5, 5))
    assert len(graded) == plan.calls
    assert profile.accuracy == (0.5, 0.25, 0.25, 0.25, 0.5)
    assert "half" in (profile.grader or "")


class Noting(SlotReader):
    """Notes what it was asked last."""

    last = ""

    def generate(self, prompts: Sequence[str]) -> list[str]:
        self.last = prompts[-1]
        return super().generate(prompts)


def test_a_profile_is_of_the_model_as_it_was_before_it_was_asked(tmp_path: Path) -> None:
    """Under that identity its answers are kept, and its two curves joined."""
    reader = Noting(U_SHAPE)
    before = model_fingerprint(reader)
    profile = Probe(k=5, looks=1).run(reader, questions(3, 5), journal=Journal(tmp_path / "kept"))
    assert profile.identity == before != model_fingerprint(reader)


ONE, OTHER = questions(2, 5)


@pytest.mark.parametrize(
    ("options", "asked", "message"),
    [
        ({"measure": "logprob"}, [ONE], r"logprob.*needs a local model.*slot-reader"),
        ({"measure": "distraction"}, [ONE], r"'code of 0' has no hard_distractor"),
        ({}, [ONE, OTHER, ONE], "question 3 repeats question 1"),
        (
            {},
            [replace(ONE, distractors=(ONE.gold, *ONE.distractors[1:]))],
            "also among its distractors",
        ),
        (
            {},
            [ONE, questions(2, 3)[1]],
            r"'code of 1' has 2 distractors, and k=5 passages take 4; give k=3 \(--k 3\) or less",
        ),
        (
            {},
            [replace(ONE, distractors=ONE.distractors[:1])],
            "has 1 distractor, and k=5 passages take 4; give each question at least 2",
        ),
    ],
)
def test_what_cannot_be_asked_is_named_before_anything_is(
    options: dict[str, object], asked: list[ProbeQuestion], message: str
) -> None:
    """By question, with the way out."""
    reader = SlotReader(U_SHAPE)
    with pytest.raises(ValueError, match=message):
        Probe(k=5, **options).run(reader, asked)  # type: ignore[arg-type]
    assert reader.asked == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 2}, "k must be an integer >= 3, got 2"),
        ({"looks": 0}, "looks must be an integer >= 1, got 0"),
        ({"measure": "vibes"}, "'accuracy', 'logprob' or 'distraction', got 'vibes'"),
        (
            {"template": "{context} {question}"},
            r"give PromptTemplate\(text\) as a template, got '{c",
        ),
        ({"k": 5, "slots": (0, 4)}, r"slots must ascend and hold \(0, 2, 4\), got \(0, 4\)"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, object], message: str) -> None:
    """When the probe is made, not in the middle of the work."""
    with pytest.raises(ValueError, match=message):
        Probe(**options)  # type: ignore[arg-type]

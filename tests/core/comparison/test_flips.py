"""How many answers change with the order; where the question stands; probabilities in compare."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from shared_core import HuggingFaceModel, Journal
from shared_core.comparison import (
    Comparison,
    ComparisonData,
    ComparisonResult,
    to_html,
    to_markdown,
)
from tests.core.comparison.making import Counting, codes, first, reader_data, smallest


def unlabelled(data: ComparisonData) -> ComparisonData:
    """Return the same questions without accepted answers."""
    return replace(data, questions=tuple(replace(each, answers=()) for each in data.questions))


class Wavering(Counting):
    """Ignores the order, and says something else every third time on average."""

    def __init__(self) -> None:
        self.drawn = random.Random(0)
        super().__init__(lambda prompts: [self.drawn.choice("aab") for _ in prompts])


def test_what_reads_the_first_passage_changes_as_the_rankings_say() -> None:
    """Whenever a random order does not begin with the best passage; equal orders do not count."""
    comparison = Comparison(again=True, shuffles=5)
    result = comparison.run(first, codes(60))
    (setting,) = result.settings
    ((ranked,), *_) = setting.strategies[0].orders
    shuffled = next(each for each in setting.strategies if each.name == "shuffle")
    shares = []
    for orders in shuffled.orders:
        others = [order for order in orders if order != ranked]
        shares.append(sum(order[0] != 0 for order in others) / len(others))
    assert setting.flips.changed.mean == pytest.approx(sum(shares) / len(shares))
    assert 0.7 < setting.flips.changed.mean < 0.85
    assert "order matters to this model" in to_html(result)
    few = comparison.run(first, codes(2)).settings[0].flips
    assert -1 <= few.interval[0] < few.interval[1] == 1
    alike = replace(comparison, same=lambda a, b: a[:1] == b[:1]).run(first, codes(10))
    assert alike.settings[0].flips.changed.mean == 0


def test_an_empty_answer_that_is_not_graded_is_not_called_wrong() -> None:
    result = Comparison(ks=(4,)).run(lambda prompts: ["" for _ in prompts], unlabelled(codes(20)))
    assert "140 of 140 answers are empty." in to_markdown(result)


def test_what_changes_by_itself_is_taken_off() -> None:
    flips = Comparison(again=True, shuffles=3).run(Wavering(), codes(150)).settings[0].flips
    assert flips.changed.mean > 0.3
    assert flips.again.mean > 0.3
    assert flips.interval[0] < 0 < flips.interval[1]


def test_without_asking_again_it_is_said_that_it_is_not_known() -> None:
    model = Counting(first)
    result = Comparison().run(model, codes(10))
    assert len(model.asked) == len({*model.asked})
    flips = result.settings[0].flips
    assert flips.again is None
    assert "how many change without it was not asked (again=, --again)" in to_markdown(result)


def test_questions_without_answers_are_asked_whether_the_order_matters(tmp_path: Path) -> None:
    """Ranked prompts are asked twice then, and the answers take the place of accepted ones."""
    model, data = Counting(first), unlabelled(codes(30))
    job = Comparison().job(model, data, journal=Journal(tmp_path / "answers"))
    calls = job.plan().calls
    result = job.run()
    assert len(model.asked) == len({*model.asked}) + 30 == calls
    assert (job.plan().calls, job.run()) == (0, result)
    assert len(model.asked) == calls
    assert (result.graders, result.verdict.kind) == (("same",), "order_matters")
    assert result.verdict.text.startswith("the order matters to this model: ")
    means = {each.name: each.estimates["same"].mean for each in result.settings[0].strategies}
    assert means["sequential"] == 1 > means["inverse"] == 0
    assert ComparisonResult.from_json(result.to_json()) == result
    assert "The order matters to this model" in to_html(result)
    assert "1 is the answer in ranked order" in to_markdown(result)
    for report in (to_html(result), to_markdown(result)):  # 1 itself: the test is of a constant
        assert "less sequential" not in report
        assert "p-value" not in report
    calm = Comparison(ks=(3, 4)).run(smallest, data)
    assert calm.verdict.kind == "order_not_shown"
    assert "not shown to matter" in to_html(calm)


def test_answers_to_some_questions_only_are_refused() -> None:
    labelled = codes(2).questions
    with pytest.raises(ValueError, match="some questions have accepted answers and some have none"):
        replace(codes(2), questions=(labelled[0], replace(labelled[1], answers=())))


def test_what_a_layout_gains_is_said_first_and_in_a_line_of_its_own() -> None:
    """Of a model that reads only if the question comes first: by its orders nothing is told."""

    def model(prompts: Sequence[str]) -> list[str]:
        first_of = [prompt.index("What has") < prompt.index("Context:") for prompt in prompts]
        numbers = [prompt.split("thing ")[-1].partition(" ")[0] for prompt in prompts]
        return [
            f"{at}x0" if is_first else "" for at, is_first in zip(numbers, first_of, strict=True)
        ]

    layouts = ("after", "before", "both")
    result = Comparison(layouts=layouts, strategies=("shuffle",)).run(model, codes(12))
    names = [setting.name.removeprefix("given, k=4") for setting in result.settings]
    assert names == ["", ", question first", ", question first and last"]
    found = result.steps[0]
    assert (found.step, found.gain.difference) == ("question first instead of last", 1)
    said = "question first instead of last gains (given, k=4, question first): +100.0 ["
    assert f"- {said}" in to_markdown(result)
    assert said in to_html(result)
    assert result.verdict.text.startswith("question first instead of last gains 1.00 [")
    with pytest.raises(ValueError, match="layout must be 'after', 'before' or 'both'"):
        Comparison(layouts=("above",))  # type: ignore[arg-type]


def test_a_biased_reader_is_shown_by_probabilities_of_few_questions(
    biased: HuggingFaceModel,
) -> None:
    """Where right and wrong of as many show nothing."""
    data = reader_data(24, k=5, ranks=(1,), seed=3)
    options = Comparison(ks=(5,), strategies=("u_shape",), graders=("logprob",))
    result = options.run(biased, data)
    assert (result.graders, result.verdict.kind) == (("logprob",), "gain")
    assert result.settings[0].flips is None
    assert all(0 <= float(text) <= 1 for text in result.settings[0].strategies[0].answers[0])
    with pytest.raises(ValueError, match="'logprob' needs accepted answers and a local model"):
        options.run(first, data)
    with pytest.raises(ValueError, match="asks for no answers that others could grade"):
        Comparison(graders=("logprob", "em"))

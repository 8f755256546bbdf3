"""``posrag reproduce positionalbias`` and ``goodpositions``, with a reader."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")
pytest.importorskip("ir_measures")

from shared_core.attention import (
    Case,
    OneRound,
    SelfElicit,
    TwoRound,
    attention_by_position,
)
from shared_core.cli.console import Console
from shared_core.cli.main import main
from shared_core.cli.reproduce import controlled, tables
from shared_core.errors import GenerationError
from shared_core.evaluation import GRADERS, grade
from shared_core.generation import CallableModel, HuggingFaceModel, ModelClient
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.sensitivity import ProbeQuestion
from shared_core.sensitivity.distraction import effect_of
from tests.cli.conftest import written
from tests.cli.test_outputs import ranked, rotated

READERS = Path(__file__).parents[2] / "instruments"
BIASED = str(READERS / "biased")
ASKING = ["--model", BIASED, "--max-new-tokens", "4"]
ABSTAINING = ["--abstain-template", str(READERS / "prompt.txt")]


def reproduce(experiment: str, output: Path, *arguments: str) -> tuple[dict[str, Any], str]:
    """Run the command; return its JSON and what it printed."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.setenv("COLUMNS", "80")
        assert main(["reproduce", experiment, *arguments, "--output", str(output)]) == 0
    return json.loads(output.read_text()), out.getvalue()


def test_positional_bias_on_a_reader(tmp_path: Path) -> None:
    """The effects of Table 4 are those of single passages; `outputs` holds the others."""
    data = written(tmp_path / "data.jsonl", ranked(24))
    options = ["--data", str(data), *ASKING, *ABSTAINING]
    found, _ = reproduce("positionalbias", tmp_path / "first.json", *options)
    top = found["table_4"]["given"]
    assert top["HITS@5"]["mean"] == 1
    assert top["Precision@5"]["mean"] == pytest.approx(0.2)
    hard = [float(effect > 0.8) for effect in top["MaxDE@5"]["outcomes"]]
    assert top["Hard@5"]["outcomes"] == hard
    assert len(hard) == 24
    model = HuggingFaceModel.from_pretrained(BIASED, max_new_tokens=4)
    for line, effect in zip(ranked(24)[:4], top["MaxDE@5"]["outcomes"], strict=False):
        others = [each for at, each in enumerate(line["documents"][:5]) if at != line["gold"]]
        prompts = [ANSWER.render([each], line["question"]) for each in others]
        effects = map(effect_of, model.log_probabilities(prompts, [" NO-RESPONSE"] * len(others)))
        assert effect == pytest.approx(max(effects), abs=1e-5)  # float32, batched otherwise


def test_the_profile_owes_nothing_to_the_questions_that_are_arranged_by_it(tmp_path: Path) -> None:
    """Gold passages known in the second half alone: no Table 1, and no strategy that needs one."""
    lines = ranked(8)
    for line in lines[:4]:
        del line["gold"]
    data = written(tmp_path / "data.jsonl", lines)
    found, out = reproduce("positionalbias", tmp_path / "found.json", "--data", str(data), *ASKING)
    assert found["table_1"] is None
    assert "Not measured: no question of the first half (4 questions)" in out
    (setting,) = found["tables_2_and_3"]["settings"]
    names = [each["name"] for each in setting["strategies"]]
    assert names == ["sequential", "shuffle", "inverse"]
    (shuffle,) = (each["against"]["shuffle"] for each in setting["strategies"][:1])
    assert shuffle["test"] == "within-question permutation"
    assert f"{shuffle['test']} test against Shuffle" in " ".join(out.split())
    assert len(found["table_4"]["given"]["Hard@5"]["outcomes"]) == 4


def test_a_controlled_question_is_chosen_by_effect_and_rank() -> None:
    """By hand: the first relevant one, the first four below 0.2, the first above 0.8."""
    ranking = [(text, text in "ce") for text in "abcdefghij"]
    choose = partial(controlled.controlled_question, "Which?", ("x",), ranking)
    effects = (0.5, 0.1, 0.0, 0.81, 0.0, 0.2, 0.19, 0.9, 0.0, 0.15)
    assert choose(effects) == ProbeQuestion(
        question="Which?",
        answers=("x",),
        gold="c",
        distractors=("b", "g", "i", "j"),
        hard_distractor="d",
    )
    easy = [min(effect, 0.5) for effect in effects]
    without = choose(easy)
    assert without is not None
    assert without.hard_distractor is None
    assert choose([*effects[:9], 0.3]) is None


def test_a_hard_distractor_stays_where_it_is_while_the_gold_passage_moves() -> None:
    """Read off the prompts: each slot of Table 1 once; a weak distractor makes room for it."""
    question = ProbeQuestion(
        question="?",
        answers=("gold",),
        gold="gold",
        distractors=("w", "v", "u", "t"),
        hard_distractor="hard",
    )
    template = PromptTemplate("{context} {question}", separator=" ")
    cells = controlled.requests(question, template, template, exact=False)
    words = {cell: prompt.removesuffix(" ?").split() for cell, (prompt,) in cells.items()}
    assert words["None", 2] == ["w", "v", "gold", "u", "t"]
    assert words["Position 3", 0] == ["gold", "w", "hard", "v", "u"]
    assert words["Position 3", 4] == ["w", "v", "hard", "u", "gold"]
    assert words["effect", 1] == ["w", "hard", "v", "u", "t"]
    assert len(words) == len({*map(tuple, words.values())}) == 5 + 4 + 4 + 5
    said = {
        cell: " ".join(each) if cell[0] == "effect" else each[0] for cell, each in words.items()
    }
    found = controlled.table_1([(question, said), (replace(question, hard_distractor=None), said)])
    means = {name: [cell["mean"] for cell in row.values()] for name, row in found["rows"].items()}
    assert means == {name: [1, 0, 0, 0, 0][: len(row)] for name, row in means.items()}
    assert [*found["rows"]["Position 3"]] == ["1", "2", "4", "5"]
    assert found["with_hard"] == [0]
    assert found["distraction"] == [1.0] * 5


def test_good_positions_on_a_reader(tmp_path: Path) -> None:
    """Tables 2, 3 and 5; what two tables call by two names is measured once."""
    lines = rotated(16, k=7)
    data = written(tmp_path / "data.jsonl", lines)
    options = ["--data", str(data), "--k", "7", *ASKING]
    found, out = reproduce("goodpositions", tmp_path / "found.json", *options)
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert [*found["table_5"]["Ordered"]["Vanilla + Default"]] == ["3", "5", "7"]

    answers = {name: row["answers"] for name, row in found["table_3"].items()}
    ordered, fewer = found["table_2"]["Ordered"], found["table_5"]["Ordered"]
    assert answers["Default, original"] == ordered["Vanilla"]["answers"]
    assert answers["U-shaped, original"] == fewer["Vanilla + U-shaped"]["7"]["answers"]
    assert ordered["Our"]["answers"] == fewer["Our Ranking + U-shaped"]["7"]["answers"]

    model = HuggingFaceModel.from_pretrained(BIASED, max_new_tokens=4)
    cases = [Case(question=each["question"], documents=each["documents"]) for each in lines]
    asked = [
        ProbeQuestion(
            question=each["question"],
            answers=tuple(each["answers"]),
            gold=each["documents"][0],
            distractors=tuple(each["documents"][1:]),
        )
        for each in lines
    ]
    curve = attention_by_position(model, asked, k=7).curve
    expected = {
        "Default, original": OneRound(placement="back_first"),
        "Default, reverse": OneRound(placement="front_first"),
        "U-shaped, original": OneRound(placement="attention_u_shape", curve=curve),
        "U-shaped, reverse": OneRound(placement="attention_u_shape_reversed", curve=curve),
    }
    for name, method in expected.items():
        assert answers[name] == [each.answer for each in method.run(model, cases)]
        outcomes = [
            grade(GRADERS["subspan"], text, each["answers"])
            for text, each in zip(answers[name], lines, strict=True)
        ]
        assert found["table_3"][name]["outcomes"] == outcomes
    assert len({*map(tuple, answers.values())}) > 2  # or it would not show which is which
    last_is_best = [replace(case, documents=case.documents[::-1]) for case in cases]
    for name, two_rounds in (("Our", TwoRound()), ("SELFELICIT", SelfElicit())):
        said = [each.answer for each in two_rounds.run(model, last_is_best)]
        assert ordered[name]["answers"] == said
    assert found["table_2"]["Unordered"]["Our"]["against"]["p_value"] <= 1


def test_good_positions_leaves_a_question_out_of_all_tables(tmp_path: Path) -> None:
    """Also of the rows before its failure; it comes to what a run without it comes to.

    Here one that fits into the prompt of Vanilla, but not into that of RankGPT.
    """
    lines = rotated(8, k=5)
    others = written(tmp_path / "others.jsonl", [*lines[:2], *lines[3:]])
    lines[2]["distractors"][2] += " It opened in winter." * 76
    data = written(tmp_path / "data.jsonl", lines)
    found, out = reproduce("goodpositions", tmp_path / "found.json", "--data", str(data), *ASKING)
    said = " ".join(out.split())
    assert "1 of 8 questions is left out of all tables" in said
    assert "(first: question 3, RankGPT, Unordered, 5 documents)" in said
    (failure,) = found["failures"]
    assert (failure["question"], failure["strategy"]) == (2, "RankGPT, Unordered, 5 documents")
    assert "more than the 512 that biased reads" in failure["reason"]
    alone, out = reproduce("goodpositions", tmp_path / "alone.json", "--data", str(others), *ASKING)
    assert "left out" not in out
    assert alone["failures"] == []
    for table in ("table_2", "table_3", "table_5"):
        assert found[table] == alone[table]


def test_a_question_that_the_model_fails_on_is_left_out() -> None:
    """Whichever of its requests it is; too few are an error."""

    def answer(prompts: Sequence[str]) -> list[str]:
        if any(prompt in failing for prompt in prompts):
            raise RuntimeError("out of memory")
        return [prompt.upper() for prompt in prompts]

    asked = {number: [(f"a{number}",), ("all",)] for number in range(10, 60)}
    asking = tables.Asking(Console(), ModelClient.of(CallableModel(answer, batch_size=16)))
    failing = {"all"}
    with pytest.raises(GenerationError, match=r"failed on 50 of 50 .* RuntimeError: out of memory"):
        asking.answers("table", asked, at="Table 1")
    failing = {"a13", "a59"}
    found, failures = asking.answers("table", asked, at="Table 1")
    assert [each.question for each in failures] == [13, 59]
    assert {each.reason for each in failures} == {"RuntimeError: out of memory"}
    assert found == {n: (f"A{n}", "ALL") for n in range(10, 60) if n not in (13, 59)}

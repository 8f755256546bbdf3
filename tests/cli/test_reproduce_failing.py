"""``posrag reproduce`` on questions of which some do not fit into the reader's 512 tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")
pytest.importorskip("ir_measures")

from shared_core.cli.main import main
from shared_core.cli.reproduce.controlled import Controls
from shared_core.cli.reproduce.failing import each_answered
from shared_core.errors import GenerationError
from shared_core.generation import Journal, ModelClient, as_generator
from shared_core.generation.responses import Failed
from shared_core.generation.templates import PromptTemplate
from shared_core.sensitivity import ProbeQuestion
from tests.cli.test_reproduce_papers import ASKING, ranked_lines, reproduce, written

LONG = "It opened in winter. " * 120


@pytest.fixture(autouse=True)
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's own answers out of the tests."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path / "profiles"))
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path / "profiles"


def spoilt(lines: Sequence[dict[str, Any]], *numbers: int) -> list[dict[str, Any]]:
    """Make one of the documents of some questions too long for the reader, but not the gold one."""
    changed = [dict(line) for line in lines]
    for number in numbers:
        documents = list(changed[number]["documents"])
        documents[3] = LONG + documents[3]
        changed[number]["documents"] = documents
    return changed


def test_good_positions_leaves_a_question_out_of_all_tables(tmp_path: Path) -> None:
    """And comes to what a run without it comes to."""
    lines = ranked_lines(12, k=5)
    data = written(tmp_path / "data.jsonl", spoilt(lines, 6))
    found, out = reproduce("goodpositions", tmp_path / "found.json", "--data", str(data),
                           "--k", "5", *ASKING)  # fmt: skip
    said = " ".join(out.split())
    assert "1 of 12 questions is left out of all tables" in said
    assert "(first: question 7, Default, original, Unordered, 5 documents)" in said
    (failure,) = found["failures"]
    assert failure["question"] == "7"
    assert "more than the 512 that biased reads" in failure["reason"]

    others = written(tmp_path / "others.jsonl", [*lines[:6], *lines[7:]])
    alone, out = reproduce("goodpositions", tmp_path / "alone.json", "--data", str(others),
                           "--k", "5", *ASKING)  # fmt: skip
    assert "left out" not in out
    assert alone["failures"] == []
    for table in ("table_2", "table_3", "table_5"):
        assert found[table] == alone[table]


def test_good_positions_leaves_a_question_out_of_the_rows_before_its_failure(
    tmp_path: Path,
) -> None:
    """Here one that fits into the prompt of Vanilla, but not into that of RankGPT."""
    lines = ranked_lines(6, k=5)
    lines[2]["documents"][3] += " It opened in winter." * 76
    data = written(tmp_path / "data.jsonl", lines)
    found, _ = reproduce("goodpositions", tmp_path / "found.json", "--data", str(data),
                           "--k", "5", *ASKING)  # fmt: skip
    (failure,) = found["failures"]
    assert failure["at"] == "RankGPT, Unordered, 5 documents"
    assert len(found["table_2"]["Unordered"]["Vanilla"]["answers"]) == 5
    assert len(found["table_2"]["Ordered"]["RankGPT"]["answers"]) == 5
    assert len(found["table_3"]["U-shaped, original"]["answers"]) == 5


def test_whatever_a_local_model_raises_is_its_failure() -> None:
    """Such as want of memory, which comes as a RuntimeError."""

    def function(some: Sequence[int], told: Callable[[int], None]) -> list[int]:
        if 3 in some:
            raise RuntimeError("out of memory")
        told(len(some))
        return [10 * each for each in some]

    told: list[int] = []
    asker = ModelClient(name="m", call=lambda requests: [""])
    found = each_answered(function, range(50), asker, on_answer=told.append)
    failed = found.pop(3)
    assert isinstance(failed, Failed)
    assert failed.reason == "RuntimeError: out of memory"
    assert found == [10 * each for each in range(50) if each != 3]
    assert sum(told) == 50


def test_an_interrupt_says_how_many_of_all_answers_had_come(tmp_path: Path) -> None:
    """Not of those alone that were being asked for when it came."""

    def function(some: Sequence[int], told: Callable[[int], None]) -> list[int]:
        if 40 in some:
            told(6)
            raise KeyboardInterrupt("3 of 4 answers are kept")
        told(2 * len(some))
        return [*some]

    journal = Journal(tmp_path / "kept.jsonl")
    asker = ModelClient(name="m", call=lambda requests: [""], journal=journal)
    with pytest.raises(
        KeyboardInterrupt, match=r"^70 of 200 answers are there, and kept in .*kept"
    ):
        each_answered(function, range(100), asker, weight=lambda _: 2)


def test_a_model_that_fails_from_the_start_is_given_up_soon() -> None:
    """Such as by a wrong key: nobody waits for 5,000 refusals of 2,500 questions."""
    calls: list[int] = []

    def function(some: Sequence[int], told: Callable[[int], None]) -> list[int]:
        calls.append(len(some))
        raise PermissionError("no such key")

    asker = ModelClient(name="m", call=lambda requests: [""])
    with pytest.raises(GenerationError, match=r"each of the first 32 questions; .* no such key"):
        each_answered(function, range(2500), asker)
    assert len(calls) == 63


def test_positional_bias_leaves_questions_out_of_what_they_fail_in(
    tmp_path: Path, profiles: Path
) -> None:
    """Number 4 and 20 by a single passage; number 7, whose passages are long, by five of them."""
    lines = spoilt(ranked_lines(24), 3, 19)
    lines[6]["documents"] = [" ".join([text] * 12) for text in lines[6]["documents"]]
    data = written(tmp_path / "data.jsonl", lines)
    options = ["--data", str(data), *ASKING]
    found, out = reproduce("positionalbias", tmp_path / "found.json", *options)
    said = " ".join(out.split())
    assert "2 of 24 questions are left out of Tables 1 and 4 and Figure 1" in said
    assert "1 of 24 questions is left out of Table 1," in said
    assert "1 of 12 questions is left out of Tables 2 and 3, given, k=5," in said
    assert "(first: question 20, sequential)" in said
    assert [each["question"] for each in found["failures"]] == ["4", "20"]
    assert {each["at"] for each in found["failures"]} == {"distracting effect"}
    (failure,) = found["table_1"]["failures"]
    assert (failure["question"], failure["at"]) == ("7", "Table 1")
    assert "more than the 512" in failure["reason"]
    assert len(found["table_4"]["given"]["MaxDE@5"]["outcomes"]) == 22
    (setting,) = found["tables_2_and_3"]["settings"]
    assert [each["question"] for each in setting["failures"]] == [7]  # the 20th is the 8th of 12
    assert len(setting["questions"]) == 11

    journal = (profiles / "biased.answers.jsonl").read_bytes()
    reproduce("positionalbias", tmp_path / "again.json", *options)
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "found.json").read_bytes()
    assert (profiles / "biased.answers.jsonl").read_bytes() == journal


@pytest.mark.parametrize(
    ("experiment", "message"),
    [
        ("goodpositions", "the model has failed on every question that is left (6)"),
        ("positionalbias", "the model has failed on every question that is left (6)"),
    ],
)
def test_a_model_that_fails_on_every_question_is_an_error(
    experiment: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the first failure; and nothing is saved."""
    data = written(tmp_path / "data.jsonl", spoilt(ranked_lines(6, k=5), *range(6)))
    options = ["--data", str(data), *ASKING, "--output", str(tmp_path / "found.json")]
    options += ["--k", "5"] if experiment == "goodpositions" else []
    assert main(["reproduce", experiment, *options]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "more than the 512" in captured.err
    assert not (tmp_path / "found.json").exists()


def test_one_question_alone_makes_no_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The others have failed, and an interval takes two."""
    data = written(tmp_path / "data.jsonl", spoilt(ranked_lines(4, k=5), 0, 1, 3))
    assert main(["reproduce", "goodpositions", "--data", str(data), *ASKING, "--k", "5"]) == 2
    assert "has failed on 3 of 4 questions, and the tables take at least 2" in (
        capsys.readouterr().err
    )


def test_controls_report_a_question_by_its_place_and_count_everything(tmp_path: Path) -> None:
    """A model that refuses one prompt of one question costs that question alone."""

    def last(prompts: Sequence[str]) -> list[str]:
        if any("w1" in prompt.split() and prompt.startswith("gold1") for prompt in prompts):
            raise RuntimeError("refused")
        return [prompt.split()[-2] for prompt in prompts]

    template = PromptTemplate("{context} {question}", separator=" ")
    controls = Controls(
        model=as_generator(last),
        journal=Journal(tmp_path / "answers.jsonl"),
        template=template,
        abstain=template,
    )
    questions = [
        ProbeQuestion(
            question=f"{number}?",
            answers=(f"gold{number}",),
            gold=f"gold{number}",
            distractors=tuple(f"{letter}{number}" for letter in "wvut"),
            hard_distractor=f"hard{number}" if number else None,
        )
        for number in range(3)
    ]
    told: list[int] = []
    found = controls.run(questions, on_answer=told.append, on_wait=print)
    (failure,) = found.failures
    assert (failure.question, failure.reason) == (1, "RuntimeError: refused")
    assert sum(told) == controls.calls(questions) == 5 + 2 * 18
    assert found.outcomes["None"].tolist() == [[0, 0, 0, 0, 1]] * 2
    assert found.with_hard == (1,)
    with pytest.raises(GenerationError, match="failed on every question that is left"):
        controls.run(questions[1:2], on_answer=told.append, on_wait=print)


def test_what_is_kept_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A JSON that cannot be written to its end leaves what was there before."""
    from shared_core.cli.console import Console
    from shared_core.cli.reproduce.tables import save

    path = tmp_path / "found.json"
    save({"n": 1}, path, Console())
    monkeypatch.setattr(Path, "replace", lambda self, target: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save({"n": 2}, path, Console())
    assert json.loads(path.read_text()) == {"n": 1}

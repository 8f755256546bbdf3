"""``posrag compare``: what it asks, says and leaves behind."""

from __future__ import annotations

import resource
import signal
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("rich")

from shared_core.cli.main import main
from shared_core.comparison import ComparisonResult, to_markdown
from tests.cli.conftest import process, said, written

MODULE = "tests.cli.comparing"


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Twelve questions with four documents each, the first of them gold."""
    lines = [
        {
            "question": f"What has thing {number}?",
            "answers": [f"{number}x0"],
            "documents": [f"thing {number} has {number}x{place}" for place in range(4)],
            "gold": 0,
        }
        for number in range(12)
    ]
    return written(tmp_path / "questions.jsonl", lines)


def compare(questions: Path, output: Path, *arguments: str, model: str = "last") -> int:
    """Run the command on a model of the test's own."""
    command = ["compare", "--data", str(questions), "--model", f"{MODULE}:{model}"]
    return main([*command, "--output", str(output), "--k", "4", *arguments])


def test_cost_first_then_tables_and_verdict_and_a_report(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The JSON is the whole result, the Markdown is made from it."""
    assert compare(questions, tmp_path / "report") == 0
    out, err = said(capsys)
    assert "last: 12 questions, 5 strategies in 1 setting, " in err
    result = ComparisonResult.from_json((tmp_path / "report/comparison.json").read_text())
    assert (result.model, len(result.questions), result.embedding) == ("last", 12, None)
    assert (tmp_path / "report/comparison.md").read_text() == to_markdown(result)
    assert {file.suffix for file in (tmp_path / "report").iterdir()} == {".json", ".md", ".html"}
    assert out.count("Use inverse: it gains 1.00") == 2  # at the top, and last


def test_a_plan_says_what_it_would_cost_and_asks_nothing(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And leaves no report, nor a folder."""
    assert compare(questions, tmp_path / "report", "--plan") == 0
    out, err = said(capsys)
    assert out.startswith("last: 12 questions, 5 strategies in 1 setting, ")
    assert err == ""
    assert [*tmp_path.iterdir()] == [questions]


def test_a_second_run_asks_nothing_and_is_the_same(
    questions: Path, tmp_path: Path, profiles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless told to ask afresh; it says where answers are kept, and what is not noticed."""
    compare(questions, tmp_path / "one")
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"answers   {profiles / 'last.answers.jsonl'}"
    compare(questions, tmp_path / "two")
    err = said(capsys)[1]
    assert "0 calls with about 0 prompt tokens" in err
    assert "a server's new weights) is not noticed: --fresh asks again" in err
    one, two = (tmp_path / name / "comparison.json" for name in ("one", "two"))
    assert one.read_bytes() == two.read_bytes()
    before = (profiles / "last.answers.jsonl").read_bytes()
    compare(questions, tmp_path / "two", "--fresh")
    assert "0 calls" not in said(capsys)[1]
    (former,) = profiles.glob("last.answers.2*.jsonl")
    assert former.read_bytes() == before


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=lambda how: how.name)
def test_an_interrupted_run_goes_on_and_gives_the_same_report(
    questions: Path, tmp_path: Path, how: signal.Signals
) -> None:
    """A real Ctrl-C, and a kill that nothing can catch: no answer is lost or asked again."""

    def run(folder: str, at: int) -> subprocess.CompletedProcess[str]:
        options = ["--model", f"{MODULE}:interrupted", "--output", str(tmp_path / folder)]
        return process(
            *("compare", "--data", str(questions), *options, "--k", "2,4"),
            POSRAG_TEST_CALLS=tmp_path / f"{folder}.calls",
            POSRAG_TEST_INTERRUPT_AT=at,
            POSRAG_TEST_SIGNAL=how.name,
            POSRAG_PROFILES=tmp_path / f"{folder}.profiles",
        )

    whole = run("whole", -1)
    assert whole.returncode == 0, whole.stderr
    stopped = run("parts", 40)
    if how is signal.SIGINT:
        assert stopped.returncode == 130, stopped.stderr
        assert "answers are kept in" in " ".join(stopped.stderr.split())
        assert "Traceback" not in stopped.stderr
    else:
        assert stopped.returncode == -signal.SIGKILL
    assert not (tmp_path / "parts" / "comparison.json").exists()
    resumed = run("parts", -1)
    assert resumed.returncode == 0, resumed.stderr
    reports = [tmp_path / folder / "comparison.json" for folder in ("whole", "parts")]
    assert reports[0].read_bytes() == reports[1].read_bytes()
    asked = [len((tmp_path / f"{folder}.calls").read_text()) for folder in ("whole", "parts")]
    assert asked[1] - asked[0] <= 8, "more than the batch under way was asked again"


def test_a_reranker_may_be_a_function_of_ones_own(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Named as a model is; the report says what it gains for its time."""
    options = ["--pipelines", "given,given+rerank", "--reranker", f"{MODULE}:shortest_last"]
    options += ["--budget", "30"]
    assert compare(questions, tmp_path / "report", *options) == 0
    out = said(capsys)[0]
    assert "+rerank is not shown to gain (given+rerank, k=4)" in out
    assert "Of the k passages a prompt has as many as about 30 tokens hold" in out


def test_a_prompt_in_another_encoding_is_told(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words for a person who saves files."""
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("{context} {question}", encoding="utf-16")
    with pytest.raises(SystemExit):
        compare(questions, tmp_path / "report", "--template", str(prompt))
    error = f"{prompt}: byte 1 (0xff) is not UTF-8; save the file in that encoding\n"
    assert capsys.readouterr().err.endswith(error)


@pytest.mark.parametrize("folder", [Path("/proc/self"), Path("/proc/self/below")])
def test_answers_that_could_not_be_kept_are_not_asked_for(
    folder: Path,
    questions: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """They would be paid for and lost."""
    monkeypatch.setenv("POSRAG_PROFILES", str(folder))
    assert compare(questions, tmp_path / "report", model="broken") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{folder / 'broken.answers.jsonl'} cannot be written: " in line
    assert "set POSRAG_PROFILES to a folder" in line


@pytest.mark.parametrize("name", ["comparison.json", "comparison.html"])
def test_a_folder_in_the_place_of_a_report_is_refused_before_anything_is_asked(
    name: str, questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not after all the calls."""
    (tmp_path / "report" / name).mkdir(parents=True)
    assert compare(questions, tmp_path / "report", model="broken") == 2
    error = f"{tmp_path / 'report' / name} cannot be written: Is a directory"
    assert error in capsys.readouterr().err


def test_a_full_disk_is_told_with_the_file(
    questions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was there stays, and so do the answers: nothing is asked twice."""
    page = tmp_path / "report" / "comparison.html"
    assert compare(questions, page.parent) == 0
    old = page.read_bytes()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(old) - 1, before[1]))
    try:
        assert compare(questions, page.parent) == 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"posrag: {page}: File too large; answers are kept in ")
    assert page.read_bytes() == old

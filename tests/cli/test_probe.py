"""``posrag probe``: what it asks, says and leaves behind."""

from __future__ import annotations

import subprocess
from pathlib import Path
from threading import Event

import pytest

pytest.importorskip("rich")
pytest.importorskip("matplotlib")

from shared_core import CAUS, PositionProfile
from shared_core.cli import probe as probing
from shared_core.cli.main import main
from shared_core.generation import Journal
from shared_core.sensitivity import KEY_VALUE, key_value_questions
from tests.cli.answering import edges
from tests.cli.conftest import process, refused, said
from tests.langchain.openai_server import OpenAIServer, Reply, Request

MODULE = "tests.cli.answering"


def test_several_lengths_are_one_profile(capsys: pytest.CaptureFixture[str]) -> None:
    """Five depths of each, a table of all; each asks as many questions, and none again."""
    command = ["probe", f"{MODULE}:edges", "--k", "12,4,6", "--looks", "1", "--n", "40"]
    assert main(command) == 0
    out, err = said(capsys)
    assert [f"40 questions in {slots} slots" in err for slots in (4, 5)] == [True, True]
    assert "k tokens window 0% 25% 50% 75% 100% index order" in out
    lengths = PositionProfile.load("edges").by_length
    assert [(each.k, len(each.slots), each.n) for each in lengths] == [
        *((4, 4, 40), (6, 5, 40), (12, 5, 40))
    ]
    sizes = [each.tokens or 0 for each in lengths]
    assert 0 < sizes[0] < sizes[1] < sizes[2]
    assert "by the profile of edges (40 questions)" in CAUS(psi="edges", k=6).gate.reason
    assert main([*command, "--plan"]) == 0
    assert said(capsys)[0].count("all asked before") == 3


def test_a_length_that_cannot_be_asked_is_said_before_a_shorter_one_is(
    tmp_path: Path, profiles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Too few distractors for it, or too long a prompt for the model."""
    data = str(Path(__file__).parents[2] / "instruments" / "questions.jsonl")
    asked = ["--data", data, "--n", "2", "--k", "3,40"]
    assert "39" in refused(capsys, "probe", f"{MODULE}:nothing", *asked)
    assert not (profiles / "nothing.answers.jsonl").exists()
    pytest.importorskip("transformers")
    reader = str(Path(data).parent / "biased")
    keys = ["--n", "2", "--k", "3,100"]
    for measure in ("logprob", "attention"):
        refused(capsys, "probe", reader, *keys, "--measure", measure)
        assert not (profiles / "biased.answers.jsonl").exists()


def test_a_plan_of_an_endpoint_needs_no_key(
    profiles: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And counts the answers that were given with one; without --plan the key is asked for."""
    pytest.importorskip("langchain_openai")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    command = ["probe", "openai:gpt-4o-mini", "--n", "2", "--k", "3"]
    assert main([*command, "--plan"]) == 0
    assert "gpt-4o-mini: 2 questions in 3 slots, at most 6 calls" in said(capsys)[0]
    assert main(command) == 2
    assert "set OPENAI_API_KEY" in said(capsys)[1]
    from langchain_posrag.generation import openai_endpoint

    asked = openai_endpoint("gpt-4o-mini", api_key="sk-mine", max_tokens=64)
    journal = Journal(profiles / "gpt-4o-mini.answers.jsonl")
    (question, *_) = key_value_questions(2, k=3)
    prompt = KEY_VALUE.render(question.passages(0, 3), question.question)
    journal.add(asked.fingerprint, (prompt,), "no idea")
    assert main([*command, "--plan"]) == 0
    out = said(capsys)[0]
    assert "at most 5 calls" in out
    assert "1 answer is kept from before" in out


def test_a_model_that_cannot_do_the_task_is_inconclusive(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Said plainly, with what to try."""
    assert main(["probe", f"{MODULE}:nothing", "--n", "20", "--k", "4"]) == 0
    out, _ = said(capsys)
    assert "Inconclusive: no answer was right" in out
    assert "a higher --max-new-tokens" in " ".join(out.split())
    assert "Gate" not in out
    assert "Use it" not in out


def test_one_question_is_sure_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["probe", f"{MODULE}:edges", "--n", "1", "--k", "3"]) == 0
    out, _ = said(capsys)
    assert " u_shape +7.2 u_shape_best_last +7.2 Gate: shut." in out


def test_files_and_name_are_the_users(tmp_path: Path, profiles: Path) -> None:
    """Only the answers stay in the folder of the profiles."""
    profile, figure = tmp_path / "a" / "p.json", tmp_path / "b" / "curve.svg"
    options = ["--name", "my model", "--output", str(profile), "--figure", str(figure)]
    assert main(["probe", f"{MODULE}:even", "--n", "5", "--k", "3", *options]) == 0
    assert PositionProfile.load(profile).model == "my model"
    assert "<svg" in figure.read_text()
    assert [file.suffix for file in profiles.iterdir()] == [".jsonl"]


def test_a_second_run_asks_nothing_again_unless_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The answers of the first are kept."""
    command = ["probe", f"{MODULE}:even", "--n", "5", "--k", "3"]
    main(command)
    first, _ = said(capsys)
    main(command)
    second, err = said(capsys)
    assert second == first
    assert "5 questions in 3 slots, all asked before." in err
    assert "15 answers are kept from before" in err
    main([*command, "--fresh"])
    assert "at most 15 calls" in said(capsys)[1]


def test_an_interrupted_probe_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """A real Ctrl-C in the middle of a call: exit 130, one line, and no answer lost."""
    log = tmp_path / "calls"
    command = ["probe", f"{MODULE}:slow", "--n", "10", "--k", "4", "--batch-size", "4"]

    def run(at: int) -> subprocess.CompletedProcess[str]:
        return process(*command, POSRAG_TEST_CALLS=log, POSRAG_TEST_INTERRUPT_AT=at)

    stopped = run(14)
    assert stopped.returncode == 130, stopped.stderr
    assert "interrupted; answers are kept in" in " ".join(stopped.stderr.split())
    assert "Traceback" not in stopped.stderr
    done = run(-1)
    assert done.returncode == 0, done.stderr
    assert len(log.read_text()) == 40 + 4


def test_attention_is_measured_of_a_model_under_another_name(
    profiles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The profile has the name, and says the same as under the model's own."""
    pytest.importorskip("transformers")
    reader = str(Path(__file__).parents[2] / "instruments" / "biased")
    questions = str(Path(reader).parent / "questions.jsonl")
    options = ["--measure", "attention", "--data", questions, "--n", "4", "--k", "3"]
    options += ["--max-new-tokens", "4"]
    assert main(["probe", reader, *options, "--name", "mine"]) == 0
    assert "answers" not in said(capsys)[0], "none are kept"
    assert main(["probe", reader, *options]) == 0
    mine, own = PositionProfile.load("mine"), PositionProfile.load("biased")
    assert (mine.model, own.model) == ("mine", "biased")
    assert mine.accuracy == own.accuracy
    assert mine.identity == own.identity
    assert mine.tokens is not None
    assert mine.window == 512
    assert own.identity is not None
    assert own.identity.startswith("biased ")


def test_an_endpoint_has_as_long_as_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Then the way out is named; a longer one asks only what is missing."""
    pytest.importorskip("langchain_openai")
    hanging = Event()

    def answer(request: Request) -> str | Reply:
        return Reply(hang=True) if hanging.is_set() else edges([request.prompt])[0]

    with OpenAIServer(answer) as server:
        arguments = ["openai:some-model", "--base-url", server.url, "--k", "3", "--attempts", "1"]
        assert main(["probe", *arguments, "--n", "2"]) == 0
        hanging.set()
        assert main(["probe", *arguments, "--n", "4", "--timeout", "0.2"]) == 2
        error = said(capsys)[1]
        assert "; answers are kept in" in error
        hanging.clear()
        assert main(["probe", *arguments, "--n", "4", "--timeout", "30"]) == 0
        assert "6 answers are kept from before" in said(capsys)[1]


def test_a_figure_is_not_told_of_before_it_is_drawn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But the curve is shown, since it is measured and saved."""

    def draw(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(probing, "draw_profile", draw)
    assert main(["probe", f"{MODULE}:even", "--n", "3", "--k", "3"]) == 2
    out, err = said(capsys)
    assert "the disk is full" in err
    assert "Gate: " in out
    assert ".png" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.such.module:model"], "no.such.module:model is not a model"),
        ([f"{MODULE}:broken", "--n", "2"], "RuntimeError: the weights are gone"),
        ([f"{MODULE}:even", "--n", "0"], "--n must be an integer >= 1, got 0"),
        ([f"{MODULE}:even", "--measure", "vibes"], "'distraction' or 'attention', got 'vibes'"),
        ([f"{MODULE}:even", "--slots", "1,10"], "must ascend and hold (1, 5, 10), got (1, 10)"),
        ([f"{MODULE}:even", "--slots", "1,2,4", "--k", "4,6"], "--slots are those of one -k"),
        ([f"{MODULE}:even", "--max-failed", "1"], "max_failed must lie in [0, 1), got 1"),
        ([f"{MODULE}:even", "--template", "absent.txt"], "absent.txt: No such file"),
        ([f"{MODULE}:even", "--output", "."], "posrag: . cannot be written: Is a directory"),
        ([f"{MODULE}:even", "--figure", "/dev/null/z.png"], "/dev/null/z.png cannot be written: "),
        ([f"{MODULE}:even", "--measure", "attention", "--plan"], "--slots and --plan out"),
        ([f"{MODULE}:even", "--measure", "attention", "--n", "1"], "and even is not one"),
        ([f"{MODULE}:number"], "int"),
        (["no/such/folder"], "cannot load the language model 'no/such/folder' (no such folder)"),
        (["openai:x", "--max-new-tokens", "0"], "--max-new-tokens must be an integer >= 1, got 0"),
        (["openai:x", "--measure", "logprob"], "--measure logprob needs a local model, and openai"),
    ],
)
def test_bad_input_is_one_line_on_stderr(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2, the offending value, no traceback."""
    assert message in refused(capsys, "probe", *arguments)


def test_what_is_to_be_copied_stays_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths, also in what it is used by."""
    monkeypatch.setenv("COLUMNS", "80")
    path = tmp_path / ("a folder with a long name " * 5).strip() / "p.json"
    command = ["probe", f"{MODULE}:edges", "--n", "5", "--k", "3"]
    assert main([*command, "--output", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"profile  {path}" in lines
    assert f'Use it with psi="{path}".' in lines

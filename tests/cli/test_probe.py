"""``posrag probe``: what it asks, says and leaves behind."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

pytest.importorskip("rich")
pytest.importorskip("matplotlib")

from shared_core import CAUS, PositionProfile
from shared_core.cli.main import main
from shared_core.generation import Journal
from shared_core.sensitivity import KEY_VALUE, key_value_questions
from tests.cli.answering import edges
from tests.cli.conftest import refused, said
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
    assert main([*command, "--fresh"]) == 0
    assert "asked before" not in said(capsys)[1]


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


def test_files_and_name_are_the_users(tmp_path: Path, profiles: Path) -> None:
    """Only the answers stay in the folder of the profiles."""
    profile, figure = tmp_path / "a" / "p.json", tmp_path / "b" / "curve.svg"
    options = ["--name", "my model", "--output", str(profile), "--figure", str(figure)]
    assert main(["probe", f"{MODULE}:even", "--n", "5", "--k", "3", *options]) == 0
    assert PositionProfile.load(profile).model == "my model"
    assert "<svg" in figure.read_text()
    assert [file.suffix for file in profiles.iterdir()] == [".jsonl"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_figure_that_the_disk_does_not_hold_is_named_beside_the_answers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figure = tmp_path / "curve.png"
    figure.symlink_to("/dev/full")
    command = ["probe", f"{MODULE}:edges", "--k", "3", "--n", "5", "--figure", str(figure)]
    error = f"posrag: {figure}: No space left on device; answers are kept in "
    assert main(command) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(error)


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

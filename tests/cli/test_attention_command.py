"""``posrag attention``: what it reads, says and leaves behind."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("rich")
pytest.importorskip("matplotlib")
pytest.importorskip("torch")
pytest.importorskip("transformers")

from shared_core.cli import attention as report
from shared_core.cli.main import main
from shared_core.sensitivity.curve import PositionalCurve

READERS = Path(__file__).parents[2] / "instruments"
QUESTIONS = str(READERS / "questions.jsonl")


@pytest.fixture
def curves(profiles: Path) -> Path:
    return profiles / "curves"


def attention(reader: str, *options: str, data: str = QUESTIONS) -> int:
    return main(
        ["attention", str(READERS / reader), "--data", data, "--max-new-tokens", "4", *options]
    )


def test_it_tells_shows_and_keeps_where_a_model_looks(
    curves: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The numbers of the report are those of the curve that is saved; two figures beside it."""
    assert attention("biased", "--n", "60") == 0
    out, err = capsys.readouterr()
    told = " ".join(out.split())
    assert "biased: 60 questions" in err
    assert "120 answers" in err
    curve = PositionalCurve.load("biased")
    assert (curve.n, curve.k, curve.task) == (60, 10, QUESTIONS)
    for end in ("edges", "start", "end"):
        lower, upper = curve.intervals[end]
        assert f"{getattr(curve, end):.2f} [{lower:.2f}, {upper:.2f}]" in told
    rows = re.findall(r"^ +(\d+) +[\d.]+ +\[.*\]( +[\d.]+){3} *$", out, re.MULTILINE)
    assert [row[0] for row in rows] == [str(position) for position in range(1, 11)]
    assert "ranked 1 to 10, are placed in the order" in told
    assert {file.name for file in curves.iterdir()} == {
        *("biased.json", "biased.documents.png", "biased.curve.png")
    }
    assert max(map(len, err.splitlines())) <= 100


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_two_lines_of_code_it_prints_work(
    elsewhere: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As they stand, from the folder of the curves or from another one with a long name."""
    pytest.importorskip("langchain_core")
    folder = tmp_path / ("a folder with a long name " * 4).strip()
    output = ["--output", str(folder)] if elsewhere else []
    assert attention("uniform", "--n", "4", "-k", "4", *output) == 0
    out = capsys.readouterr().out
    lines = re.findall(r"^    (?:from|placement) .*$", out, re.MULTILINE)
    assert len(lines) == 2
    names: dict[str, Any] = {}
    exec(textwrap.dedent("\n".join(lines)), names)
    assert names["placement"].curve == PositionalCurve.load(
        folder / "uniform.json" if elsewhere else "uniform"
    )
    if elsewhere:
        assert f"curve    {folder / 'uniform.json'}" in out.splitlines()


def test_questions_and_the_users_own_prompt_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Key-value retrieval, as by the probe, with its template; by the curve one sees which."""
    few = ["--n", "3", "-k", "4"]
    assert attention("uniform", *few, data="kv") == 0
    assert "key-value retrieval" in capsys.readouterr().err
    curve = PositionalCurve.load("uniform")
    assert curve.task == "key-value retrieval"
    assert "JSON object" in str(curve.template)
    template = tmp_path / "prompt.txt"
    template.write_text("Question: {question}\n\n{context}\n\nAnswer:", encoding="utf-8")
    assert attention("uniform", *few, "--template", str(template)) == 0
    assert PositionalCurve.load("uniform").template == template.read_text("utf-8")


@pytest.mark.parametrize("command", ["attention", "probe"])
def test_a_folder_that_cannot_be_written_into_is_named_with_the_way_out(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as where the home folder is read-only."""
    monkeypatch.setenv("POSRAG_PROFILES", "/dev/null/profiles")
    assert main([command, str(READERS / "uniform"), "--n", "3", "-k", "3"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert re.match(r"posrag: /dev/null/profiles/.*uniform.json cannot be written: ", error)
    assert error.endswith(
        "; give --output, or set POSRAG_PROFILES to a folder that can be written into"
    )


def curve_of(start: tuple[float, float], end: tuple[float, float]) -> PositionalCurve:
    return PositionalCurve(
        model="m",
        scores=(3.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0),
        n=50,
        k=4,
        intervals={"start": start, "end": end, "edges": (1.0, 2.0)},
    )


def test_a_model_of_the_users_own_module_is_not_named_by_a_string(tmp_path: Path) -> None:
    """It cannot be loaded by that."""
    curve = curve_of((1.1, 2.0), (1.1, 3.0))
    told = "\n".join(report.lines(curve, tmp_path / "m.json", spec="my_app:model"))
    assert f'AttentionPlacement(model, curve="{tmp_path / "m.json"}")' in told
    told = "\n".join(report.lines(curve, tmp_path / "m.json", spec="org/m"))
    assert 'AttentionPlacement("org/m", ' in told

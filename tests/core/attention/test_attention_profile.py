"""The profile by attention, of the reader that looks at the edges and of the one that does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from shared_core import HuggingFaceModel, PositionProfile
from shared_core.attention import attention_profile
from shared_core.cli.main import main
from shared_core.sensitivity import ProbeQuestion, read_questions

READERS = Path(__file__).parents[3] / "instruments"


def reader(name: str) -> HuggingFaceModel:
    return HuggingFaceModel.from_pretrained(READERS / name, max_new_tokens=4, batch_size=10)


def questions(n: int) -> list[ProbeQuestion]:
    return read_questions(READERS / "questions.jsonl")[:n]


def test_every_value_is_a_share_and_the_same_each_time() -> None:
    """Of the attention to all passages; progress adds up."""
    seen: list[int] = []
    profile = attention_profile(reader("uniform"), questions(6), k=5, on_answer=seen.append)
    assert profile.outcomes is not None
    assert (len(profile.outcomes), len(profile.outcomes[0])) == (6, 5)
    assert all(0 < share < 1 for row in profile.outcomes for share in row)
    assert sum(seen) == 30
    assert (profile.measure, profile.n, profile.k) == ("attention", 6, 5)
    again = attention_profile(reader("uniform"), questions(6), k=5)
    assert again.outcomes == profile.outcomes


def test_too_few_passages_are_named() -> None:
    """As by the probe."""
    with pytest.raises(ValueError, match="k must be an integer >= 3, got 2"):
        attention_profile(reader("uniform"), questions(2), k=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 1.5}, "seed must be an integer >= 0, got 1.5"),
        ({"confidence": 1.0}, "confidence must lie between 0 and 1, got 1.0"),
    ],
)
def test_what_the_interval_needs_is_checked_before_the_model_is_asked(
    options: dict[str, Any], message: str
) -> None:
    """Not once all is read."""
    asked: list[int] = []
    with pytest.raises(ValueError, match=message):
        attention_profile(reader("uniform"), questions(2), k=3, on_answer=asked.append, **options)
    assert asked == []


def test_the_command_measures_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And refuses a model that is not local, and options that have no meaning."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path))
    data = ["--data", str(READERS / "questions.jsonl"), "--n", "5", "--measure", "attention"]
    assert main(["probe", str(READERS / "uniform"), *data, "--max-new-tokens", "4"]) == 0
    assert PositionProfile.load("uniform").measure == "attention"
    assert "attention" in capsys.readouterr().out
    assert main(["probe", "tests.cli.answering:even", *data]) == 2
    assert "needs a local model" in capsys.readouterr().err
    assert main(["probe", str(READERS / "uniform"), *data, "--max-calls", "9"]) == 2
    assert "leave --slots and --max-calls out" in " ".join(capsys.readouterr().err.split())

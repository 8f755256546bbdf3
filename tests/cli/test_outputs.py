"""What each command prints on a small case, word for word.

After a change that is meant, ``POSRAG_WRITE_OUTPUTS=1 make test ARGS=tests/cli/test_outputs.py``
writes the files anew: read their difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")
pytest.importorskip("ir_measures")

from instruments.corpus import held_out_questions
from shared_core.cli import demo as command
from shared_core.cli import index as index_command
from shared_core.cli.main import main
from shared_core.cli.reproduce import caus
from shared_core.corpora import torch_api_passages
from tests.cli.conftest import CountingModel, written

OUTPUTS = Path(__file__).parent / "outputs"
INSTRUMENTS = Path(__file__).parents[2] / "instruments"
READER = str(INSTRUMENTS / "biased")


def ranked(n: int, *, k: int = 8) -> list[dict[str, Any]]:
    """Return questions with documents, many of which share a word; gold is among the best three."""
    lines = []
    for number, each in enumerate(held_out_questions(n, k=k, seed=5, confusable=0.8)):
        documents = list(each["distractors"])
        documents.insert(number % 3, str(each["gold"]))
        asked = {"question": each["question"], "answers": each["answers"]}
        lines.append({**asked, "documents": documents, "gold": number % 3})
    return lines


def rotated(n: int, *, k: int) -> list[dict[str, Any]]:
    """Return the same in the form of the probe, with the first of the documents as gold."""
    return [
        {**line, "gold": line["documents"][0], "distractors": line["documents"][1:]}
        for line in ranked(n, k=k)
    ]


def commands(folder: Path) -> dict[str, list[str]]:
    """Return each case and its command; later ones read what earlier ones wrote to `folder`."""
    few, questions = str(folder / "ranked.jsonl"), str(folder / "questions.jsonl")
    asking = ["--model", READER, "--max-new-tokens", "4"]
    cache = ["--cache", str(folder / "cache")]
    profile, curve, report = (str(folder / name) for name in ("profile.json", "curve", "report"))
    return {
        "probe": [
            *("probe", READER, "--data", questions, "--k", "8", "--max-new-tokens", "4"),
            *("--output", profile),
        ],
        "probe_plan": ["probe", "tests.cli.answering:edges", "--n", "20", "--k", "5", "--plan"],
        "probe_function": [
            *("probe", "tests.cli.answering:edges", "--n", "60", "--k", "5"),
            *("--output", str(folder / "function.json")),
        ],
        "attention": [
            *("attention", READER, "--data", questions, "--k", "8", "--max-new-tokens", "4"),
            *("--output", curve),
        ],
        "compare_plan": ["compare", "--data", few, *asking, "--output", report, "--plan"],
        "compare": [
            *("compare", "--data", few, *asking, "--k", "8", "--graders", "em,f1"),
            *("--strategies", "inverse,u_shape,max_relevance"),
            *("--profile", profile, "--output", report),
        ],
        "reproduce_positionalbias": [
            *("reproduce", "positionalbias", "--data", few, *asking),
            *("--abstain-template", str(INSTRUMENTS / "prompt.txt")),
        ],
        "reproduce_goodpositions": [
            *("reproduce", "goodpositions", "--data", str(folder / "rotated.jsonl"), *asking),
            *("--k", "8"),
        ],
        "demo": ["demo", *cache],
        "demo_engine": ["demo", *cache, "--engine", "URL"],
        "index": [
            *("index", "--data", str(folder / "documents.jsonl")),
            *("--engine", "URL", "--collection", "outputs"),
        ],
        "engine": ["engine", "URL", "--collection", "outputs"],
        "reproduce_caus": ["reproduce", "caus", "--model", "tests.cli.calling:reader", *cache],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all cases share, with their questions."""
    folder = tmp_path_factory.mktemp("outputs")
    written(folder / "ranked.jsonl", ranked(12))
    written(folder / "rotated.jsonl", rotated(12, k=8))
    documents = torch_api_passages()[:40]
    written(folder / "documents.jsonl", [{"id": p.id, "text": p.text} for p in documents])
    written(folder / "questions.jsonl", held_out_questions(16, k=8, seed=7))
    return folder


@pytest.mark.parametrize("case", [*commands(Path())])
def test_what_a_command_prints(
    case: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Apart from where files are, and how long it took; texts are embedded by hashed words."""
    for module in (command, index_command, caus):
        monkeypatch.setattr(module, "EmbeddingModel", lambda name: CountingModel())
    monkeypatch.setenv("POSRAG_PROFILES", str(folder / "profiles"))
    given = commands(folder)[case]
    if "URL" in given:
        url = str(request.getfixturevalue("postgres"))
        given = [url if part == "URL" else part for part in given]
    assert main(given) == 0
    printed = capsys.readouterr().out.replace(str(folder), "FOLDER").replace(READER, "READER")
    printed = re.sub(r"[\d.]+ (ms|s)\b", r"TIME \1", printed)
    printed = re.sub(r"postgresql://\S+", "URL", printed)
    kept = OUTPUTS / f"{case}.txt"
    if os.environ.get("POSRAG_WRITE_OUTPUTS"):
        kept.write_text(printed)
    assert printed == kept.read_text()


@pytest.mark.parametrize("case", ["probe", "attention", "compare", "reproduce_goodpositions"])
def test_fewer_passages_than_the_default_are_all_taken(
    case: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands agree on it: the outcome is that of the number of passages that there are."""
    monkeypatch.setenv("POSRAG_PROFILES", str(folder / "profiles"))
    given = commands(folder)[case]
    at = given.index("--k")
    assert main(given[:at] + given[at + 2 :]) == 0
    assert capsys.readouterr().out.count("\n") == (OUTPUTS / f"{case}.txt").read_text().count("\n")

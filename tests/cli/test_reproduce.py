"""``posrag reproduce caus``: its tables, with and without a language model."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")
pytest.importorskip("ir_measures")

from shared_core import u_shape_order
from shared_core.cli.main import main
from shared_core.cli.reproduce import caus
from shared_core.corpora import torch_api_passages
from tests.cli.conftest import CountingModel

MODULE = "tests.cli.calling"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The real corpus, embedded by hashed words, and its index."""
    passages = torch_api_passages()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(caus, "torch_api_passages", lambda: passages)
        patch.setattr(caus, "EmbeddingModel", lambda name: CountingModel())
        yield tmp_path_factory.mktemp("cache")


def reproduce(cache: Path, output: Path, *arguments: str) -> dict[str, Any]:
    """Run the command and return its JSON."""
    command_line = ["reproduce", "caus", "--cache", str(cache), "--output", str(output)]
    assert main([*command_line, *arguments]) == 0
    found: dict[str, Any] = json.loads(output.read_text())
    return found


@pytest.fixture(scope="module")
def retrieval(cache: Path) -> tuple[dict[str, Any], str]:
    """What a run without a model finds, and what it prints on a narrow terminal."""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as out:
        patch.setenv("COLUMNS", "80")
        return reproduce(cache, cache / "caus.json"), out.getvalue()


def test_a_few_questions_are_of_all_levels(cache: Path) -> None:
    found = reproduce(cache, cache / "few.json", "--n", "5")
    levels = [each["level"] for each in found["questions"]]
    assert levels == ["basic", "basic", "intermediate", "intermediate", "signature"]
    assert len(rows_of(found, "I")["Base RAG"]["ranks"]) == 5


def rows_of(found: dict[str, Any], table: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in found["rows"] if row["table"] == table}


def test_without_a_model_retrieval_is_measured(
    retrieval: tuple[dict[str, Any], str],
) -> None:
    """Hit, rank and slot agree with each other, row by row and question by question."""
    found, out = retrieval
    assert "No model was asked" in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80
    assert found["model"] is None
    assert len(found["questions"]) == 52
    assert [len(rows_of(found, table)) for table in ("I", "II", "III")] == [3, 3, 6]
    for row in found["rows"]:
        ranks, slots, figures = row["ranks"], row["slots"], row["figures"]
        k = row["k"]
        placed = range(k) if row["placement"] == "sequential" else u_shape_order(k)
        assert slots == [None if r is None else [*placed].index(r - 1) + 1 for r in ranks]
        assert figures["hit"]["outcomes"] == [float(r is not None) for r in ranks]
        ndcg = [0 if r is None else 1 / np.log2(r + 1) for r in ranks]
        assert figures["nDCG"]["outcomes"] == pytest.approx(ndcg)
        lower, upper = figures["hit"]["interval"]
        assert lower < figures["hit"]["mean"] < upper
        assert "EM" not in figures


def test_the_rows_differ_in_what_the_paper_varies(retrieval: tuple[dict[str, Any], str]) -> None:
    """Same ranking and other order in Base and Static; the same setting is the same result."""
    found, _ = retrieval
    first = rows_of(found, "I")
    assert [row["placement"] for row in first.values()] == ["sequential", "u_shape", "u_shape"]
    base, static, caus = first.values()
    assert base["ranks"] == static["ranks"] != caus["ranks"]
    assert base["slots"] != static["slots"]
    same = [rows_of(found, "II")["alpha 0.3"], rows_of(found, "III")["k 10"]]
    assert [row["slots"] for row in same] == [caus["slots"]] * 2
    assert [row["figures"] for row in same] == [caus["figures"]] * 2
    hits = [row["figures"]["hit"]["mean"] for row in rows_of(found, "III").values()]
    assert hits == sorted(hits)


def test_a_model_that_reads_what_is_retrieved_is_graded_so(
    cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The call where the gold passage stands in the prompt, keywords elsewhere: EM is the hits."""
    found = reproduce(cache, tmp_path / "caus.json", "--model", f"{MODULE}:reader")
    out = " ".join(capsys.readouterr().out.split())
    for row in found["rows"]:
        assert row["figures"]["EM"] == row["figures"]["hit"]
        assert row["figures"]["KW"]["mean"] == 1.0
    assert found["model"] == "reader"
    gain = rows_of(found, "I")["CAUS U-RAG"]["figures"]["EM"]["mean"]
    gain -= rows_of(found, "I")["Base RAG"]["figures"]["EM"]["mean"]
    assert f"EM of CAUS U-RAG less Base RAG: {100 * gain:+.1f} points [" in out
    assert "EM of Static U-RAG less Base RAG: +0.0 points" in out
    assert "p = 1 (Wilcoxon signed-rank, Holm)." in out


def test_a_model_that_answers_nothing_is_an_error(
    cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what it says."""
    command_line = ["reproduce", "caus", "--cache", str(cache), "--model", f"{MODULE}:refusing"]
    assert main(command_line) == 2
    err = capsys.readouterr().err
    assert "the model has failed on 52 of 52 questions, and the tables take at least 1; the" in err
    assert "RuntimeError: refused" in err


def test_the_gate_decides_for_caus_alone(cache: Path, tmp_path: Path) -> None:
    """With an index at or below 1 CAUS keeps the ranked order; Static U-RAG never asks."""
    found = reproduce(cache, tmp_path / "caus.json", "--psi", "0.97")
    placements = {row["name"]: row["placement"] for row in found["rows"]}
    assert placements.pop("Static U-RAG") == "u_shape"
    assert {*placements.values()} == {"sequential"}
    assert [row["k"] for row in found["rows"]] == [10] * 6 + [3, 5, 7, 10, 12, 15]

"""``posrag reproduce caus``: its tables, with and without a language model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("rich")
pytest.importorskip("ir_measures")

from shared_core import u_shape_order
from shared_core.cli.reproduce import caus
from shared_core.corpora import torch_api_passages
from tests.cli.conftest import CountingModel
from tests.cli.test_reproduce_papers import reproduce


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The real corpus, embedded by hashed words, and its index."""
    passages = torch_api_passages()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(caus, "torch_api_passages", lambda: passages)
        patch.setattr(caus, "EmbeddingModel", lambda name: CountingModel())
        yield tmp_path_factory.mktemp("cache")


def test_a_few_questions_are_of_all_levels(cache: Path) -> None:
    found, _ = reproduce("caus", cache / "few.json", "--cache", str(cache), "--n", "5")
    levels = [each["level"] for each in found["questions"]]
    assert levels == ["basic", "basic", "intermediate", "intermediate", "signature"]
    assert len(rows_of(found, "I")["Base RAG"]["ranks"]) == 5


def rows_of(found: dict[str, Any], table: str) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in found["rows"] if row["table"] == table}


def test_without_a_model_retrieval_is_measured(cache: Path) -> None:
    """Hit, rank and slot agree with each other, row by row and question by question."""
    found, _ = reproduce("caus", cache / "caus.json", "--cache", str(cache))
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


def test_a_model_that_reads_what_is_retrieved_is_graded_so(cache: Path, tmp_path: Path) -> None:
    """The call where the gold passage stands in the prompt, keywords elsewhere: EM is the hits."""
    asking = ["--cache", str(cache), "--model", "tests.cli.calling:reader"]
    found, _ = reproduce("caus", tmp_path / "caus.json", *asking)
    for row in found["rows"]:
        assert row["figures"]["EM"] == row["figures"]["hit"]
        assert row["figures"]["KW"]["mean"] == 1.0
    assert found["model"] == "reader"


def test_the_gate_decides_for_caus_alone(cache: Path, tmp_path: Path) -> None:
    """With an index at or below 1 CAUS keeps the ranked order; Static U-RAG never asks."""
    gated = ["--cache", str(cache), "--psi", "0.97"]
    found, _ = reproduce("caus", tmp_path / "caus.json", *gated)
    placements = {row["name"]: row["placement"] for row in found["rows"]}
    assert placements.pop("Static U-RAG") == "u_shape"
    assert {*placements.values()} == {"sequential"}
    assert [row["k"] for row in found["rows"]] == [10] * 6 + [3, 5, 7, 10, 12, 15]

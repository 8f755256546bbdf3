"""A fitted gate on disk."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from instruments.gating_texts import ASKED, ELSEWHERE
from shared_core.errors import CorruptIndexError, EmbeddingMismatchError, IndexFormatError
from shared_core.gating import ContextGate, RetrievalDecision
from tests.core.gating.conftest import fit, synthetic
from tests.core.gating.words import PASSAGES, VECTORS, embed, embed_all, fitted


def salted(texts: Sequence[str]) -> list[list[float]]:
    """Another model."""
    return embed_all([text[::-1] for text in texts])


def decisions(gate: ContextGate) -> list[RetrievalDecision]:
    """What a gate says of every question, by all passages."""
    return [
        gate.decide(query, (VECTORS @ embed(gate.prepare(query))).tolist(), PASSAGES)
        for query in (*ASKED, *ELSEWHERE)
    ]


@pytest.fixture
def small() -> ContextGate:
    return ContextGate(candidates=fit(*synthetic(60), policy="density", threshold=0.02))


@pytest.mark.filterwarnings("ignore:Data type alias")
def test_a_damaged_file_is_refused(small: ContextGate, tmp_path: Path) -> None:
    """Changed anywhere in its headers or in the arrays, whatever that raises."""
    path = tmp_path / "gate.npz"
    small.save(path)
    whole = path.read_bytes()
    headers = [found.start() for found in re.finditer(b"PK|NUMPY", whole)]
    places = {start + offset for start in headers for offset in range(70)}
    places.update(range(0, len(whole), 997))
    refused = 0
    for at in sorted(place for place in places if place < len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x40
        path.write_bytes(damaged)
        try:
            assert ContextGate.load(path).candidates.decide(0.5) == small.candidates.decide(0.5)
        except (CorruptIndexError, IndexFormatError):
            refused += 1
    assert refused > 50


def test_another_kind_of_file_is_refused(small: ContextGate, tmp_path: Path) -> None:
    """Missing, of something else, or of another format."""
    path = tmp_path / "gate.npz"
    with pytest.raises(IndexFormatError, match="no such file"):
        ContextGate.load(path)
    small.save(path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(arrays["manifest"].tobytes())
    for other in ({"kind": "other"}, {"format": 5}):
        changed = json.dumps(about | other).encode()
        np.savez(path, **arrays | {"manifest": np.frombuffer(changed, np.uint8)})
        with pytest.raises(IndexFormatError, match="saved gate of format 6: fit the gate again"):
            ContextGate.load(path)


def test_nothing_is_pickled_and_nothing_else_is_written(small: ContextGate, tmp_path: Path) -> None:
    """Before 2.2, numpy stores an option of `np.savez` that it does not know as one more array."""
    small.save(tmp_path / "gate.npz")
    names = "manifest similarities foreign_similarities neighbouring others vector counts"
    with zipfile.ZipFile(tmp_path / "gate.npz") as archive:
        assert set(archive.namelist()) == {f"{name}.npy" for name in names.split()}
        assert not any(b"'|O'" in archive.read(name)[:200] for name in archive.namelist())


def test_functions_are_not_saved_and_have_to_be_given_again(tmp_path: Path) -> None:
    """Without its transform, or with one, a gate would be of other questions than its fit.

    With them it decides as before, to the last bit; another model is refused.
    """
    path, own = tmp_path / "gate", {"transform": str.upper, "tokenizer": str.split}
    gate = fitted(coverage=True, **own)
    gate.save(path)
    with pytest.raises(ValueError, match=r"of a custom tokenizer: give it as tokenizer="):
        ContextGate.load(path, transform=str.upper)
    with pytest.raises(ValueError, match=r"gate that transforms queries: give transform="):
        ContextGate.load(path, tokenizer=str.split)
    before = decisions(gate)
    assert {each.retrieve for each in before} == {True, False}
    assert decisions(ContextGate.load(path, embed=embed_all, **own)) == before
    with pytest.raises(EmbeddingMismatchError, match="not the one the gate was fitted with"):
        ContextGate.load(path, embed=salted, **own)
    fitted().save(path)
    with pytest.raises(ValueError, match="words of a custom tokenizer: leave tokenizer= out"):
        ContextGate.load(path, tokenizer=str.split)
    with pytest.raises(ValueError, match="without a transform: leave transform= out"):
        ContextGate.load(path, transform=str.upper)

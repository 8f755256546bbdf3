"""A fitted gate on disk."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shared_core.errors import CorruptIndexError, EmbeddingMismatchError, IndexFormatError
from shared_core.gating import (
    EVERYDAY_QUESTIONS,
    ContextGate,
    RetrievalDecision,
    VectorCandidates,
    WordCoverage,
)
from shared_core.gating.fitting import fit_gate
from tests.core.gating.conftest import synthetic
from tests.core.gating.texts import ASKED, ELSEWHERE
from tests.core.gating.words import IDS, PASSAGES, embed

VECTORS = np.array([embed(text) for text in PASSAGES], np.float32)

NEGATIVES = ["is of to", *ELSEWHERE]


def embed_all(texts: Sequence[str]) -> list[list[float]]:
    """As in `words`; but of a text without long words it makes a vector of zeros."""
    return [embed(text) if max(map(len, text.split())) > 3 else [0.0] * 512 for text in texts]


def salted(texts: Sequence[str]) -> list[list[float]]:
    """Another model."""
    return embed_all([text.replace("e", "ue") for text in texts])


def decisions(gate: ContextGate) -> list[RetrievalDecision]:
    """What a gate says of every question, by all passages."""
    return [
        gate.decide(query, (VECTORS @ embed(gate.prepare(query))).tolist(), PASSAGES)
        for query in (*ASKED, *ELSEWHERE)
    ]


@pytest.fixture
def small() -> VectorCandidates:
    ids, vectors, owners, pseudo, foreign = synthetic(60)
    return VectorCandidates.fit(
        ids, vectors, owners, pseudo, negatives=foreign, policy=0.1, threshold=0.02
    )


def save(candidates: VectorCandidates, path: Path) -> None:
    """Save a gate of nothing else."""
    ContextGate(candidates=candidates).save(path)


def load(path: Path) -> VectorCandidates:
    """Return the candidates of a saved gate."""
    return ContextGate.load(path).candidates


def test_what_is_saved_comes_back_and_goes_on(small: VectorCandidates, tmp_path: Path) -> None:
    """Decisions, and later additions and deletions, equal those of the gate that was saved."""
    save(small, tmp_path / "deep" / "gate.npz")
    loaded = load(tmp_path / "deep" / "gate.npz")
    assert (loaded.policy, loaded.threshold, len(loaded)) == (0.1, 0.02, 60)
    for similarity in (0.1, 0.5, 0.9):
        assert loaded.decide(similarity) == small.decide(similarity)
    _, vectors, _, pseudo, _ = synthetic(5, seed=1)
    for gate in (loaded, small):
        gate.add(["new"], vectors[:1], ["new"] * 3, pseudo[:3])
        gate.delete(["c1"])
    assert loaded.levels == small.levels
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["gate.npz"]


def test_ids_that_would_not_come_back_are_refused(tmp_path: Path) -> None:
    """JSON has no tuples; numbers come back as they were. Nothing is written."""
    ids, vectors, _, pseudo, foreign = synthetic(20)
    for kind in (int, lambda number: (number, "chunk")):
        own = [kind(number) for number in range(len(ids))]
        owners = [id for id in own for _ in range(3)]
        gate = VectorCandidates.fit(own, vectors, owners, pseudo, negatives=foreign)
        if kind is int:
            save(gate, tmp_path / "gate")
            assert 5 in load(tmp_path / "gate")
        else:
            with pytest.raises(ValueError, match=r"ids must be strings .* got \(0, 'chunk'\)"):
                save(gate, tmp_path / "other")
    assert [each.name for each in tmp_path.iterdir()] == ["gate"]


def test_a_gate_without_background_comes_back(tmp_path: Path) -> None:
    """The paper's own gate holds fewer arrays."""
    ids, vectors, owners, pseudo, _ = synthetic(30)
    gate = VectorCandidates.fit(ids, vectors, owners, pseudo, policy="density")
    save(gate, tmp_path / "gate.npz")
    assert load(tmp_path / "gate.npz").decide(0.5) == gate.decide(0.5)


def test_a_crash_while_saving_leaves_the_old_file(
    small: VectorCandidates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new one is written beside it, and its remains are removed."""
    path = tmp_path / "gate.npz"
    save(small, path)
    before = path.read_bytes()

    def crash(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("shared_core.atomic.os.fsync", crash)
    small.delete(["c0"])
    with pytest.raises(OSError, match="no space"):
        save(small, path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["gate.npz"]


def test_a_damaged_file_is_refused(small: VectorCandidates, tmp_path: Path) -> None:
    """Truncated, altered on the way, or with one array replaced by a well-formed other one."""
    path = tmp_path / "gate.npz"
    save(small, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorruptIndexError):
        load(path)
    path.write_bytes(whole)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    arrays["similarities"] = arrays["similarities"] + 0.1
    np.savez(path, **arrays)
    with pytest.raises(
        CorruptIndexError, match="digest differs; restore the file from a copy, or fit"
    ):
        load(path)


@pytest.mark.filterwarnings("ignore:Data type alias")
def test_a_file_damaged_at_any_place_of_its_headers_is_refused(
    small: VectorCandidates, tmp_path: Path
) -> None:
    """Whatever NumPy, zipfile or a decompressor then raise, down to a SyntaxError."""
    path = tmp_path / "gate.npz"
    save(small, path)
    whole = path.read_bytes()
    headers = [found.start() for found in re.finditer(b"PK|NUMPY", whole)]
    refused = 0
    for at in sorted({start + offset for start in headers for offset in range(70)}):
        for flipped in (1, 8, 0x40, 0xFF):
            damaged = bytearray(whole)
            if at >= len(damaged):
                break
            damaged[at] ^= flipped
            path.write_bytes(damaged)
            try:
                assert load(path).decide(0.5) == small.decide(0.5)
            except (CorruptIndexError, IndexFormatError):
                refused += 1
    assert refused > 100


def test_another_kind_of_file_is_refused(tmp_path: Path) -> None:
    """Missing, no archive at all, an archive of something else."""
    path = tmp_path / "gate.npz"
    with pytest.raises(IndexFormatError, match="no such file"):
        load(path)
    with pytest.raises(IndexFormatError, match="it is a folder"):
        load(tmp_path)
    path.write_text("hello")
    with pytest.raises(IndexFormatError):
        load(path)
    np.savez(path, manifest=np.frombuffer(b'{"kind": "other"}', np.uint8))
    with pytest.raises(IndexFormatError, match="does not hold a saved gate"):
        load(path)


def test_nothing_is_pickled(small: VectorCandidates, tmp_path: Path) -> None:
    """Every member is a plain array of numbers."""
    save(small, tmp_path / "gate.npz")
    with zipfile.ZipFile(tmp_path / "gate.npz") as archive:
        for name in archive.namelist():
            assert b"'descr': '|O'" not in archive.read(name)[:200]


def test_nothing_is_written_but_the_manifest_and_the_arrays(
    small: VectorCandidates, tmp_path: Path
) -> None:
    """Before 2.2, numpy stores an option of `np.savez` that it does not know as one more array."""
    save(small, tmp_path / "gate.npz")
    with zipfile.ZipFile(tmp_path / "gate.npz") as archive:
        assert set(archive.namelist()) == {
            "manifest.npy",
            "owners.npy",
            "similarities.npy",
            "numbers.npy",
            "background_questions.npy",
            "background_similarities.npy",
            "background_contexts.npy",
            "background_left_out.npy",
        }


def test_a_file_with_such_an_array_is_read(small: VectorCandidates, tmp_path: Path) -> None:
    """Earlier versions wrote it; any other that was not written by them is damage."""
    path = tmp_path / "gate.npz"

    def add(name: str) -> None:
        with zipfile.ZipFile(path, "a") as archive, archive.open(name, "w") as member:
            np.save(member, np.False_)

    save(small, path)
    add("allow_pickle.npy")
    assert load(path).decide(0.5) == small.decide(0.5)
    add("other.npy")
    with pytest.raises(CorruptIndexError, match="digest differs"):
        load(path)


def test_loading_with_another_model_is_refused(gate: VectorCandidates, tmp_path: Path) -> None:
    """Before any decision could be made with it."""
    save(gate, tmp_path / "gate.npz")
    with pytest.raises(EmbeddingMismatchError):
        ContextGate.load(tmp_path / "gate.npz", embed=lambda texts: np.ones((len(texts), 384)))


@pytest.mark.parametrize("negatives", [None, NEGATIVES])
@pytest.mark.parametrize("words", [False, True])
def test_a_gate_decides_after_loading_as_before(
    words: bool, negatives: list[str] | None, tmp_path: Path
) -> None:
    """To the last bit and the last word of the reason; another model is refused."""
    gate = fit_gate(IDS, PASSAGES, VECTORS, embed_all, coverage=words, negatives=negatives)
    gate.save(tmp_path / "gate")
    loaded = ContextGate.load(tmp_path / "gate", embed=embed_all)
    before = decisions(gate)
    assert {each.retrieve for each in before} == {True, False}
    assert ("of its words there" in before[0].reason) is words
    assert decisions(loaded) == before
    assert decisions(ContextGate.load(str(tmp_path / "gate"))) == before
    with pytest.raises(EmbeddingMismatchError, match="not the one the gate was fitted with"):
        ContextGate.load(tmp_path / "gate", embed=salted)


def test_words_go_on_being_counted_after_loading(tmp_path: Path) -> None:
    """As those of the gate that was saved; what was deleted is not kept as a word."""
    gate = fit_gate(IDS, PASSAGES, VECTORS, embed_all, coverage=True)
    assert gate.coverage is not None
    gate.coverage.add(["an unheard-of xylophone"])
    gate.coverage.delete(["an unheard-of xylophone"])
    gate.save(tmp_path / "gate")
    loaded = ContextGate.load(tmp_path / "gate")
    assert loaded.coverage is not None
    assert "xylophone" not in loaded.coverage.counts
    for each in (gate.coverage, loaded.coverage):
        each.add(["a bee on a xylophone"])
        each.delete(PASSAGES[:2])
    assert loaded.coverage.counts == gate.coverage.counts
    assert len(loaded.coverage) == len(gate.coverage) == len(PASSAGES) - 1
    assert decisions(loaded) == decisions(gate)


def test_functions_are_not_saved_and_have_to_be_given_again(tmp_path: Path) -> None:
    """A transform is as it is given; the words of another tokenizer would be other words."""
    candidates = fit_gate(IDS, PASSAGES, VECTORS, embed_all).candidates
    coverage = WordCoverage(tokenizer=str.split)
    coverage.add(PASSAGES)
    gate = ContextGate(candidates=candidates, transform=str.upper, coverage=coverage)
    gate.save(tmp_path / "gate")
    with pytest.raises(
        ValueError, match=r"gate counts words of a custom tokenizer: give it as tokenizer="
    ):
        ContextGate.load(tmp_path / "gate", transform=str.upper)
    with pytest.raises(ValueError, match=r"gate that transforms queries: give transform="):
        ContextGate.load(tmp_path / "gate", tokenizer=str.split)
    loaded = ContextGate.load(tmp_path / "gate", transform=str.upper, tokenizer=str.split)
    assert decisions(loaded) == decisions(gate)
    worded = fit_gate(IDS, PASSAGES, VECTORS, embed_all, coverage=True)
    for default in (worded, ContextGate(candidates=candidates)):
        default.save(tmp_path / "gate")
        with pytest.raises(
            ValueError, match=r"has no words of a custom tokenizer: leave tokenizer= out"
        ):
            ContextGate.load(tmp_path / "gate", tokenizer=str.split)


def test_a_file_that_does_not_tell_of_a_transform_is_read_without(tmp_path: Path) -> None:
    """As earlier versions wrote it; and one may be given where there was none."""
    path = tmp_path / "gate"
    gate = fit_gate(IDS, PASSAGES, VECTORS, embed_all)
    gate.save(path)
    rewritten(path, transformed=None)
    assert decisions(ContextGate.load(path)) == decisions(gate)
    assert ContextGate.load(path, transform=str.upper).transform is str.upper


def test_the_words_are_saved_with_the_gate_that_counts_them_alone(tmp_path: Path) -> None:
    """The fit is the same with and without."""
    gate = fit_gate(IDS, PASSAGES, VECTORS, embed_all, coverage=True)
    gate.save(tmp_path / "gate")
    save(gate.candidates, tmp_path / "candidates")
    assert ContextGate.load(tmp_path / "candidates").coverage is None
    for name in ("gate", "candidates"):
        assert load(tmp_path / name).decide(0.3) == gate.candidates.decide(0.3)


def rewritten(path: Path, **changes: Any) -> None:
    """Write a file anew as format 1 was, or with other changes of its manifest; digest and all."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    about = json.loads(arrays.pop("manifest").tobytes()) | changes
    if about["transformed"] is None or about["format"] == 1:
        about.pop("transformed")
    if about["format"] == 1:
        arrays.pop("known", None)
        for name in ("known", "coverage"):
            about.pop(name)
    about.pop("digest")
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, values in sorted(arrays.items()):
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode() + values.tobytes())
    manifest = json.dumps(about | {"digest": digest.hexdigest()}).encode()
    np.savez(path.open("wb"), manifest=np.frombuffer(manifest, np.uint8), **arrays)


def test_a_file_of_format_1_is_read_as_it_was(tmp_path: Path) -> None:
    """It knows the first everyday question, or no text; a format to come is refused."""
    path = tmp_path / "gate"
    gate = fit_gate(IDS, PASSAGES, VECTORS, embed_all)
    gate.save(path)
    rewritten(path, format=1, everyday=True)
    asked: list[str] = []

    def asking(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return embed_all(texts)

    assert decisions(ContextGate.load(path, embed=asking)) == decisions(gate)
    assert asked == [EVERYDAY_QUESTIONS[0]]
    with pytest.raises(EmbeddingMismatchError):
        ContextGate.load(path, embed=salted)
    other = fit_gate(IDS, PASSAGES, VECTORS, embed_all, negatives=NEGATIVES)
    other.save(path)
    rewritten(path, format=1, everyday=False)
    assert decisions(ContextGate.load(path)) == decisions(other)
    with pytest.raises(ValueError, match="nothing to verify with"):
        ContextGate.load(path, embed=embed_all)
    other.save(path)
    rewritten(path, format=3)
    with pytest.raises(IndexFormatError, match="has format 3, this version reads formats 1 and 2"):
        ContextGate.load(path)

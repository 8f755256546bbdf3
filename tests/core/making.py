"""Small corpora, vectors and indexes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from shared_core import HybridIndex, Passage, Ranking
from shared_core.index import ann, dense

Floats = npt.NDArray[np.floating]


def preselect_from(rows: int, patch: pytest.MonkeyPatch) -> None:
    """Have small indexes search as large ones do."""
    patch.setattr(ann, "SMALL", rows)
    patch.setattr(dense, "COPIED", rows)


def zipf_texts(
    n: int, *, seed: int = 0, vocabulary: int = 60, longest: int = 30, skew: float = 1.2
) -> list[str]:
    """Return texts of words ``w0`` (in nearly all of them) to ``w59`` (in few); some are empty."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, vocabulary + 1) ** skew
    lengths = rng.integers(0, longest, n)
    words = rng.choice(vocabulary, int(lengths.sum()), p=share / share.sum())
    ends = np.cumsum(lengths)
    return [
        " ".join(f"w{word}" for word in words[end - length : end])
        for end, length in zip(ends, lengths, strict=True)
    ]


def random_vectors(n: int, dim: int = 8, *, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


def clustered_vectors(n: int, dim: int = 16, *, clusters: int = 20, seed: int = 0) -> Floats:
    """Return vectors around `clusters` centres; the cluster of row i is ``i % clusters``."""
    rng = np.random.default_rng(seed)
    centres = 3 * rng.normal(size=(clusters, dim))
    vectors = centres[np.arange(n) % clusters] + rng.normal(size=(n, dim))
    return vectors.astype(np.float32)


def passages(texts: Sequence[str], *, prefix: str = "p") -> list[Passage]:
    """Return passages with two metadata keys: ``n``, their number, and ``lang``, one of three."""
    return [
        Passage(f"{prefix}{n}", text, {"n": n, "lang": ("en", "de", "fr")[n % 3]})
        for n, text in enumerate(texts)
    ]


def make_index(n: int = 40, dim: int = 8, *, seed: int = 0, **options: object) -> HybridIndex:
    index = HybridIndex(**options)  # type: ignore[arg-type]
    index.add(passages(zipf_texts(n, seed=seed)), random_vectors(n, dim, seed=seed))
    return index


def found_ids(ranking: Ranking) -> list[str]:
    return [passage.id for passage in ranking.passages]


def content(ranking: Ranking) -> Ranking:
    """Return all of a ranking that does not depend on which rows its passages stand in."""
    return replace(ranking, indices=[])


def saved_index(folder: Path) -> Path:
    """Save an index with a file of every kind: two segments, an approximate index."""
    index = HybridIndex(dense="hnsw")
    with pytest.MonkeyPatch.context() as patch:
        preselect_from(100, patch)
        index.add(passages(zipf_texts(200)), clustered_vectors(200))
        index.add([Passage("late", "w1")], clustered_vectors(1))
        index.save(folder)
    return folder


def data_of(folder: Path) -> Path:
    """Return where the files of a saved index lie."""
    return folder / str(json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["data"])

"""Small corpora and vectors, and the hybrid search written out without any cleverness."""

from __future__ import annotations

import json
import math
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from shared_core import HybridIndex, Passage, Ranking
from shared_core.index import ann, dense
from shared_core.index.tokenize import tokenize

Floats = npt.NDArray[np.floating]


def preselect_from(rows: int, patch: pytest.MonkeyPatch) -> None:
    """Have small indexes search as large ones do."""
    patch.setattr(ann, "SMALL", rows)
    patch.setattr(dense, "COPIED", rows)


def runs_beside(work: Callable[[], object], *, ticks: int = 10, tries: int = 300) -> bool:
    """Return whether another thread gets to run `ticks` times during one call of `work`.

    A busy machine may keep that thread waiting, which says nothing about `work`: it is called
    again, up to `tries` times. Where `work` lets no other thread run there are one or two ticks,
    just before and after it; a busy machine may add to these, so that the answer may be a wrong
    yes there, but not a wrong no.
    """
    done = threading.Event()
    seen = 0

    def tick() -> None:
        nonlocal seen
        while not done.wait(1e-4):
            seen += 1

    other, interval = threading.Thread(target=tick), sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    other.start()
    try:
        for _ in range(tries):
            before = seen
            work()
            if seen - before >= ticks:
                return True
        return False
    finally:
        done.set()
        other.join()
        sys.setswitchinterval(interval)


def lines_run(work: Callable[[], object]) -> int:
    """Return how many Python lines a call of `work` runs, which tells linear from quadratic."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


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


def content(ranking: Ranking) -> list[object]:
    """Return all of a ranking that does not depend on which rows its passages stand in."""
    return [
        found_ids(ranking),
        ranking.scores,
        ranking.dense,
        ranking.sparse,
        ranking.dense_norm,
        ranking.sparse_norm,
        ranking.dense_rank,
        ranking.sparse_rank,
        ranking.alpha,
        ranking.fusion,
        ranking.nearest,
        ranking.query,
        ranking.dense_exact,
        ranking.sparse_exact,
        ranking.complete,
    ]


def assert_same(one: Ranking, other: Ranking, *, tolerance: float = 0.0) -> None:
    """Assert the same ids in the same order and the same numbers, up to `tolerance`."""
    assert found_ids(one) == found_ids(other)
    for name in ("scores", "dense", "sparse", "dense_norm", "sparse_norm"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=0, atol=tolerance, err_msg=name
        )
    assert (one.dense_rank, one.sparse_rank) == (other.dense_rank, other.sparse_rank)
    assert (one.alpha, one.fusion) == (other.alpha, other.fusion)


def brute_bm25(
    query: Sequence[str],
    documents: Sequence[Sequence[str]],
    *,
    k1: float = 1.2,
    b: float = 0.75,
) -> list[float]:
    """Return Lucene's BM25 of every document, term by term, from its definition."""
    n = len(documents)
    mean = sum(map(len, documents)) / n if n else 0.0
    scores = []
    for document in documents:
        score = 0.0
        for token in query:
            df = sum(token in other for other in documents)
            count = document.count(token)
            if count:
                idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
                score += idf * count / (count + k1 * (1 - b + b * len(document) / mean))
        scores.append(score)
    return scores


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


@dataclass
class BruteForce:
    """A hybrid index that keeps a plain list and scores everything at every search."""

    passages: list[Passage]
    vectors: list[Floats]

    def search(
        self,
        text: str,
        vector: Floats,
        *,
        k: int = 10,
        fetch_k: int = 50,
        alpha: float = 0.3,
        allowed: Callable[[Passage], bool] = lambda _: True,
    ) -> tuple[list[str], list[float]]:
        """Return ids and fused scores, best first."""
        query = tokenize(text)
        documents = [tokenize(passage.text) for passage in self.passages]
        sparse = brute_bm25(query, documents)
        dense = [float(_unit(row) @ _unit(vector)) for row in self.vectors]
        rows = [row for row, passage in enumerate(self.passages) if allowed(passage)]
        matching = [row for row in rows if set(query) & set(documents[row])]
        depth = max(k, fetch_k)
        pool = sorted(
            {*sorted(rows, key=lambda row: (-dense[row], row))[:depth]}
            | {*sorted(matching, key=lambda row: (-round(sparse[row], 9), row))[:depth]}
        )
        dense_norm = _min_max([dense[row] for row in pool])
        sparse_norm = _min_max([sparse[row] for row in pool])
        fused = {
            row: alpha * d + (1 - alpha) * s
            for row, d, s in zip(pool, dense_norm, sparse_norm, strict=True)
        }
        best = sorted(pool, key=lambda row: (-round(fused[row], 6), -dense[row], row))[:k]
        return [self.passages[row].id for row in best], [fused[row] for row in best]


def _unit(vector: Floats) -> Floats:
    wide = np.asarray(vector, np.float64)
    length = np.linalg.norm(wide)
    return wide / length if length > 0 else wide


def _min_max(values: Sequence[float]) -> list[float]:
    if not values:
        return []
    low, high = min(values), max(values)
    return [(value - low) / (high - low + 1e-7) for value in values]


def check_saves_and_loads_at_once(folder: Path, *, seconds: float) -> None:
    """Save three indexes to one folder and load from it, from five threads at once."""
    indexes = [make_index(n) for n in (3, 5, 7)]
    indexes[0].save(folder)
    until = time.monotonic() + seconds
    loads = []

    def save(index: HybridIndex) -> None:
        while time.monotonic() < until:
            index.save(folder)

    def load(_: int) -> None:
        while time.monotonic() < until:
            loads.append(len(HybridIndex.load(folder)))

    with ThreadPoolExecutor(5) as pool:
        running = [pool.submit(save, index) for index in indexes]
        running += [pool.submit(load, n) for n in range(2)]
        for done in running:
            done.result()
    assert {*loads} <= {3, 5, 7}
    assert len(HybridIndex.load(folder)) in (3, 5, 7)

"""The compiled kernels against numpy, and against arguments that do not fit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import rank
from shared_core.index.dense import ByteCopies
from shared_core.native import kernels

needs_kernels = pytest.mark.skipif(not kernels.built, reason="the kernels are not built here")
HEADER = Path(sysconfig.get_path("include")) / "Python.h"
BUILDABLE = HEADER.exists() and bool(shutil.which("gcc") or shutil.which("clang"))


@pytest.mark.skipif(not BUILDABLE, reason="no compiler, or no header of Python's")
def test_they_are_built_where_they_can_be() -> None:
    """Else the other tests would be skipped without a word, here and in continuous integration."""
    assert kernels.built, "make them anew: pip install -e ."


def test_a_module_from_an_older_build_is_not_used() -> None:
    """What its functions take may have changed since: numpy is slower, but right."""
    older = "import sys, types; m = types.ModuleType('shared_core.native._kernels'); "
    older += "m.INTERFACE = 0; sys.modules[m.__name__] = m; import shared_core.native as n; "
    older += "n._kernels = m; from shared_core.native import kernels; print(kernels.built)"
    done = subprocess.run([sys.executable, "-c", older], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def scores(rng: np.random.Generator, n: int, values: int) -> np.ndarray:
    """Few values tie often; zeros come with either sign."""
    return rng.integers(-values, values, n) / rng.choice([-1.0, 1.0, 3.0], n)


def best_vectors(scan: kernels.Scan, queries: np.ndarray, k: int, allowed: Any) -> Any:
    """The pools of queries without words."""
    words: Any = (([], []),) * len(queries)
    pools = kernels.pools(scan, queries, (), words, (0.0, 1.0), len(scan.vectors), k, allowed)
    assert not any(sparse.any() for _, _, sparse in pools)
    return [(rows, dense) for rows, dense, _ in pools]


@needs_kernels
@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([1, 2, 63, 64, 65, 500, 3000]),
    dim=st.sampled_from([1, 3, 16, 37, 384]),
    k=st.sampled_from([1, 7, 50, 4000]),
    values=st.sampled_from([1, 3, 1000]),
    copied=st.sampled_from([0.0, 0.5, 1.0]),
    keep=st.sampled_from([None, 0.5, 0.02, 0.0]),
)
def test_the_best_vectors_are_those_of_a_full_sort(
    seed: int, n: int, dim: int, k: int, values: int, copied: float, keep: float | None
) -> None:
    """Through 8-bit copies of all, some or no rows; with ties and filters; in batches or alone."""
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-values, values + 1, (n, dim)).astype(np.float32) / np.float32(values)
    queries = rng.standard_normal((3, dim)).astype(np.float32)
    queries[2] = 0
    allowed = None if keep is None else rng.random(n) < keep
    scan, covered = kernels.Scan(vectors), int(copied * n)
    if covered:
        made = ByteCopies.of(vectors[:covered])
        rounding = max(4e-6, dim * 2.0**-24)
        scan = kernels.Scan(
            vectors, made.codes.rows, made.scale, made.margin, made.longest, rounding
        )
    found = best_vectors(scan, queries, k, allowed)
    for query, (rows, scores) in zip(queries, found, strict=True):
        products = kernels.vectors_at(vectors, query, np.arange(n))
        np.testing.assert_allclose(products, vectors @ query, atol=1e-4, rtol=1e-4)
        findable = range(n) if allowed is None else allowed.nonzero()[0].tolist()
        best = sorted(findable, key=lambda row: (-products[row], row))[:k]
        assert rows.tolist() == sorted(best)
        assert scores.tolist() == products[rows].tolist()
        ((alone, same),) = best_vectors(scan, query[None], k, allowed)
        assert (alone.tolist(), same.tolist()) == (rows.tolist(), scores.tolist())


F = np.zeros((4, 3), np.float32)
POSTINGS = {
    "terms": np.zeros(1, np.int32),
    "starts": np.array([0, 2]),
    "rows": np.arange(2, dtype=np.int32),
    "counts": np.ones(2, np.uint16),
    "lengths": np.ones(2, np.uint16),
    "extremes": np.ones((1, 2), np.int32),
}


def search(*, terms: Any = (0,), weights: Any = (1.0,), k: int = 1, **parts: np.ndarray) -> Any:
    segment, query = tuple((POSTINGS | parts).values()), ([*terms], [*weights])
    return kernels.pools(None, None, (segment,), (query,), (0.1, 1.0), 4, k, None)  # type: ignore[arg-type]


def nearest(queries: np.ndarray = F, k: int = 1, allowed: Any = None, **scan: Any) -> Any:
    return best_vectors(kernels.Scan(**{"vectors": F} | scan), queries, k, allowed)


@needs_kernels
@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: nearest(vectors=F.astype(float)), TypeError),
        (lambda: nearest(queries=F[:, :2].copy()), ValueError),
        (lambda: nearest(codes=np.zeros((5, 3), "B")), ValueError),
        (lambda: kernels.vectors_at(F, F[0], np.array([4])), IndexError),
        (lambda: search(rows=np.array([0, 4], np.int32)), ValueError),
        (lambda: search(counts=np.ones(1, "H")), ValueError),
        (lambda: kernels.ranked(np.ones(2), np.ones(1), 0.3, 1, (0.0, 0.0)), ValueError),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], object], error: type[Exception]) -> None:
    """Types, shapes and rows; rows of postings have to ascend, which only loading checks."""
    with pytest.raises(error):
        call()


@needs_kernels
@given(
    seed=st.integers(0, 10_000),
    n=st.sampled_from([0, 1, 2, 20, 21, 95, 3000]),
    values=st.sampled_from([1, 3, 1000]),
    alpha=st.sampled_from([0.0, 0.3, 1.0]),
    fusion=st.sampled_from(["theoretical_min", "min_max"]),
    cosines=st.booleans(),
    odd=st.sampled_from([None, np.nan, 1e308]),
)
def test_a_pool_is_ranked_as_by_numpy(
    seed: int, n: int, values: int, alpha: float, fusion: Any, cosines: bool, odd: float | None
) -> None:
    """Bit by bit, ties and missing scores included."""
    rng = np.random.default_rng(seed)
    dense, sparse = scores(rng, n, values), scores(rng, n, values)
    if odd is not None and n:
        dense[rng.integers(n)] = odd
    how: Any = {"alpha": alpha, "fusion": fusion, "cosines": cosines}
    found = rank(dense, sparse, k=10, **how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "built", False)
        assert rank(dense, sparse, k=10, **how) == found

"""What ``posrag demo`` prints, and its exit status."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from shared_core import CAUS, HybridIndex
from shared_core.types import Query

from .conftest import Demo

QUERY = "How do I draw samples from a normal distribution?"
_ROW = re.compile(
    r"^ *(\d+) +(\d+) +([\d.]+) +(-?[\d.]+) +(\d+) +([\d.]+) +(\d+) +(torch\S+) *$", re.M
)


def rows(out: str) -> list[tuple[str, ...]]:
    return _ROW.findall(out)


def expected(demo: Demo, caus: CAUS) -> Iterator[tuple[str, ...]]:
    index = HybridIndex()
    index.add(demo.passages, demo.model.embed([passage.text for passage in demo.passages]))
    vector = demo.model.embed([QUERY])[0]
    (arrangement,) = caus.search(index, [Query(QUERY, vector)])
    for why, passage in zip(arrangement.explain(), arrangement.passages, strict=True):
        yield (
            str(why["slot"] + 1),
            str(why["rank"] + 1),
            f"{why['score']:.3f}",
            f"{why['dense']:.3f}",
            str(why["dense_rank"] + 1),
            f"{why['sparse']:.2f}",
            str(why["sparse_rank"] + 1),
            passage.id,
        )


def test_the_table_holds_the_cores_answer(demo: Demo) -> None:
    """And the gate's reason."""
    outcome = demo("--query", QUERY, "--k", "3")
    assert outcome.status == 0
    assert f"Query: {QUERY}" in outcome.out
    assert demo.embedded_passages() == len(demo.passages)
    assert rows(outcome.out) == list(expected(demo, CAUS(k=3, psi="always")))
    assert "Gate: open (psi='always'), so the passages are placed by u_shape." in outcome.out


def test_what_does_not_fit_on_the_disk_is_named_with_the_way_out(demo: Demo) -> None:
    """A limit on the size of files cuts one short, as a full disk does."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))
    try:
        cut = demo()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    (error,) = (line for line in cut.err.splitlines() if line.startswith("posrag:"))
    assert cut.status == 2
    assert str(next(demo.cache.iterdir())) in error
    assert "is the disk full?" in error
    assert demo().status == 0
    assert demo.embedded_passages() == len(demo.passages)

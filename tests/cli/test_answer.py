"""What ``posrag demo`` prints, and its exit status."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from shared_core import CAUS, HybridIndex, MissingExtraError
from shared_core.demo import DemoTask
from shared_core.types import Query

from .conftest import Demo, core_order

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


def test_the_table_holds_the_cores_answer_and_a_framework_gets_the_options(demo: Demo) -> None:
    """It need not run the model."""
    tasks: list[DemoTask] = []

    def order(task: DemoTask) -> list[str]:
        tasks.append(task)
        return core_order(task)

    demo.orders = {"langchain": order}
    options = ["--k", "3", "--fetch-k", "20", "--alpha", "0.4", "--placement", "inverse"]
    outcome = demo("--query", QUERY, *options, "--psi", "1.3")
    assert outcome.status == 0
    assert f"Query: {QUERY}" in outcome.out
    assert tasks[0].query == QUERY
    assert tasks[0].caus == CAUS(k=3, fetch_k=20, alpha=0.4, placement="inverse", psi=1.3)
    assert demo.embedded_passages() == len(demo.passages)
    assert rows(outcome.out) == list(expected(demo, tasks[0].caus))


def test_the_gate_is_told_with_its_reason(demo: Demo) -> None:
    shut = demo("--psi", "0.9").out
    assert "Gate: shut (psi 0.900 does not exceed 1.0)" in shut
    assert [row[1] for row in rows(shut)] == [str(rank) for rank in range(1, 11)]
    assert "Gate: open (psi='always'), so the passages are placed by u_shape." in demo().out


def test_a_framework_that_differs_is_named_and_fails_the_run(demo: Demo) -> None:
    demo.orders["llamaindex"] = lambda task: [*core_order(task)[::-1], "torch.unheard_of"]
    outcome = demo("--k", "5")
    assert outcome.status == 1
    assert re.search(r"^  LlamaIndex +2 4 5 3 1 \?$", outcome.out, re.MULTILINE)
    assert "The orders DIFFER: LlamaIndex from the core." in outcome.out


def test_a_framework_that_is_not_installed_is_told_and_left_out(demo: Demo) -> None:
    demo.orders["langchain"] = ImportError("No module named 'langchain_core'")
    outcome = demo()
    assert outcome.status == 0
    told = " ".join(outcome.out.split())
    assert "No module named 'langchain_core'; run: pip install 'posrag[langchain]'" in told
    assert "The 2 orders are identical: core, LlamaIndex." in outcome.out
    line = "langchain_core is not installed; run: pip install 'posrag[langchain]'"
    demo.orders["langchain"] = MissingExtraError(line)
    told = " ".join(demo().out.split())
    assert line in told
    assert told.count("pip install") == 1
    demo.orders.clear()
    assert "No framework took part" in demo().out


def test_rebuild_embeds_everything_again(demo: Demo) -> None:
    first = demo()
    assert demo("--rebuild").out == first.out
    assert demo.embedded_passages() == len(demo.passages)


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
    assert "run again" in error
    assert "--cache" in error
    assert f"0 of {len(demo.passages)} texts" in error
    assert demo().status == 0
    assert demo.embedded_passages() == len(demo.passages)

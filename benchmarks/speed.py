"""Speed against the frameworks' own hybrid retrievers, all in one run.

::

    python -m benchmarks.speed [--sizes 1000 10000 100000] [--scan 1000000]

Every system answers the same queries over the same passages and precomputed vectors, in turns, so
that a busy machine slows all of them. Times are medians; only the ratios carry over to another
machine. ``--output`` keeps those of the adapters and the peers as JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import faiss
import numpy as np
from llama_index.core.schema import QueryBundle

from benchmarks import systems
from benchmarks.corpus import DIM, Corpus, clustered, make
from benchmarks.figures import add_output, keep
from benchmarks.footprint import SYSTEMS
from shared_core import CAUS, HybridIndex, Passage
from shared_core.native import kernels
from shared_core.types import Query

BATCH = 64
ROUNDS = 7
TARGETS = {1_000: (12, 5), 10_000: (80, 6), 100_000: (50, 2.5)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--scan", type=int, nargs="*", default=[1_000_000])
    add_output(parser)
    options = parser.parse_args()
    print(f"Kernels: {'compiled' if kernels.built else 'numpy'}")
    overhead()
    rows = [row for size in options.sizes for row in queries(size)]
    rows += [row for size in options.sizes for row in footprints(size)]
    keep(options.output, {"benchmark": "speed"}, rows)
    for size in options.scan:
        scan(size)


def overhead() -> None:
    """What an adapter takes around the core's search, beside a retriever that returns nothing.

    The core's search hands out one ready result, so that it takes no time itself and leaves the
    processor's caches as they are; a scan empties them for whatever comes after it.
    """
    corpus = make(1_000, 1)
    lang = systems.langchain_posrag(corpus, systems.documents(corpus))
    llama = systems.llamaindex_posrag(corpus, systems.nodes(corpus))
    empty_lang, empty_llama = systems.empty_langchain(), systems.empty_llamaindex()
    query, vector = corpus.queries[0], corpus.query_vectors[0]
    bundle = QueryBundle(query, embedding=vector.tolist())
    caus = CAUS(**systems.OPTIONS)
    ready = {id(r.index): caus.search(r.index, [Query(query, vector)]) for r in (lang, llama)}
    with patch.object(CAUS, "search", lambda _, index, *__, **___: ready[id(index)]):
        ms = in_turns(
            {
                "langchain": lambda _: lang.invoke(query),
                "empty langchain": lambda _: empty_lang.invoke(query),
                "llamaindex": lambda _: llama.retrieve(bundle),
                "empty llamaindex": lambda _: empty_llama.retrieve(bundle),
            },
            200,
            rounds=3 * ROUNDS,
        )
    print("Adapter around the core's search, k=10, beside an empty retriever (<= 2x)")
    for name in ("langchain", "llamaindex"):
        own, empty = ms[name], ms[f"empty {name}"]
        print(f"  {name:12}{own:8.4f} ms, empty {empty:.4f} ms: {own / empty:.2f}x")


def queries(size: int) -> list[dict[str, Any]]:
    """One query at a time, and batches, through the adapters and the peers."""
    rows: list[dict[str, Any]] = []
    many = {1_000: 100, 10_000: 60}.get(size, 16)
    for stop_words in (False, True):
        corpus = make(size, max(many, BATCH), stop_words=stop_words)
        docs, these = systems.documents(corpus), systems.nodes(corpus)
        lang, llama = (
            systems.langchain_posrag(corpus, docs),
            systems.llamaindex_posrag(corpus, these),
        )
        ensemble = systems.langchain_ensemble(corpus, docs)
        fusion = systems.llamaindex_fusion(corpus, these)
        ask, core = corpus.queries, CAUS(**systems.OPTIONS)
        given = [
            [Query(text, np.array(vector))]
            for text, vector in zip(ask, corpus.query_vectors, strict=True)
        ]
        ms = in_turns(
            {
                "langchain": lambda q: lang.invoke(ask[q]),
                "llamaindex": lambda q: llama.retrieve(ask[q]),
                "ensemble": lambda q: ensemble.invoke(ask[q]),
                "fusion": lambda q: fusion.retrieve(ask[q]),
                "core": lambda q: core.search(lang.index, given[q]),
                "numpy": lambda q: by_numpy(core.search, lang.index, given[q]),
            },
            many,
        )
        emptied = in_turns(
            {
                "langchain": lambda q: lang.invoke(ask[q]),
                "ensemble": lambda q: ensemble.invoke(ask[q]),
            },
            min(many, 16),
            before=empty_caches,
        )
        batch = ask[:BATCH]
        batched = in_turns(
            {
                "fusion": lambda _: [fusion.retrieve(query) for query in batch],
                "langchain": lambda _: lang.batch(batch),
                "llamaindex": lambda _: llama.retrieve_batch(batch),
            },
            1,
            rounds=3 * ROUNDS,
        )
        each = {name: taken / BATCH for name, taken in batched.items()}
        about = {"passages": size, "stop words": stop_words}
        rows.append({**about, "at a time": 1, "ms a query": ms})
        rows.append({**about, "at a time": BATCH, "ms a query": each})
        show(size, stop_words, ms, each)
        show_emptied(size, emptied)
    print(f"  dense leg like a full product: {exact(lang.index, corpus):.1%} of queries")
    ids = iter(lang.index.ids)
    (deleting,) = in_turns({"": lambda _: lang.index.delete([next(ids)])}, many, rounds=1).values()
    print(f"  deleting one passage: {deleting:.2f} ms (< 5 at 100,000)")
    return rows


def by_numpy(search: Callable[..., Any], *arguments: Any) -> Any:
    """Search without the compiled kernels."""
    built, kernels.built = kernels.built, False
    try:
        return search(*arguments)
    finally:
        kernels.built = built


def exact(index: HybridIndex, corpus: Corpus) -> float:
    """Return the share of queries whose best passages are those of a matrix product."""
    same = []
    for text, vector in zip(corpus.queries, corpus.query_vectors, strict=True):
        found = index.search_leg("dense", Query(text, vector), systems.FETCH_K)
        best = np.sort(corpus.vectors @ vector)[: -systems.FETCH_K - 1 : -1]
        # Passages that differ in the last bit may change places.
        same.append(np.allclose([score for _, score in found], best, rtol=1e-5))
    return float(np.mean(same))


def show(size: int, stop_words: bool, ms: dict[str, float], batched: dict[str, float]) -> None:
    first, second = TARGETS.get(size, (0, 0))
    with_or_without = "with" if stop_words else "without"
    print(f"\n{size:,} passages, queries {with_or_without} stop words, ms a query")
    print(f"  EnsembleRetriever {ms['ensemble']:.3f}   QueryFusionRetriever {ms['fusion']:.3f}")
    for name in ("langchain", "llamaindex"):
        print(
            f"  posrag, {name:10} {ms[name]:8.3f}: {ms['ensemble'] / ms[name]:6.1f}x (>= {first}) "
            f"the first, {ms['fusion'] / ms[name]:5.1f}x (>= {second}) the second"
        )
    fusion = batched["fusion"]  # one query after the other, as it knows no batches
    for name in ("langchain", "llamaindex"):
        each = batched[name]
        print(
            f"  in batches of {BATCH}, {name:10} {each:8.3f}: {fusion / each:6.1f}x (>= 10) "
            f"the second's {fusion:.3f}"
        )
    core, numpy = ms["core"], ms["numpy"]
    print(f"  core {core:.3f}, by numpy alone {numpy:.3f}: {numpy / core:.1f}x as long")


def show_emptied(size: int, ms: dict[str, float]) -> None:
    goal = " (>= 35)" if size == 10_000 else ""
    print(
        f"  the processor's caches emptied: {ms['langchain']:.3f} beside {ms['ensemble']:.3f}: "
        f"{ms['ensemble'] / ms['langchain']:.1f}x{goal} the first"
    )


LARGER_THAN_CACHES = np.zeros(1 << 24, np.int64)


def empty_caches() -> None:
    """Have the processor's caches hold something else, as after an embedding call."""
    LARGER_THAN_CACHES[::8] += 1


def in_turns(
    systems: dict[str, Callable[[int], Any]],
    count: int,
    rounds: int = ROUNDS,
    before: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Median milliseconds of each system over `count` queries, all of them in every round."""
    times: dict[str, list[float]] = {name: [] for name in systems}
    for round_ in range(rounds + 1):
        for name, search in systems.items():
            for query in range(count):
                before()
                start = time.perf_counter()
                search(query)
                if round_:
                    times[name].append(time.perf_counter() - start)
    return {name: 1e3 * float(np.median(taken)) for name, taken in times.items()}


def footprints(size: int) -> list[dict[str, Any]]:
    """Build time and memory of each system, each in a process of its own."""
    rows = []
    print(f"\nBuilding over {size:,} passages, embedding excluded")
    for name in SYSTEMS:
        command = [sys.executable, "-m", "benchmarks.footprint", name, str(size)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        rows.append({"passages": size, "built": name, **found})
        print(
            f"  {name:22}{found['seconds']:8.2f} s {found['kept']:8.0f} MB kept"
            f"{found['peak']:8.0f} MB at the peak"
        )
    return rows


def scan(size: int) -> None:
    """The dense leg alone: our scan against FAISS's flat one."""
    queries = 40
    vectors, near = clustered(size, queries)
    index, flat = HybridIndex(), faiss.IndexFlatIP(DIM)
    start = time.perf_counter()
    index.add([Passage(str(at), "") for at in range(size)], vectors)
    taken = time.perf_counter() - start
    print(f"\n{size:,} passages of {DIM} dimensions added in {taken:.1f} s")
    flat.add(vectors)
    del vectors

    def leg(vector: np.ndarray) -> list[tuple[Passage, float]]:
        return index.search_leg("dense", Query("", vector), 10)

    ms = in_turns(
        {
            "posrag": lambda q: leg(near[q]),
            "FAISS flat": lambda q: flat.search(near[q : q + 1], 10),
        },
        queries,
        rounds=3,
    )
    _, best = flat.search(near, 10)
    recall = np.mean(
        [
            len({passage.id for passage, _ in leg(query)} & {*map(str, rows)}) / 10
            for query, rows in zip(near, best.tolist(), strict=True)
        ]
    )
    print(f"{size:,} passages, dense leg: " + ", ".join(f"{n} {t:.1f} ms" for n, t in ms.items()))
    print(
        f"  our scan: {ms['posrag'] / ms['FAISS flat']:.2f}x FAISS flat (<= 0.35), "
        f"recall@10 {recall:.4f} (>= 0.999)"
    )


if __name__ == "__main__":
    main()

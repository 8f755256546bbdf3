"""Build time and memory of one system, measured in a process of its own.

::

    python -m benchmarks.footprint SYSTEM PASSAGES
"""

from __future__ import annotations

import ctypes
import gc
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import systems
from benchmarks.corpus import Corpus, make

SYSTEMS: dict[str, tuple[Callable[[Corpus], Any], Callable[[Corpus, Any], Any]]] = {
    "posrag, langchain": (systems.documents, systems.langchain_posrag),
    "EnsembleRetriever": (systems.documents, systems.langchain_ensemble),
    "posrag, llamaindex": (systems.nodes, systems.llamaindex_posrag),
    "QueryFusionRetriever": (systems.nodes, systems.llamaindex_fusion),
}


def main() -> None:
    name, size = sys.argv[1], int(sys.argv[2])
    prepare, build = SYSTEMS[name]
    small = make(100, 1)
    build(small, prepare(small))  # imports and first-use set-up are not counted
    corpus = make(size, 1)
    objects = prepare(corpus)
    before = settled()
    forget_peak()
    start = time.perf_counter()
    system = build(corpus, objects)
    seconds, highest, kept = time.perf_counter() - start, peak() - before, settled() - before
    # The kernel adds up the peak from time to time only, and may miss the last few megabytes.
    print(json.dumps({"seconds": seconds, "kept": kept, "peak": max(highest, kept)}))
    del system


def settled() -> float:
    """Resident memory of this process in MB, once what is free has gone back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def forget_peak() -> None:
    """Let the largest resident memory count from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> float:
    """Largest resident memory of this process since `forget_peak`, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1e3


if __name__ == "__main__":
    main()

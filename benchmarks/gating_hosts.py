"""What a decision costs in the hosts of both frameworks, beyond the search that is made anyway."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from langchain_core.runnables import RunnablePassthrough
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index.core.tools.types import ToolMetadata

from benchmarks.corpus import Corpus, make
from benchmarks.gating_collections import fit
from benchmarks.systems import documents, langchain_posrag, llamaindex_posrag, nodes
from langchain_posrag import ContextAwarenessGate, GatedRetriever
from llamaindex_posrag import ContextAwarenessSelector, GatedQueryEngine
from shared_core.gating import ContextGate

SEED = 1
PASSAGES, QUERIES, TURNS = 1_700, 100, 7

Ask = Callable[[str], Any]


def hosts() -> None:
    """Print the milliseconds that each host adds to its bare retriever.

    CPU time of the calling thread, which alone works for the gate; of each query the least of
    several turns, host and retriever in turns, and over the queries the median of the difference.
    """
    corpus = _half_foreign(make(PASSAGES, QUERIES, stop_words=False))
    gate = _gate(corpus)
    print(f"  beyond the bare retriever, {PASSAGES:,} passages, 10 documents a query:")
    for name, (host, bare) in _pairs(corpus, gate).items():
        beyond = _beyond(host, bare, corpus.queries)
        within, without = np.median(beyond[::2]), np.median(beyond[1::2])
        print(f"    {name:36} {within:.3f} ms where it retrieves, {without:.3f} ms where not")
    nothing = np.median(_beyond(RunnablePassthrough().invoke, str, corpus.queries))
    print(f"    LangChain's run of any chain, such as ContextAwarenessGate: {nothing:.3f} ms")


def _half_foreign(corpus: Corpus) -> Corpus:
    """Return the corpus with every second query far from all passages."""
    vectors = corpus.query_vectors.copy()
    far = np.random.default_rng(SEED).standard_normal(vectors[1::2].shape, np.float32)
    vectors[1::2] = far / np.linalg.norm(far, axis=1, keepdims=True)
    return replace(corpus, query_vectors=vectors)


def _gate(corpus: Corpus) -> ContextGate:
    rng = np.random.default_rng(SEED)
    foreign = rng.standard_normal((80, corpus.vectors.shape[1]), np.float32)
    noise = 0.03 * rng.standard_normal(corpus.vectors.shape, np.float32)
    rows = np.arange(len(corpus.texts))
    return ContextGate(candidates=fit(corpus.vectors, rows, corpus.vectors + noise, foreign))


def _pairs(corpus: Corpus, gate: ContextGate) -> dict[str, tuple[Ask, Ask]]:
    chained = langchain_posrag(corpus, documents(corpus))
    indexed = llamaindex_posrag(corpus, nodes(corpus))
    llm = MockLLM()
    engine = RetrieverQueryEngine.from_args(indexed, llm=llm)
    gated = GatedQueryEngine(engine, llm, gate)
    selector = ContextAwarenessSelector(indexed, gate)
    choices = [ToolMetadata(description=what, name=what) for what in ("context", "direct")]
    return {
        "LangChain GatedRetriever": (
            GatedRetriever(retriever=chained, gate=gate).invoke,
            chained.invoke,
        ),
        "LangChain ContextAwarenessGate": (
            ContextAwarenessGate(retriever=chained, gate=gate).invoke,
            chained.invoke,
        ),
        "LlamaIndex GatedQueryEngine": (
            lambda query: gated.decide(QueryBundle(query)),
            lambda query: engine.retrieve(QueryBundle(query)),
        ),
        "LlamaIndex ContextAwarenessSelector": (
            lambda query: selector.select(choices, query),
            indexed.retrieve,
        ),
    }


def _beyond(host: Ask, bare: Ask, queries: list[str]) -> np.ndarray:
    """Return each query's least CPU time in the host, less that in the retriever, in ms."""
    least = np.full((2, len(queries)), np.inf)
    for _ in range(TURNS):
        for row, query in enumerate(queries):
            for which, ask in enumerate((host, bare)):
                begun = time.thread_time_ns()
                ask(query)
                spent = (time.thread_time_ns() - begun) / 1e6
                least[which, row] = min(least[which, row], spent)
    return least[0] - least[1]

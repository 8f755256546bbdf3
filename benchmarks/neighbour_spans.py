"""Neighbour spans against simply more chunks, at an equal token budget, on real text.

::

    python -m benchmarks.neighbour_spans [--collections torch ...] [--data FOLDER ...]
    python -m benchmarks.neighbour_spans --ablation

Documents are cut into chunks of some size and retrieved with all-MiniLM-L6-v2, alone (dense) and
with BM25 (CAUS). For each question every system fills the same budget from the same
ranking of 100 chunks: ``more chunks`` takes them in their order; a fixed window takes as many as
the budget holds with all their neighbours, and one more, trimmed; ``auto`` gets the ranking and
the budget. Shown is the mean share of the answer's characters that is in what came back, and what
the others gain on more chunks, with 95% bootstrap intervals over questions; ``!`` marks a loss and
``*`` a gain whose interval leaves out 0. Below that the largest budget by kind of answer, and
whether one chunk holds it or it is torn. Collections are those of `span_corpora` and folders in the
layout of BEIR. Embeddings are kept under
``--cache``.

``--ablation`` shows, for ten hits and the largest budget, what neighbours and headings change, by
the place of the answer in its document; and where the orders put the answer in the context. No
reader is asked: those of the tests know no running text. `span_reading` asks them, over documents
in their own words.
"""

from __future__ import annotations

import argparse
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from langchain_text_splitters import RecursiveCharacterTextSplitter

from benchmarks.embedding import embed
from benchmarks.span_corpora import COLLECTIONS, Collection, beir
from benchmarks.span_measures import (
    Extent,
    reference_coverage,
    rescued_by_neighbour,
    span_recall,
)
from shared_core import HybridIndex, Passage
from shared_core.arrays import Scores
from shared_core.evaluation import paired_difference_interval
from shared_core.index import ChunkKeys
from shared_core.index.engine import neighbours_in
from shared_core.neighbour_spans import ChunkSource, Expansion, NeighbourSpans, Seed
from shared_core.scoring.fusion import Alpha
from shared_core.tokens import estimate_tokens

POOL, HITS = 100, 10
ALPHAS = {"dense": 1.0, "CAUS": None}
ORDERS = ("edge_balanced", "score_descending", "front_first", "back_first")
KEYS = ChunkKeys()
_HEADING = re.compile(r"^(?:#{1,6} +(.+)|(\S.*)\n[=*~-]{3,} *)$", re.MULTILINE)


@dataclass(frozen=True)
class Setting:
    """A collection in chunks, and for each question its answer, of what kind, and a ranking."""

    source: ChunkSource
    rankings: list[list[Seed]]
    answers: list[Extent]
    kinds: list[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collections", nargs="*", choices=COLLECTIONS, default=[*COLLECTIONS])
    parser.add_argument("--data", nargs="*", type=Path, default=[])
    parser.add_argument("--sizes", nargs="+", type=int, default=[200, 400, 800])
    parser.add_argument("--budgets", nargs="+", type=int, default=[500, 1000, 2000])
    parser.add_argument("--overlap", type=int, default=0, help="percent of the size")
    parser.add_argument("--retrieval", nargs="+", choices=ALPHAS, default=[*ALPHAS])
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "posrag" / "quality")
    options = parser.parse_args()
    gained: dict[int, list[float]] = {size: [] for size in options.sizes}
    for collection in [
        *(COLLECTIONS[name]() for name in options.collections),
        *map(beir, options.data),
    ]:
        for size in options.sizes:
            passages = cut(collection, size, size * options.overlap // 100)
            for retrieval in options.retrieval:
                setting = retrieve(collection, passages, ALPHAS[retrieval], options.cache)
                print(
                    f"\n{collection.name}, {retrieval}: {len(passages):,} chunks of {size} "
                    f"characters, {len(setting.answers)} questions"
                )
                if options.ablation:
                    ablation(setting, collection, options.budgets[-1])
                else:
                    gained[size] += compare(setting, options.budgets)
    for size, gains in gained.items():
        if gains:
            print(
                f"auto, chunks of {size} characters: {np.mean(gains):+.3f} on more chunks, "
                f"at worst {min(gains):+.3f}, of {len(gains)} budgets"
            )


def cut(collection: Collection, size: int, overlap: int) -> list[Passage]:
    """Cut documents into passages that tell their place by the keys that `ChunkKeys` reads."""
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=overlap, add_start_index=True
    )
    passages = []
    for name, text in collection.documents.items():
        headings = [(found.start(), found[1] or found[2]) for found in _HEADING.finditer(text)]
        starts = [start for start, _ in headings]
        for number, piece in enumerate(splitter.create_documents([text])):
            start = piece.metadata["start_index"]
            at = bisect_right(starts, start)
            place = {
                "doc_id": name,
                "chunk_id": number,
                "start_index": start,
                "heading": headings[at - 1][1] if at else "",
            }
            passages.append(Passage(f"{name} {number}", piece.page_content, place))
    return passages


def retrieve(
    collection: Collection, passages: Sequence[Passage], alpha: Alpha, cache: Path
) -> Setting:
    index = HybridIndex()
    index.add(passages, embed([passage.text for passage in passages], cache))
    texts = [question.text for question in collection.questions]
    found = index.search_batch(texts, embed(texts, cache), k=POOL, fetch_k=POOL, alpha=alpha)
    chunks = {passage.id: KEYS.chunk(passage) for passage in passages}
    rankings = [
        [Seed(chunks[p.id], score) for p, score in zip(each.passages, each.scores, strict=True)]
        for each in found
    ]
    answers = [Extent(q.document, q.start, q.end) for q in collection.questions]
    places = [Extent(c.document, c.start or 0, c.end or 0) for c in chunks.values()]
    whole = span_recall([places] * len(answers), answers)
    kinds = [
        question.kind + (", in one chunk" if one else ", torn")
        for question, one in zip(collection.questions, whole, strict=True)
    ]
    return Setting(neighbours_in(index, KEYS), rankings, answers, kinds)


def compare(setting: Setting, budgets: Sequence[int]) -> list[float]:
    """Print what each system covers, and return what ``auto`` gains by budget."""
    systems: dict[str, Callable[[list[Seed], int], Expansion]] = {
        "window 1": lambda seeds, budget: widened(seeds, setting.source, 1, budget),
        "window 2": lambda seeds, budget: widened(seeds, setting.source, 2, budget),
        "auto": lambda seeds, budget: spans("auto", budget).expand(seeds, setting.source),
    }
    print(f"{'budget':>6}{'more chunks':>13}" + "".join(f"{name:>27}" for name in systems))
    gains = []
    for budget in budgets:
        more = covered(setting, lambda seeds, b=budget: spans(0, b).expand(seeds, setting.source))
        found = {
            name: covered(setting, lambda seeds, s=system, b=budget: s(seeds, b))
            for name, system in systems.items()
        }
        cells = [gain(values, more) for values in found.values()]
        gains.append(float((found["auto"] - more).mean()))
        print(f"{budget:6}{more.mean():13.3f}" + "".join(f"{cell:>27}" for cell in cells))
    for kind in sorted({*setting.kinds}):
        of_it = np.array(setting.kinds) == kind
        shown = "".join(f"{(each - more)[of_it].mean():+27.3f}" for each in found.values())
        print(f"{more[of_it].mean():19.3f}{shown}   {kind}: {of_it.sum()}")
    return gains


def spans(window: object, budget: int | None, **options: object) -> NeighbourSpans:
    """Headings do not count in the comparison: most splitters tell none."""
    options.setdefault("min_continuity", None)
    return NeighbourSpans(window=window, token_budget=budget, **options)  # type: ignore[arg-type]


def widened(seeds: list[Seed], source: ChunkSource, window: int, budget: int) -> Expansion:
    """As many seeds as the budget holds with all their neighbours, and one more."""
    whole = spans(window, None)
    largest = max(estimate_tokens(seed.chunk.text) for seed in seeds)
    count = max(1, budget // (largest * (2 * window + 1)) // 2)
    while count < len(seeds) and whole.expand(seeds[:count], source).tokens <= budget:
        count += 1
    return spans(window, budget).expand(seeds[:count], source)


def extents(expansion: Expansion) -> list[Extent]:
    return [
        Extent(span.document, span.chunks[0].start or 0, span.chunks[-1].end or 0)
        for span in expansion.spans
    ]


def covered(setting: Setting, expand: Callable[[list[Seed]], Expansion]) -> Scores:
    found = [extents(expand(seeds)) for seeds in setting.rankings]
    return reference_coverage(found, setting.answers)


def gain(values: Scores, baseline: Scores) -> str:
    low, high = paired_difference_interval(values, baseline)
    mark = "*" if low > 0 else "!" if high < 0 else " "
    return f"{(values - baseline).mean():+.3f} [{low:+.3f}, {high:+.3f}]{mark}"


def ablation(setting: Setting, collection: Collection, budget: int) -> None:
    """Ten hits alone, with neighbours, and with headings that stop unless the text goes on."""
    seeds = [ranking[:HITS] for ranking in setting.rankings]
    alone = [extents(spans(0, None).expand(each, setting.source)) for each in seeds]
    middles = [
        (answer.start + answer.end) / 2 / len(collection.documents[answer.document])
        for answer in setting.answers
    ]
    thirds = np.minimum(2, (3 * np.array(middles)).astype(int))
    steps = {
        "hits alone": spans(0, budget),
        "+ neighbours": spans(2, budget),
        "+ continuity": spans(2, budget, min_continuity=0.5),
        "auto": spans("auto", budget, min_continuity=0.5),
    }
    print(f"{'':14}{'tokens':>7}{'recall':>8}{'rescued':>9}{'covered':>9}  by third of document")
    for name, step in steps.items():
        found = [step.expand(each, setting.source) for each in seeds]
        returned = [extents(each) for each in found]
        share = reference_coverage(returned, setting.answers)
        by_third = "".join(f"{share[thirds == third].mean():7.3f}" for third in range(3))
        print(
            f"{name:14}{np.mean([each.tokens for each in found]):7.0f}"
            f"{span_recall(returned, setting.answers).mean():8.3f}"
            f"{rescued_by_neighbour(returned, alone, setting.answers).mean():9.3f}"
            f"{share.mean():9.3f} {by_third}"
        )
    print("of the answers that came back whole, in the first or last fifth of the context:")
    for order in ORDERS:
        step = spans(2, budget, order=order)
        places = [
            where
            for each, answer in zip(seeds, setting.answers, strict=True)
            if (where := place(step.expand(each, setting.source), answer)) is not None
        ]
        at_edge = np.mean([not 0.2 <= where < 0.8 for where in places])
        print(
            f"  {order:18}{at_edge:6.3f}   in its first half{np.mean(np.array(places) < 0.5):6.3f}"
        )


def place(expansion: Expansion, answer: Extent) -> float | None:
    """Return where in the context the answer's span has its middle, in [0, 1]; None: nowhere."""
    before = 0
    held = dict(zip(map(id, expansion.spans), extents(expansion), strict=True))
    for span in (expansion.spans[rank] for rank in expansion.slots):
        if held[id(span)].holds(answer):
            return (before + span.tokens / 2) / expansion.tokens
        before += span.tokens
    return None


if __name__ == "__main__":
    main()

"""Exact match and F1 of the two readers over neighbour spans, at an equal token budget.

::

    python -m benchmarks.span_reading [--n 300] [--alpha 0.3] [--readers biased uniform]

A document is six facts on made-up stations, a paragraph each, in sections of one to three, whose
headings are in the metadata. It is cut at every blank line, and half of the facts once more in
front of their value: a search for the key finds ``The code of amber falcon is``, and the answer
stands in the next chunk, which shares no word with the question. Stitched together it is what was
cut. Of 300 documents, ``--sizes`` are searched together: of 20 no two facts have the same noun but
many the same adjective; of 300 a noun is in a dozen facts or more, and a search brings those into
the prompt that readers confuse most, whatever the arm.

Every arm fills the same budget from one ranking by all-MiniLM-L6-v2 and BM25; the reader's own
tokenizer counts each span with the blank line behind it. ``kNN alone``: as many chunks as fit, each
a document of its own; ``kNN, stitched``: the same, those that touch put together; ``+ neighbours``:
ten hits, then one neighbour on each side, those of the best span first; ``+ continuity``: likewise,
but across a heading only where the text goes on; ``auto``: the whole ranking. Differences are to
kNN alone in the same order, paired, with 95% bootstrap intervals over questions; ``!`` marks a loss
and ``*`` a gain whose interval leaves out 0. Recall is the share of facts that one span holds up to
the value, ``rescued`` where none of ten hits does. ``front_first`` is ``score_descending`` too.

The readers know prompts of ten documents or fewer and lose their way in much longer ones, hence
the small budget. To them the facts of a span, a blank line between them, are documents of their
own: a neighbour in front of the best fact takes the first slot from it.

What this can show: whether a torn fact reaches a reader in a form it can use, what that costs
others, and what an order makes of it where the bias is known. What it cannot: how often real
documents are torn where it matters (`neighbour_spans` has real text), or what a reader gains that
understands text. These copy one word, that of a key, so that F1 hardly differs from exact match.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise, zip_longest
from pathlib import Path

import numpy as np

from benchmarks.embedding import embed
from benchmarks.span_measures import Extent, rescued_by_neighbour, span_recall
from instruments.corpus import ABSTENTION, Fact, Key, Style, ask, keys, write
from instruments.frameworks import EmbedTexts
from instruments.words import VALUES
from shared_core import HybridIndex, Passage
from shared_core.arrays import Bools, Scores
from shared_core.evaluation import GRADERS, paired_difference_interval
from shared_core.generation import HuggingFaceModel
from shared_core.index import ChunkKeys
from shared_core.index.engine import neighbours_in
from shared_core.neighbour_spans import (
    Chunk,
    ChunkSource,
    Expansion,
    Neighbourhood,
    NeighbourSpans,
    Seed,
)
from shared_core.placement import resolve_placement
from shared_core.sensitivity import ANSWER

DOCUMENTS, FACTS, POOL, HITS, BUDGET = 300, 6, 50, 10, 100
GAP = ANSWER.separator
KEYS = ChunkKeys()
ORDERS = ("edge_balanced", "front_first", "back_first")
Arms = dict[str, list[Expansion]]


@dataclass(frozen=True)
class Question:
    """A question, its answer, and where the fact stands, up to its value."""

    text: str
    answer: str
    place: Extent
    torn: bool
    third: int


@dataclass(frozen=True)
class Collection:
    """Documents that are searched together, cut in order, and a question on each fact."""

    documents: dict[str, str]
    passages: list[Passage]
    questions: list[Question]


@dataclass(frozen=True)
class Retrieved:
    """Questions, for each a ranking of chunks, best first, and who knows their neighbours."""

    questions: Sequence[Question]
    rankings: list[list[Seed]]
    sources: list[ChunkSource]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=300, help="questions")
    parser.add_argument("--sizes", nargs="+", type=int, default=[20, DOCUMENTS])
    parser.add_argument("--budget", type=int, default=BUDGET, help="tokens of a context")
    parser.add_argument("--alpha", type=float, default=0.3, help="weight of the dense scores")
    parser.add_argument("--readers", nargs="+", default=["biased", "uniform"])
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "posrag" / "quality")
    options = parser.parse_args()
    for size in options.sizes:
        collections = [write_collection(size, seed=seed) for seed in range(DOCUMENTS // size)]
        questions = [question for each in collections for question in each.questions]
        asked = random.Random(0).sample(questions, options.n)
        found = retrieve(collections, asked, partial(embed, cache=options.cache), options.alpha)
        for name in options.readers:
            folder = Path(__file__).parents[1] / "instruments" / name
            reader = HuggingFaceModel.from_pretrained(folder, max_new_tokens=4, batch_size=64)
            arms = filled(found, reader, options.budget)
            print(f"\n{name}, {size} documents, alpha {options.alpha}, {options.budget} tokens")
            report_spans(reader, found, arms)
            report_answers(reader, found, arms)


def write_collection(size: int, *, seed: int) -> Collection:
    """Write documents on different keys, the nouns as evenly spread as can be, and cut them."""
    rng = random.Random(seed)
    by_noun: dict[str, list[Key]] = {}
    for key in rng.sample(keys(True), len(keys(True))):
        by_noun.setdefault(key[1], []).append(key)
    one_of_each_in_turn = [key for row in zip_longest(*by_noun.values()) for key in row if key]
    drawn = rng.sample(one_of_each_in_turn[: size * FACTS], size * FACTS)
    collection = Collection({}, [], [])
    for at in range(0, len(drawn), FACTS):
        facts = [write(rng, key, rng.choice(VALUES), Style()) for key in drawn[at : at + FACTS]]
        cut(rng, f"{seed}.{at // FACTS}", facts, collection)
    return collection


def cut(rng: random.Random, name: str, facts: Sequence[Fact], into: Collection) -> None:
    """Join facts into a document and cut it into chunks; blank lines fall between them."""
    text = into.documents[name] = GAP.join(fact.text for fact in facts)
    sections = [section for section in range(len(facts)) for _ in range(rng.randint(1, 3))]
    start = number = 0
    for fact, section in zip(facts, sections, strict=False):
        end, value = start + len(fact.text), start + fact.text.index(f" {fact.value}")
        torn = rng.random() < 0.5
        for first, last in pairwise([start, value, end] if torn else [start, end]):
            where = {"doc_id": name, "chunk_id": number, "start_index": first}
            where["heading"] = f"Section {section}"
            into.passages.append(Passage(f"{name} {number}", text[first:last], where))
            number += 1
        place = Extent(name, start, value + 1 + len(fact.value))
        third = 3 * (place.start + place.end) // (2 * len(text))
        asked = ask(rng, fact.key, Style())
        into.questions.append(Question(asked, fact.value, place, torn, third))
        start = end + len(GAP)


def retrieve(
    collections: Sequence[Collection],
    asked: Sequence[Question],
    embed: EmbedTexts,
    alpha: float = 0.3,
) -> Retrieved:
    """Rank for each question the chunks of its collection."""
    rankings: dict[Question, list[Seed]] = {}
    sources: dict[Question, ChunkSource] = {}
    for collection in collections:
        own = [question for question in asked if question.place.document in collection.documents]
        if not own:
            continue
        index = HybridIndex()
        index.add(collection.passages, embed([passage.text for passage in collection.passages]))
        texts = [question.text for question in own]
        found = index.search_batch(texts, embed(texts), k=POOL, fetch_k=POOL, alpha=alpha)
        source = neighbours_in(index, KEYS)
        for question, each in zip(own, found, strict=True):
            rankings[question] = [*map(Seed, map(KEYS.chunk, each.passages), each.scores)]
            sources[question] = source
    return Retrieved(asked, [rankings[q] for q in asked], [sources[q] for q in asked])


class Apart:
    """A source that knows no neighbours, so that nothing touches."""

    def around(self, seeds: Sequence[Chunk], window: int) -> list[Neighbourhood]:
        return [*map(Neighbourhood, seeds)]


def filled(found: Retrieved, reader: HuggingFaceModel, budget: int = BUDGET) -> Arms:
    """Fill the budget by each arm, for each question."""
    tokens = cache(lambda text: reader.count_tokens(text + GAP))

    apart: list[ChunkSource] = [Apart()] * len(found.sources)

    def expand(sources: list[ChunkSource], hits: int, **how: object) -> list[Expansion]:
        spans = NeighbourSpans(token_budget=budget, count_tokens=tokens, **how)  # type: ignore[arg-type]
        asked = zip(found.rankings, sources, strict=True)
        return [spans.expand(ranking[:hits], source) for ranking, source in asked]

    return {
        "kNN alone": expand(apart, POOL, window=0),
        "kNN, stitched": expand(found.sources, POOL, window=0),
        "+ neighbours": expand(found.sources, HITS, window=1, min_continuity=None),
        "+ continuity": expand(found.sources, HITS, window=1),
        "auto": expand(found.sources, POOL, window="auto"),
    }


def prompts(found: Retrieved, arm: Sequence[Expansion], order: str) -> list[str]:
    """Ask each question over its spans in their slots."""
    slots = resolve_placement(order)
    placed = [[each.spans[rank].text for rank in slots(len(each.spans))] for each in arm]
    return [ANSWER.render(texts, q.text) for texts, q in zip(placed, found.questions, strict=True)]


def report_spans(reader: HuggingFaceModel, found: Retrieved, arms: Arms) -> None:
    hits = [[extent(seed.chunk) for seed in ranking[:HITS]] for ranking in found.rankings]
    facts = [question.place for question in found.questions]
    alone: list[Scores] = []
    print(f"{'':17}{'spans':>6}{'prompt tokens':>15}{'recall':>8}{'less alone':>25}{'rescued':>9}")
    for name, arm in arms.items():
        places = [[extent(*span.chunks) for span in each.spans] for each in arm]
        recall, rescued = span_recall(places, facts), rescued_by_neighbour(places, hits, facts)
        alone.append(recall)
        tokens = [reader.count_tokens(prompt) for prompt in prompts(found, arm, ORDERS[0])]
        print(
            f"{name:17}{np.mean([*map(len, places)]):6.1f}{np.mean(tokens):8.0f} <= "
            f"{max(tokens):3}{gain(recall, alone[0])}{rescued.mean():9.3f}"
        )


def extent(*chunks: Chunk) -> Extent:
    return Extent(chunks[0].document, chunks[0].start or 0, chunks[-1].end or 0)


def report_answers(reader: HuggingFaceModel, found: Retrieved, arms: Arms) -> None:
    torn, third = np.array([[each.torn, each.third] for each in found.questions]).T
    groups = {"torn": torn == 1, "whole": torn == 0}
    groups |= {f"{part} third": third == i for i, part in enumerate(("first", "middle", "last"))}
    print(f"{'':17}{'EM':>8}{'less alone':>25}{'F1':>8}{'less alone':>25}{'abstains':>9}")
    for order in ORDERS:
        said = {name: reader.generate(prompts(found, arm, order)) for name, arm in arms.items()}
        report_group(order, said, found, torn >= 0)
        for name, group in groups.items() if order == ORDERS[0] else ():
            if group.sum() > 1:  # of fewer there is no interval
                report_group(f"{order}, {name}", said, found, group)


def report_group(label: str, said: dict[str, list[str]], found: Retrieved, group: Bools) -> None:
    print(f"{label}: {group.sum()}")
    alone: dict[str, Scores] = {}
    for name, answers in said.items():
        line = f"  {name:15}"
        for how in ("exact", "f1"):
            pairs = zip(answers, found.questions, strict=True)
            values = np.array([GRADERS[how](answer, [q.answer]) for answer, q in pairs])[group]
            line += gain(values, alone.setdefault(how, values))
        print(f"{line}{np.mean(np.array(answers)[group] == ABSTENTION):9.3f}", flush=True)


def gain(values: Scores, alone: Scores) -> str:
    """Return the mean and, but for kNN alone itself, the mean difference and its interval."""
    if values is alone:
        return f"{values.mean():8.3f}{'':25}"
    low, high = paired_difference_interval(values, alone)
    mark = "*" if low > 0 else "!" if high < 0 else " "
    return f"{values.mean():8.3f}{(values - alone).mean():+7.3f} [{low:+.3f}, {high:+.3f}]{mark}"


if __name__ == "__main__":
    main()

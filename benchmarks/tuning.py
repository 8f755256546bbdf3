"""What labels gain: the weight chosen by a few questions, judged on the others.

::

    python -m benchmarks.tuning --data torch networkx FOLDER ... [--draws 200] [--embedding MODEL]

Collections and options are those of `benchmarks.quality`. Of each, `n` questions are drawn again
and again; `shared_core.tuning.choose` takes a weight by them, and the questions that were not drawn
judge it: nDCG@10 less that of the best fixed weight of min-max fusion for the whole collection.
``0`` is the default without any label. Whatever is relevant counts as such, whatever its grade.

The last rows leave out each collection in turn: how many questions speak for the present weight is
chosen on the others, by their mean over all numbers of labels; and so is the weight of a default
for this embedding model. What each weight loses follows.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.embedding import add_options, chosen
from benchmarks.labelled import Collection, read
from shared_core import CAUS, HybridIndex
from shared_core.arrays import Scores
from shared_core.cli.embedding import EmbeddingCache
from shared_core.scoring.fusion import WEIGHTS as DEFAULTS
from shared_core.tuning import HOLD, WEIGHTS, choose, found_by_weight, ndcg_by_weight
from shared_core.types import Query

SIZES = (5, 10, 20, 50, 100, 200, 500)
HOLDS = (0, 10, 20, 40, 80, 160)
JUDGES = 20
"""Fewest questions that judge: a collection with fewer left is not in a column."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", required=True)
    add_options(parser, "quality")
    parser.add_argument("--draws", type=int, default=200)
    options = parser.parse_args()
    print(f"{'labels':32}" + "".join(f"{n:>8}" for n in (0, *SIZES)))
    embed, curves = chosen(options), []
    by_hold: dict[int, list[Scores]] = {hold: [] for hold in HOLDS}
    for source in options.data:
        collection = read(source)
        ndcg = measured(collection, embed)
        curves.append(ndcg[0].mean(axis=0) - ndcg[1].mean(axis=0).max())
        for hold, rows in by_hold.items():
            rows.append(losses(*ndcg, options.draws, hold))
        print(f"{collection.name:32}" + shown(by_hold[HOLD][-1]))
    summary("", by_hold[HOLD])
    if len(options.data) > 1:
        summary(", left out", left_out(by_hold))
        weights(np.array(curves))


def measured(collection: Collection, embed: EmbeddingCache) -> tuple[Scores, Scores]:
    """Return nDCG of each question by weight: of the default fusion, and of min-max."""
    index = HybridIndex()
    index.add(collection.passages, embed([p.text for p in collection.passages]))
    texts = list(collection.queries.values())
    vectors = embed(texts)
    pools = index.pool([Query(*each) for each in zip(texts, vectors, strict=True)], 50)
    relevant = [{*collection.relevant[query]} for query in collection.queries]
    numbers = [len(ids) for ids in relevant]
    ours, min_max = (
        ndcg_by_weight(found_by_weight(caus, pools, relevant), numbers)
        for caus in (CAUS(), CAUS(fusion="min_max"))
    )
    return ours, min_max


def summary(of: str, rows: Sequence[Scores]) -> None:
    print(f"{'mean' + of:32}" + shown(np.nanmean(rows, axis=0)))
    print(f"{'worst' + of:32}" + shown(np.nanmin(rows, axis=0)))


def left_out(by_hold: Mapping[int, Sequence[Scores]]) -> list[Scores]:
    """Return what each collection loses by the hold that is best for the others, and print that."""
    rows, chosen = [], []
    for at in range(len(by_hold[HOLD])):
        mean = {hold: np.nanmean(np.delete(each, at, axis=0)) for hold, each in by_hold.items()}
        chosen.append(max(HOLDS, key=lambda hold: mean[hold]))
        rows.append(by_hold[chosen[-1]][at])
    print(f"questions for the present weight, chosen on the others: {chosen}")
    return rows


def weights(curves: Scores) -> None:
    """Print the weight that is best for the others of each collection; and what each loses."""
    others = (curves.sum(axis=0) - curves) / (len(curves) - 1)
    best = others.argmax(axis=1)
    lost = curves[np.arange(len(curves)), best]
    print(f"weight without labels, chosen on the others: {WEIGHTS[best].tolist()}")
    print(f"{'':32}mean {lost.mean():+.4f}, worst {lost.min():+.4f}")
    for weight, column in zip(WEIGHTS, curves.T, strict=True):
        print(f"weight {weight:<25}mean {column.mean():+.4f}, worst {column.min():+.4f}")


def losses(ours: Scores, min_max: Scores, draws: int, hold: int) -> Scores:
    """Return, by number of labels, what is lost to the best fixed weight of min-max."""
    rng, default = np.random.default_rng(0), DEFAULTS["theoretical_min"]
    best = min_max[:, min_max.mean(axis=0).argmax()]
    at = int(np.abs(WEIGHTS - default).argmin())
    found = [(ours[:, at] - best).mean()]
    for n in SIZES:
        each = []
        for _ in range(draws if len(ours) >= n + JUDGES else 0):
            drawn = np.zeros(len(ours), np.bool_)
            drawn[rng.choice(len(ours), n, replace=False)] = True
            weight = choose(ours[drawn], default, hold)
            chosen = ours[:, int(np.abs(WEIGHTS - weight).argmin())]
            each.append((chosen - best)[~drawn].mean())
        found.append(np.mean(each) if each else np.nan)
    return np.array(found)


def shown(values: Scores) -> str:
    return "".join(" " * 8 if np.isnan(value) else f"{value:+8.4f}" for value in values)


if __name__ == "__main__":
    main()

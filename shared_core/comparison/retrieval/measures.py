"""Measures of rankings, as far as it is known which passages hold the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from shared_core.comparison.records import Estimate
from shared_core.comparison.retrieval.spans import members
from shared_core.comparison.statistics import Testing
from shared_core.evaluation.retrieval import retrieval_measures
from shared_core.types import Passage


def relevant_ids(ranked: Sequence[Passage], gold: Sequence[str]) -> Iterator[str]:
    """Yield the ids of what holds the answer; a span with a gold passage stands for it."""
    missing = {*gold}
    for passage in ranked:
        found = {*members(passage)} & {*gold}
        if found:
            yield passage.id
        missing -= found
    yield from (id for id in gold if id in missing)


def gold_rank(ranked: Sequence[str], gold: Sequence[str]) -> int | None:
    """Return the best rank of a passage that holds the answer; None if there is no such passage."""
    return next((rank for rank, id in enumerate(ranked) if id in gold), None)


def retrieval(
    k: int,
    ids: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    testing: Testing,
) -> dict[str, Estimate]:
    """Return the measures of rankings, over the questions whose gold passages are known."""
    known = [row for row, relevant in enumerate(gold) if relevant]
    if not known:
        return {}
    found = retrieval_measures(
        # A retriever may have returned a passage twice; its first place counts.
        {str(row): [*dict.fromkeys(ids[row])] for row in known},
        {str(row): dict.fromkeys(gold[row], 1) for row in known},
        [*dict.fromkeys(("hit@1", f"hit@{k}", f"nDCG@{k}", "MRR"))],
    )
    return {name: testing.estimate(values.tolist()) for name, values in found.items()}

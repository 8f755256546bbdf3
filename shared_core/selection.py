"""Which passages of a pool become the best k: near enough, none twice, so many of one source."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shared_core.index.tokenize import split_words
from shared_core.neighbour_spans import ChunkReader
from shared_core.types import Passage, Pool, Ranking, Tokenizer


def near_enough(pool: Pool, min_similarity: float) -> Pool:
    """Return a pool without the passages whose cosine is lower.

    Raises
    ------
    ValueError
        If its dense scores are no cosines.
    """
    if pool.nearest is None and len(pool.passages):
        raise ValueError(
            f"min_similarity={min_similarity} is a cosine, and the dense scores are not known to "
            "be cosines: use metric='cosine', or, over a store that compares by cosine, "
            "rescore=True; over another leave min_similarity out, or build the retriever by "
            "from_documents (from_nodes)"
        )
    rows = np.flatnonzero(pool.dense >= min_similarity)
    exact = (pool.dense_exact, pool.sparse_exact)
    dense_exact, sparse_exact = (None if each is None else each[rows] for each in exact)
    return replace(
        pool,
        passages=[pool.passages[row] for row in rows.tolist()],
        dense=pool.dense[rows],
        sparse=pool.sparse[rows],
        dense_exact=dense_exact,
        sparse_exact=sparse_exact,
    )


def selected(
    ranking: Ranking,
    k: int,
    distinct: float | None,
    per_source: int | None,
    below: int | None,
    reader: ChunkReader,
    tokenizer: Tokenizer | None = None,
) -> Ranking:
    """Return the best k of a whole pool, each with what was left out because of it.

    Parameters
    ----------
    ranking
        With passages.
    k
        Number of passages to keep, >= 1; there may be fewer.
    distinct
        From which `overlap` with a better one a passage is left out; None: none is.
    per_source
        Most passages of one document, which their metadata name; None: any number.
    below
        How many were left out before, for their similarity; None: nothing was asked.
    reader
        Tells the document of a passage.
    tokenizer
        Text to the words that are compared; None: its surface words, in lower case.
    """
    left_out = chosen(ranking.passages, k, distinct, per_source, below, reader, tokenizer)
    return replace(ranking.at([*left_out]), left_out=[*left_out.values()])


def chosen(
    passages: Sequence[Passage],
    k: int,
    distinct: float | None,
    per_source: int | None,
    below: int | None,
    reader: ChunkReader,
    tokenizer: Tokenizer | None = None,
) -> dict[int, dict[str, Any]]:
    """Return the ranks to keep, best first, each with what is left out because of it.

    The parameters are those of `selected`.
    """
    kept: list[int] = []
    words: dict[int, Counter[str]] = {}
    of_source: dict[str, list[int]] = {}
    left_out: dict[int, dict[str, Any]] = {}
    for rank, passage in enumerate(passages):
        if len(kept) == k:
            break
        if distinct is not None:
            mine = _words(passage.text, tokenizer)
            twin = next((each for each in kept if overlap(words[each], mine) >= distinct), None)
            if twin is not None:
                left_out[twin]["duplicates"].append(passage.id)
                continue
            words[rank] = mine
        if per_source is not None and (named := reader.document_of(passage)) is not None:
            source = of_source.setdefault(named[1], [])
            if len(source) == per_source:
                left_out[source[0]]["same_source"].append(passage.id)
                continue
            source.append(rank)
        kept.append(rank)
        asked = {"duplicates": distinct, "same_source": per_source}
        left_out[rank] = {name: [] for name, value in asked.items() if value is not None}
        if below is not None:
            left_out[rank]["below_min_similarity"] = below
    if per_source is not None and len(passages) > 1 and not any(map(reader.document_of, passages)):
        warnings.warn(
            f"per_source={per_source} leaves nothing out, as no passage names its document: put it "
            "into the metadata, see ChunkKeys",
            stacklevel=2,
        )
    return left_out


def overlap(one: Counter[str], other: Counter[str]) -> float:
    """Return the share of words that two texts have in common, each as often as it occurs.

    In [0, 1] (Jaccard's index of multisets).
    """
    return (one & other).total() / (one | other).total()


def _words(text: str, tokenizer: Tokenizer | None) -> Counter[str]:
    """Return the words of a text; one without words is a word itself."""
    words = split_words(text.lower()) if tokenizer is None else tokenizer(text)
    return Counter([*words] or [text])

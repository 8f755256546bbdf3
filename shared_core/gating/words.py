"""Words of queries and passages: how many are shared, and which tell a passage from others."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from shared_core.checking import check_count
from shared_core.types import Tokenizer

PHRASES = 5
"""Words per passage: with more, they come as close to it as whole sentences."""

_WORD = re.compile(r"\w+")


def plain_words(text: str) -> list[str]:
    """Return the runs of word characters, in lower case."""
    return _WORD.findall(text.lower())


@dataclass(frozen=True, kw_only=True, eq=False)
class WordCoverage:
    """Weights the words of queries by the number of passages in which each occurs.

    Attributes
    ----------
    passages
        Number of passages that were counted.
    counts
        Word -> number of passages in which it occurs.
    tokenizer
        Text to words.
    """

    passages: int
    counts: Mapping[str, int] = field(repr=False)
    tokenizer: Tokenizer = plain_words

    @classmethod
    def of(cls, texts: Sequence[str], tokenizer: Tokenizer = plain_words) -> Self:
        """Count the words of passages."""
        counts = Counter(word for text in texts for word in {*tokenizer(text)})
        return cls(passages=len(texts), counts=counts, tokenizer=tokenizer)

    def weight(self, word: str) -> float:
        """Return the idf of a word as in BM25, positive; rarer words weigh more."""
        count = self.counts.get(word, 0)
        return math.log1p((self.passages - count + 0.5) / (count + 0.5))

    def share(self, query: str, passages: Sequence[str]) -> float:
        """Return the share by weight of the query's words that the best passage holds.

        Parameters
        ----------
        query
            The query.
        passages
            The nearest passages, about five.

        Returns
        -------
        float
            In [0, 1]; 0 for a query without words, or no passages.
        """
        weights = {word: self.weight(word) for word in {*self.tokenizer(query)}}
        total = math.fsum(weights.values())
        if not total > 0:
            return 0.0
        held = (weights.keys() & {*self.tokenizer(passage)} for passage in passages)
        best = max((math.fsum(weights[word] for word in words) for words in held), default=0.0)
        return min(1.0, best / total)


def telling_words(text: str, words: WordCoverage, *, count: int = PHRASES) -> str:
    """Return the words of a text that weigh most, in their order; the text if it has no words.

    Those of a passage (key phrases) are the best pseudo-queries without a model: a few such words
    are about as similar to it as a person's question is, while whole sentences are much more
    similar. The accuracy with each source: ``python -m benchmarks.gating``. Of `plain_words`, which
    in a language without spaces between words are whole sentences, those of one or two characters
    are left out, as they seldom tell anything.

    Parameters
    ----------
    text
        A passage or a query.
    words
        Word counts of the corpus.
    count
        How many words, >= 1.

    Raises
    ------
    ValueError
        If `count` is below 1.
    """
    check_count(count, "count")
    shortest = 3 if words.tokenizer is plain_words else 1
    found = Counter(word for word in words.tokenizer(text) if len(word) >= shortest)
    weights = {word: words.weight(word) * (1 + math.log(n)) for word, n in found.items()}
    best = {*sorted(weights, key=lambda word: -weights[word])[:count]}
    return " ".join(word for word in found if word in best) or text

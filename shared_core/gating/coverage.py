"""How much of a query's wording a passage holds: lexical evidence beside the similarity."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from shared_core.types import Tokenizer

_WORD = re.compile(r"\w+")


def plain_words(text: str) -> list[str]:
    """Return the lower-cased runs of word characters."""
    return _WORD.findall(text.lower())


class WordCoverage:
    """Counts in how many passages each word occurs, and weighs queries by it.

    Parameters
    ----------
    tokenizer
        Text to words; `plain_words` by default.
    """

    def __init__(self, tokenizer: Tokenizer = plain_words) -> None:
        self.tokenizer = tokenizer
        self._passages = 0
        self._counts: Counter[str] = Counter()

    @classmethod
    def of(
        cls, passages: int, counts: Mapping[str, int], tokenizer: Tokenizer = plain_words
    ) -> Self:
        """Return the coverage of passages that have been counted already: their `counts`."""
        coverage = cls(tokenizer)
        coverage._passages = passages
        coverage._counts.update(counts)
        return coverage

    def __len__(self) -> int:
        return self._passages

    @property
    def counts(self) -> dict[str, int]:
        """In how many passages each word occurs; a copy."""
        return dict(+self._counts)

    def add(self, texts: Iterable[str]) -> None:
        """Count passages in."""
        for text in texts:
            self._passages += 1
            self._counts.update({*self.tokenizer(text)})

    def delete(self, texts: Iterable[str]) -> None:
        """Count passages out, which must have been counted in.

        Raises
        ------
        ValueError
            If a passage holds a word that no counted passage does; the others before it are out.
        """
        for text in texts:
            words = {*self.tokenizer(text)}
            stranger = next((word for word in words if self._counts[word] < 1), None)
            if stranger is not None or not self._passages:
                raise ValueError(f"{text!r:.80} was never counted in: no passage holds {stranger}")
            self._passages -= 1
            self._counts.subtract(words)

    def weight(self, word: str) -> float:
        """Return BM25's idf of a word, positive; the rarer, the heavier."""
        count = self._counts[word]
        return math.log1p((self._passages - count + 0.5) / (count + 0.5))

    def share(self, query: str, passages: Sequence[str]) -> float:
        """Return the share of the query's words, by weight, that the best of the passages holds.

        Parameters
        ----------
        query
            The query.
        passages
            The nearest passages, five or so.

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

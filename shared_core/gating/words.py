"""Words of queries and passages: how many are shared, and which tell a passage from others."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from shared_core.checking import check_count
from shared_core.types import Tokenizer

PHRASES = 5
"""Words per passage: with more, they come as close to it as whole sentences."""

_WORD = re.compile(r"\w+")


def plain_words(text: str) -> list[str]:
    """Return the runs of word characters, in lower case."""
    return _WORD.findall(text.lower())


class WordCoverage:
    """Counts the passages in which each word occurs, and weights the words of queries by it.

    Parameters
    ----------
    tokenizer
        Text to words; `plain_words` by default.
    passages, counts
        Passages that were counted before, and the `counts` of them; by default none.
    """

    def __init__(
        self,
        tokenizer: Tokenizer = plain_words,
        *,
        passages: int = 0,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self._passages = passages
        self._counts: Counter[str] = Counter(counts)

    def __len__(self) -> int:
        return self._passages

    @property
    def counts(self) -> dict[str, int]:
        """Word -> number of passages in which it occurs; a copy."""
        return dict(+self._counts)

    def add(self, texts: Iterable[str]) -> None:
        """Add passages to the counts."""
        for text in texts:
            self._passages += 1
            self._counts.update({*self.tokenizer(text)})

    def delete(self, texts: Iterable[str]) -> None:
        """Remove passages from the counts; each must have been added.

        Raises
        ------
        ValueError
            If a passage holds a word that no counted passage does; those before it are removed.
        """
        for text in texts:
            words = {*self.tokenizer(text)}
            unknown = next((word for word in words if self._counts[word] < 1), None)
            if unknown is not None or not self._passages:
                word = "it" if unknown is None else repr(unknown)
                raise ValueError(f"{text!r:.80} was never added: no counted passage holds {word}")
            self._passages -= 1
            self._counts.subtract(words)

    def weight(self, word: str) -> float:
        """Return the idf of a word as in BM25, positive; rarer words weigh more."""
        count = self._counts[word]
        return math.log1p((self._passages - count + 0.5) / (count + 0.5))

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


def key_phrases(
    texts: Sequence[str], *, count: int = PHRASES, tokenizer: Tokenizer = plain_words
) -> list[str]:
    """Return the words that distinguish each passage from the others, in their order.

    The best pseudo-queries without a model: a few such words are about as similar to their passage
    as a person's question is, while whole sentences are much more similar. The accuracy with each
    source: ``python -m benchmarks.gating``.

    Parameters
    ----------
    texts
        The passages of the corpus. A word weighs more the fewer of them it occurs in.
    count
        Words per passage, >= 1.
    tokenizer
        Text to words. The default takes runs of word characters, of three or more, which in a
        language without spaces between words are whole sentences.

    Raises
    ------
    ValueError
        If `count` is below 1.
    """
    words = WordCoverage(tokenizer)
    words.add(texts)
    return [telling_words(text, words, count=count) for text in texts]


def telling_words(text: str, words: WordCoverage, *, count: int = PHRASES) -> str:
    """Return the words of a text that weigh most, in their order; the text if it has no words.

    Of `plain_words` those of one or two characters are left out, as they seldom tell anything.

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

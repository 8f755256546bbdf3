"""The vocabulary of a sparse index: tokens to numbers."""

from __future__ import annotations

from collections.abc import Iterable

from shared_core.index.tokenize import Tokenizer, expand_word, split_words, tokenize


class Lexicon:
    """Numbers the tokens of a corpus in first-occurrence order.

    Reading is safe while another thread learns: numbers are only ever added.

    Parameters
    ----------
    tokenizer
        Text to tokens. The default, `tokenize`, is applied word by word and remembered, which
        is what makes building an index cheap.
    """

    def __init__(self, tokenizer: Tokenizer | None = None) -> None:
        self.tokenizer = tokenize if tokenizer is None else tokenizer
        self.ids: dict[str, int] = {}
        self._known: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def learn(self, text: str) -> list[int]:
        """Return the numbers of the tokens of `text`, numbering new ones."""
        numbers: list[int] = []
        known = self._known
        for word in self._words(text):
            expanded = known.get(word)
            if expanded is None:
                expanded = known[word] = self._number(word)
            numbers += expanded
        return numbers

    def lookup(self, text: str) -> dict[int, int]:
        """Return number -> occurrences of the known tokens of `text`, in first-occurrence order."""
        occurrences: dict[int, int] = {}
        ids = self.ids
        for token in self.tokenizer(text):
            number = ids.get(token)
            if number is not None:
                occurrences[number] = occurrences.get(number, 0) + 1
        return occurrences

    def _words(self, text: str) -> Iterable[str]:
        return split_words(text) if self.tokenizer is tokenize else self.tokenizer(text)

    def _number(self, word: str) -> list[int]:
        tokens = expand_word(word) if self.tokenizer is tokenize else [word]
        for token in tokens:
            if not isinstance(token, str):
                raise TypeError(f"the tokenizer must return strings, got {token!r}")
        return [self.ids.setdefault(token, len(self.ids)) for token in tokens]

"""The vocabulary of a sparse index: tokens to numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import chain, compress

from shared_core.index.tokenize import tokenize
from shared_core.types import Tokenizer

REMEMBERED = 1 << 18
"""Most pieces of text whose tokens are cached."""

LONGEST = 64
"""Most characters of a cached piece: longer ones rarely recur."""


class Lexicon:
    """Numbers the tokens of a corpus in first-occurrence order.

    Reading is safe while another thread learns: numbers are only ever added.

    Parameters
    ----------
    tokenizer
        Text to tokens. The default, `tokenize`, never looks beyond white space, so it is applied to
        the pieces between and cached, which makes building an index cheap.

    Raises
    ------
    ValueError
        If the tokenizer cannot be called.
    """

    def __init__(self, tokenizer: Tokenizer | None = None) -> None:
        if tokenizer is not None and not callable(tokenizer):
            raise ValueError(f"tokenizer must be a function of a text, got {tokenizer!r}")
        self.tokenizer = tokenize if tokenizer is None else tokenizer
        self.ids: dict[str, int] = {}
        default = self.tokenizer is tokenize
        self._split: Tokenizer = str.split if default else partial(_tokens_of, self.tokenizer)
        self._known = _Numbers(self.ids, tokenize if default else _single_token)

    def __len__(self) -> int:
        return len(self.ids)

    def apart(self) -> Lexicon:
        """Return one with the same numbers that learns independently from now on."""
        lexicon = Lexicon(self.tokenizer)
        lexicon.ids.update(self.ids)
        return lexicon

    @classmethod
    def of(cls, tokens: Iterable[str], tokenizer: Tokenizer | None) -> Lexicon:
        """Return one that numbers these tokens, in their order, and knows no others."""
        lexicon = cls(tokenizer)
        lexicon.ids.update((token, number) for number, token in enumerate(tokens))
        return lexicon

    def only(self, kept: Iterable[bool]) -> Lexicon:
        """Return one that renumbers the kept ones of the first tokens, and knows no others."""
        return Lexicon.of(compress(self.ids, kept), self.tokenizer)

    def learn(self, text: str) -> list[int]:
        """Return the numbers of the tokens of `text`, numbering new ones.

        Raises
        ------
        ValueError
            If `text` is not a string.
        TypeError
            If the tokenizer returns anything but strings.
        """
        try:
            return list(chain.from_iterable(map(self._known.__getitem__, self._split(text))))
        except TypeError:
            _check_text(text)
            raise

    def lookup(self, text: str) -> dict[int, int]:
        """Return number -> occurrences of the known tokens of `text`, in first-occurrence order.

        Raises
        ------
        ValueError, TypeError
            As `learn`.
        """
        occurrences: dict[int, int] = {}
        try:
            pieces = self._split(text)
        except TypeError:
            _check_text(text)
            raise
        for piece in pieces:
            for number in self._known.get(piece) or self._known.read(piece)[0]:
                occurrences[number] = occurrences.get(number, 0) + 1
        return occurrences

    def measure(self, text: str) -> tuple[dict[int, int], int]:
        """Return number -> occurrences of the known tokens, and the number of all tokens."""
        numbers: list[int] = []
        unknown = 0
        for piece in self._split(text):
            found, missing = self._known.get(piece), 0
            if found is None:
                found, missing = self._known.read(piece)
            numbers += found
            unknown += missing
        return Counter(numbers), len(numbers) + unknown


class _Numbers(dict[str, tuple[int, ...]]):
    """The numbers of the tokens in each piece of text; looking one up numbers its new tokens."""

    def __init__(self, ids: dict[str, int], tokens: Tokenizer) -> None:
        super().__init__()
        self._ids = ids
        self._tokens = tokens

    def read(self, piece: str) -> tuple[tuple[int, ...], int]:
        """Return the numbers of the known tokens in a piece, and how many are unknown."""
        ids, tokens = self._ids, self._tokens(piece)
        numbers = tuple([ids[token] for token in tokens if token in ids])
        unknown = len(tokens) - len(numbers)
        if not unknown:  # else tokens learned later would be missing
            self._remember(piece, numbers)
        return numbers, unknown

    def __missing__(self, piece: str) -> tuple[int, ...]:
        ids, tokens = self._ids, self._tokens(piece)
        if len(tokens) == 1:  # as most are: faster than a comprehension
            numbers: tuple[int, ...] = (ids.setdefault(tokens[0], len(ids)),)
        else:
            numbers = tuple([ids.setdefault(token, len(ids)) for token in tokens])
        self._remember(piece, numbers)
        return numbers

    def _remember(self, piece: str, numbers: tuple[int, ...]) -> None:
        if len(self) < REMEMBERED and len(piece) <= LONGEST:
            self[piece] = numbers


def _check_text(text: object) -> None:
    if not isinstance(text, str):
        raise ValueError(f"a text must be a string, got {text!r}")


def _tokens_of(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the tokens of `text`; TypeError if they are not iterable, or a single string."""
    tokens = tokenizer(text)
    if isinstance(tokens, str) or not isinstance(tokens, Iterable):
        raise TypeError(f"the tokenizer must return a list of strings, got {tokens!r}")
    return tokens


def _single_token(token: str) -> list[str]:
    if not isinstance(token, str):
        raise TypeError(f"the tokenizer must return strings, got {token!r}")
    return [token]

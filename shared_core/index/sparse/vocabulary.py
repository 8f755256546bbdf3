"""The vocabulary of a sparse index: tokens to numbers."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import chain

from shared_core.index.tokenize import tokenize
from shared_core.types import Tokenizer

REMEMBERED = 1 << 18
"""Most pieces of text whose tokens are cached."""

LONGEST = 64
"""Most characters of a cached piece: longer ones rarely recur."""


class Vocabulary:
    """Numbers the tokens of a corpus in first-occurrence order.

    Reading is safe while another thread learns: numbers are only ever added.

    Parameters
    ----------
    tokenizer
        Text to tokens. The default, `tokenize`, never looks beyond white space, so it is applied to
        the pieces between and cached, which makes building an index cheap.
    tokens
        Those that are known already, in their order.

    Raises
    ------
    ValueError
        If the tokenizer cannot be called.
    """

    def __init__(self, tokenizer: Tokenizer | None = None, tokens: Iterable[str] = ()) -> None:
        if tokenizer is not None and not callable(tokenizer):
            raise ValueError(f"tokenizer must be a function of a text, got {tokenizer!r}")
        self.tokenizer = tokenize if tokenizer is None else tokenizer
        self.ids = {token: number for number, token in enumerate(tokens)}
        default = self.tokenizer is tokenize
        self.custom = None if default else self.tokenizer
        """The tokenizer; None: the default."""
        self._split: Tokenizer = str.split if default else partial(_tokens_of, self.tokenizer)
        self._known = _Numbers(self.ids, tokenize if default else _single_token)

    def __len__(self) -> int:
        return len(self.ids)

    def apart(self) -> Vocabulary:
        """Return one with the same numbers that learns independently from now on."""
        return Vocabulary(self.tokenizer, [*self.ids])

    def learn(self, text: str) -> list[int]:
        """Return the numbers of the tokens of `text`, numbering new ones.

        Raises
        ------
        ValueError
            If `text` is not a string.
        TypeError
            If the tokenizer returns anything but strings.
        """
        return list(chain.from_iterable(map(self._known.__getitem__, self._pieces(text))))

    def count(self, text: str) -> tuple[dict[int, int], int]:
        """Return number -> occurrences of the known tokens of `text`, and how many all tokens are.

        The numbers come in first-occurrence order.

        Raises
        ------
        ValueError, TypeError
            As `learn`.
        """
        counts: dict[int, int] = {}
        total = 0
        for piece in self._pieces(text):
            numbers, unknown = self._known.get(piece), 0
            if numbers is None:
                numbers, unknown = self._known.read(piece)
            for number in numbers:
                counts[number] = counts.get(number, 0) + 1
            total += len(numbers) + unknown
        return counts, total

    def _pieces(self, text: str) -> list[str]:
        if not isinstance(text, str):
            raise ValueError(f"a text must be a string, got {text!r}")
        return self._split(text)


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
        ids = self._ids
        numbers = tuple([ids.setdefault(token, len(ids)) for token in self._tokens(piece)])
        self._remember(piece, numbers)
        return numbers

    def _remember(self, piece: str, numbers: tuple[int, ...]) -> None:
        if len(self) < REMEMBERED and len(piece) <= LONGEST:
            self[piece] = numbers


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

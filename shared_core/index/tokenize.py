"""The default tokeniser: lower-cased words that keep identifiers whole *and* in parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

Tokenizer: TypeAlias = Callable[[str], list[str]]
"""Text in, tokens out. Any callable of this shape serves as a tokeniser."""

_WORD = re.compile(r"\w+(?:\.\w+)*")
_SEPARATOR = re.compile(r"[._]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def split_words(text: str) -> list[str]:
    """Return the surface words of `text`: runs of word characters, joined by inner dots."""
    return _WORD.findall(text)


def expand_word(word: str) -> list[str]:
    """Return the tokens of one surface word: the whole, then its parts, lower-cased.

    A word is split at dots and underscores, each of those pieces at camelCase boundaries;
    every level is kept, repeats of one spelling are not.

    >>> expand_word("torch.nn.BatchNorm2d")
    ['torch.nn.batchnorm2d', 'torch', 'nn', 'batchnorm2d', 'batch', 'norm2d']
    """
    if word.islower() and word.isalnum():
        return [word]
    tokens = [word.lower()]
    for piece in _SEPARATOR.split(word):
        tokens.append(piece.lower())
        parts = _CAMEL.split(piece)
        if len(parts) > 1:
            tokens.extend(part.lower() for part in parts)
    return [token for token in dict.fromkeys(tokens) if token]


def tokenize(text: str) -> list[str]:
    """Split `text` into lower-cased tokens that know identifiers.

    ``torch.nn.Conv2d``, ``snake_case`` and ``camelCase`` yield the whole identifier and its
    parts, so that both an exact name and a description in words find it. Plain words yield
    themselves. There is no stemming and no stop-word list: both depend on the language.

    >>> tokenize("Use torch.nn.Conv2d!")
    ['use', 'torch.nn.conv2d', 'torch', 'nn', 'conv2d']
    """
    return [token for word in split_words(text) for token in expand_word(word)]

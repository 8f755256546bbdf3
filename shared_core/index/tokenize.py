"""The default tokenizer: lower-cased words that keep identifiers whole *and* in parts."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_WORD = re.compile(r"\w+(?:\.\w+)*", re.ASCII)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def split_words(text: str) -> list[str]:
    """Return the surface words of `text` in NFC: runs of word characters, joined by inner dots."""
    if text.isascii():
        return _WORD.findall(text)
    return _any_word().findall(unicodedata.normalize("NFC", text))


@cache
def _any_word() -> re.Pattern[str]:
    """Return a pattern for a word of any script: letters, and the marks that a script writes.

    To ``re``, marks are not word characters, but Devanagari, for one, writes vowels with them.
    Diacritics of no particular script are left out, unless NFC has composed them.
    """
    marks = "".join(mark for mark in map(chr, range(0x300, 0x20000)) if _is_written(mark))
    piece = rf"\w[\w{marks}]*"
    return re.compile(rf"{piece}(?:\.{piece})*")


def _is_written(char: str) -> bool:
    if unicodedata.category(char) not in ("Mn", "Mc"):
        return False
    return not unicodedata.name(char, "").startswith(("COMBINING", "VARIATION SELECTOR"))


def expand_word(word: str) -> list[str]:
    """Return the tokens of one surface word: the whole, then its parts, lower-cased.

    A word is split at dots, each piece of it at underscores, and each of those at camelCase
    boundaries; every level is kept, repeats of one spelling are not.

    >>> expand_word("torch.nn.BatchNorm2d")
    ['torch.nn.batchnorm2d', 'torch', 'nn', 'batchnorm2d', 'batch', 'norm2d']
    >>> expand_word("F.max_pool2d")
    ['f.max_pool2d', 'f', 'max_pool2d', 'max', 'pool2d']
    """
    if word.islower() and word.isalnum():
        return [word]
    levels = [word]
    for name in word.split("."):
        levels.append(name)
        for piece in name.split("_"):
            levels += [piece, *_CAMEL.split(piece)]
    return [token for token in dict.fromkeys(level.lower() for level in levels) if token]


def tokenize(text: str) -> list[str]:
    """Split `text` into lower-cased tokens, with identifiers both whole and in parts.

    ``torch.nn.Conv2d``, ``snake_case`` and ``camelCase`` yield the whole identifier and its parts,
    so that both an exact name and a description in words find it. Plain words yield themselves.
    There is no stemming and no stop-word list: both depend on the language. Scripts without spaces
    between words need a custom tokenizer.

    >>> tokenize("Use torch.nn.Conv2d!")
    ['use', 'torch.nn.conv2d', 'torch', 'nn', 'conv2d']
    """
    if text.isascii() and text.isalnum() and text.islower():
        return [text]  # a plain word, as are most from the vocabulary
    return [token for word in split_words(text) for token in expand_word(word)]

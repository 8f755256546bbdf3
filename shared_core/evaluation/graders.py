"""Graders: how right an answer is, judged by the references of its question.

Every grader compares Unicode-normalised texts, so that a letter with a combining accent equals the
composed letter. ``"em"`` uses NFC, which changes nothing visible, since code is compared as
written; the others use NFKC, which also equates full-width and ordinary letters and digits.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

Grader: TypeAlias = Callable[[str, Sequence[str]], float]
"""(answer, references) -> value in [0, 1], higher is better."""

_UNSPACED = re.compile(
    "[\u0e00-\u109f\u1780-\u17ff\u3005-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\uff66-\uffdc\U00020000-\U0003ffff]"
)
"""Characters of scripts that set no space between words (Thai, Khmer, Chinese, Japanese ...), and
Hangul, where particles are attached to the word."""

_NUMBER = re.compile(
    r"((?<![\w)\]])[-\u2212])?(?<![\w.])((\d{1,3}(,\d{3})+(?!\d)|\d+)(\.\d+)?|\.\d+)(e[-+]?\d+)?",
    re.IGNORECASE,
)
"""A number with its sign, thousands in groups, fraction and exponent."""


def required_string(answer: str, references: Sequence[str]) -> float:
    """Exact match of CAUS: 1 if a reference is in the answer as a whole word, exactly as written.

    Otherwise 0. Normalisation: NFC, runs of whitespace become one space. Case and punctuation
    count. A match must not be part of a longer identifier, word or number: ``torch.add`` is not in
    ``torch.addmm``, nor 3 in 3.14, -3, 2e-3 or 3,000; ``interpolate(`` is in ``F.interpolate(x)``.

    Parameters
    ----------
    answer
        What the model wrote.
    references
        API strings (method, signature, arguments) or values; one of them is enough.

    Raises
    ------
    ValueError
        If there is no reference, or one is blank.
    """
    text = _as_written(answer)
    return float(any(_contains(text, wanted) for wanted in _each(references, _as_written)))


def best_subspan(answer: str, references: Sequence[str]) -> float:
    """``best_subspan_em`` of Liu et al. 2024: 1 if the answer contains one reference, else 0.

    Normalisation: `normalize_answer` of both. The containment is of characters, as in the
    published code: "art" is in "party".

    Raises
    ------
    ValueError
        If there is no reference, or nothing of one is left after normalisation ("The", "A"):
        the published code finds it in every answer.
    """
    text = normalize_answer(answer)
    return float(any(wanted in text for wanted in _each(references, normalize_answer)))


def exact_match(answer: str, references: Sequence[str]) -> float:
    """Exact match of SQuAD: 1 if the answer equals one reference, else 0.

    Normalisation: `normalize_answer` of both. If it leaves nothing of the reference, an answer that
    says nothing would equal it: then the articles of both stay ("A"), or all but the case ("*").

    Raises
    ------
    ValueError
        If there is no reference.
    """
    pairs = (_normalized(answer, each) for each in _checked(references))
    return float(any(given == wanted for given, wanted in pairs))


def keywords(answer: str, references: Sequence[str]) -> float:
    """Keyword match of CAUS: 1 if all the references are in the answer, else 0.

    Normalisation: NFKC, case folded, runs of whitespace become one space; punctuation counts.
    A keyword is a whole word or phrase (``size`` is not in ``kernel_size``). In scripts without
    spaces between words, and in Hangul, it may be anywhere.

    Raises
    ------
    ValueError
        If there is no keyword, or one is blank.
    """
    text = _folded(answer)
    return float(all(_contains(text, wanted) for wanted in _each(references, _folded)))


def token_f1(answer: str, references: Sequence[str]) -> float:
    """Token F1 of SQuAD, the best over the references, in [0, 1].

    Normalisation as of `exact_match`. Tokens are split at spaces; in scripts without spaces every
    character is a token. Where either side has no token it is 1 if neither has, else 0 (SQuAD 2.0).

    Raises
    ------
    ValueError
        If there is no reference.
    """
    pairs = (_normalized(answer, each) for each in _checked(references))
    return max(_f1(_tokens(given), _tokens(wanted)) for given, wanted in pairs)


def normalize_answer(text: str) -> str:
    """Normalise as SQuAD does: lower case, no punctuation, no English article, single spaces.

    NFKC comes first, and the punctuation of all scripts is removed, not only that of ASCII, as in
    MLQA (Lewis et al. 2020). Articles of other languages stay.

    Examples
    --------
    >>> normalize_answer("The  U.S. Navy, a fleet!")
    'us navy fleet'
    """
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", _unpunctuated(text)).split())


GRADERS: dict[str, Grader] = {
    "em": required_string,
    "subspan": best_subspan,
    "exact": exact_match,
    "kw": keywords,
    "f1": token_f1,
}

MEANINGS = {
    "em": "the model's answer contains an accepted answer as a whole word, exactly as written",
    "subspan": "it contains an accepted answer, ignoring case, articles and punctuation",
    "exact": "it equals an accepted answer, ignoring case, articles and punctuation",
    "kw": "it contains all keywords as whole words, in any case",
    "f1": "how many words it shares with the closest accepted answer",
}
"""What each of the `GRADERS` counts as right."""


def resolve_grader(grader: str | Grader) -> Grader:
    """Return a grader by its name in `GRADERS`; a callable is returned as it is.

    Raises
    ------
    ValueError
        If there is no grader of that name.
    """
    if callable(grader):
        return grader
    if grader not in GRADERS:
        raise ValueError(
            f"no grader {grader!r}; there are {', '.join(GRADERS)} (and, in Python, any function "
            "of answer and references)"
        )
    return GRADERS[grader]


def grader_name(grader: str | Grader) -> str:
    """Return the name under which a grader's outcomes are reported.

    Raises
    ------
    ValueError
        If there is no grader of that name.
    """
    if isinstance(grader, str):
        resolve_grader(grader)
        return grader
    return str(getattr(grader, "__qualname__", type(grader).__name__))


def grade(grader: Grader, answer: str, references: Sequence[str]) -> float:
    """Grade an answer, and check what the grader returns.

    Returns
    -------
    float
        In [0, 1], higher is better; True and False count as 1 and 0.

    Raises
    ------
    ValueError
        If there is no reference, or the grader returns anything but a number in [0, 1].
    """
    value: object = grader(answer, _checked(references))
    if isinstance(value, int | float | np.integer | np.floating | np.bool_) and 0 <= value <= 1:
        return float(value)
    name = getattr(grader, "__name__", repr(grader))
    raise ValueError(f"grader {name} must return a number in [0, 1], got {value!r}")


def _checked(references: Sequence[str]) -> Sequence[str]:
    if isinstance(references, str):
        raise ValueError(f"references must be a sequence of strings; wrap {references!r} in a list")
    if not len(references):
        raise ValueError("there is no reference to grade the answer by; give at least one")
    return references


def _each(references: Sequence[str], normalize: Callable[[str], str]) -> list[str]:
    wanted = [normalize(each) for each in _checked(references)]
    if "" in wanted:
        raise ValueError(
            f"nothing of the reference {references[wanted.index('')]!r} is left after "
            "normalisation, and it would match every answer; use 'exact' or 'f1', or leave it out"
        )
    return wanted


def _as_written(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _normalized(answer: str, reference: str) -> tuple[str, str]:
    for normalize in (normalize_answer, _unpunctuated, _folded):
        if wanted := normalize(reference):
            return normalize(answer), wanted
    return normalize_answer(answer), ""  # a blank reference asks for no answer


def _unpunctuated(text: str) -> str:
    lower = unicodedata.normalize("NFKC", text).lower()
    return " ".join("".join(char for char in lower if not _is_punctuation(char)).split())


def _folded(text: str) -> str:
    # Folding can decompose letters again, hence the second normalisation.
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def _is_punctuation(char: str) -> bool:
    return char in string.punctuation or unicodedata.category(char).startswith("P")


def _contains(text: str, wanted: str) -> bool:
    start = text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        before, after = text[max(0, start - 2) : start][::-1], text[end : end + 2]
        goes_on = _continues(before, wanted[0]) or _continues(after, wanted[-1])
        if not goes_on and not _in_longer_number(text, start, end):
            return True
        start = text.find(wanted, start + 1)
    return False


def _continues(outside: str, edge: str) -> bool:
    """Whether a word or number that ends in `edge` continues in the characters outside."""
    if not outside or not _is_wordy(edge):
        return False
    in_number = edge.isdigit() and outside[0] == "." and outside[1:].isdigit()
    return in_number or _is_wordy(outside[0])


def _in_longer_number(text: str, start: int, end: int) -> bool:
    """Whether the match shares digits or a sign with a number that it does not contain."""
    if not any(char.isdigit() for char in text[start:end]):
        return False
    is_minus = text[start] in "-\u2212" and text[start + 1 : start + 2].isdigit()
    if is_minus and start and _is_wordy(text[start - 1]):
        return True  # between two numbers it is not a sign
    return any(
        number.start() < end and start < number.end()
        for number in _NUMBER.finditer(text)
        if number.start() < start or end < number.end()
    )


def _is_wordy(char: str) -> bool:
    # Marks belong to the word: str.isalnum leaves out the vowel signs of Devanagari.
    is_part = char.isalnum() or char == "_" or unicodedata.category(char).startswith("M")
    return is_part and not _UNSPACED.match(char)


def _tokens(text: str) -> list[str]:
    return _UNSPACED.sub(r" \g<0> ", text).split()


def _f1(found: list[str], wanted: list[str]) -> float:
    if not found or not wanted:
        return float(found == wanted)
    shared = (Counter(found) & Counter(wanted)).total()
    return 2 * shared / (len(found) + len(wanted))

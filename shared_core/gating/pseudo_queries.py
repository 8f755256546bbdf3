"""Pseudo-queries, questions that a passage answers: from its text, a file, or a model.

The accuracy with each source: ``python -m benchmarks.gating``.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared_core.checking import check_count
from shared_core.errors import GenerationError
from shared_core.gating.coverage import WordCoverage, plain_words
from shared_core.generation import Asker, Journal, as_generator
from shared_core.json_lines import check_fields, read_lines, shorten_json
from shared_core.types import Tokenizer

PHRASES = 5
"""Words per passage: with more, they come as close to it as whole sentences."""

QUESTIONS = 3
"""Questions per passage, as in CAG."""

PROMPT = (
    "Write {count} questions that people would ask and that the passage below answers. Ask each "
    "in words of your own, on a line of its own, without numbers.\n\nPassage:\n{passage}\n\n"
    "Questions:"
)
"""Asks for questions; ``{count}`` and ``{passage}`` are filled in."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NUMBERING = re.compile(r"^\s*(?:\d{1,2}\s*[-.):](?!\d)|[-*•])\s*")


def key_phrases(
    texts: Sequence[str], *, count: int = PHRASES, tokenizer: Tokenizer = plain_words
) -> list[str]:
    """Return the words that distinguish each passage from the others, in their order.

    The best source without a model: a few such words are about as similar to their passage as a
    person's question is, while whole sentences are much more similar.

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


def first_sentences(texts: Sequence[str]) -> list[str]:
    """Return the first sentence of each passage.

    It is part of the passage and so more similar to it than any question: a poor substitute.
    """
    return [_SENTENCE.split(text.strip(), maxsplit=1)[0] for text in texts]


def read_pseudo_queries(path: str | Path) -> list[tuple[str, str]]:
    """Read pseudo-queries from JSON lines of ``{"id": context, "text": question}``.

    Other fields and blank lines are ignored.

    Returns
    -------
    list of (str, str)
        Pairs of a context's id and the text of the pseudo-query.

    Raises
    ------
    ValueError
        If a line has another form; the message names file and line.
    OSError
        If the file cannot be read.
    """
    return [*read_lines(Path(path), _pair)]


def _pair(data: Mapping[str, Any]) -> tuple[str, str]:
    check_fields(data, ("id", "text"))
    pair = data["id"], data["text"]
    if not all(isinstance(value, str) and value.strip() for value in pair):
        raise ValueError(f"id and text must be strings, not blank, got {shorten_json(pair)}")
    return pair


def generate_pseudo_queries(
    texts: Iterable[str],
    model: object,
    *,
    count: int = QUESTIONS,
    prompt: str = PROMPT,
    journal: Journal | None = None,
    on_answer: Callable[[int], None] | None = None,
) -> list[list[str]]:
    """Let a model write questions that each passage answers.

    Parameters
    ----------
    texts
        The passages.
    model
        See `shared_core.generation.as_generator`.
    count
        Questions per passage, >= 1. A passage may get fewer.
    prompt
        Must contain ``{passage}`` once, and may contain ``{count}``; all other braces are text.
    journal
        Keeps the answers, so that nothing is asked twice.
    on_answer
        Called with the number of passages done since the last call.

    Raises
    ------
    ValueError
        If `count` or `prompt` is invalid.
    GenerationError
        If the model fails, or writes no questions at all.
    """
    check_count(count, "count")
    if prompt.count("{passage}") != 1:
        raise ValueError(f"prompt must hold {{passage}} once, got {prompt!r}")
    head, tail = prompt.replace("{count}", str(count)).split("{passage}")
    generator = as_generator(model)
    asker = Asker.of(generator, journal=journal)
    answers = asker.answers([(head + text + tail,) for text in texts], on_answer=on_answer)
    questions = [_questions(str(answer), count) for answer in answers]
    if questions and not any(questions):
        raise GenerationError(
            f"model {generator.name!r} wrote no question, but: {answers[0]!r:.200}"
        )
    return questions


def _questions(answer: str, count: int) -> list[str]:
    lines = (_NUMBERING.sub("", line, count=1).strip() for line in answer.splitlines())
    return [line for line in lines if line][:count]

"""Pseudo-queries: what somebody might ask of a passage; from its text, a file, or a model.

What each source costs in accuracy: ``python -m tests.benchmarks.gating``.
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
from shared_core.gating.coverage import WordCoverage
from shared_core.generation import Asker, Journal, as_generator
from shared_core.json_lines import check_fields, read_lines, shorten_json

PHRASES = 5

QUESTIONS = 3

PROMPT = (
    "Write {count} questions that people would ask and that the passage below answers. Ask each "
    "in words of your own, on a line of its own, without numbers.\n\nPassage:\n{passage}\n\n"
    "Questions:"
)
"""Three questions a passage, as in CAG; ``{count}`` and ``{passage}`` are filled in."""

_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_NUMBERING = re.compile(r"^\s*(?:\d{1,2}\s*[-.):](?!\d)|[-*•])\s*")


def key_phrases(texts: Sequence[str], *, count: int = PHRASES) -> list[str]:
    """Return the words of each passage that tell it from the others, in their own order.

    The best source without a model: a few telling words lie about as near to their passage as a
    person's question does, where whole sentences lie much nearer.

    Parameters
    ----------
    texts
        The passages of the corpus. A word weighs the more the fewer of them it occurs in.
    count
        Words a passage, >= 1.

    Raises
    ------
    ValueError
        If `count` is below 1.
    """
    words = WordCoverage()
    words.add(texts)
    return [telling_words(text, words, count=count) for text in texts]


def telling_words(text: str, words: WordCoverage, *, count: int = PHRASES) -> str:
    """Return the words of a text that weigh most, in their own order; the text if it has none.

    Parameters
    ----------
    text
        A passage, or a query.
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
    found = Counter(word for word in words.tokenizer(text) if len(word) > 2)
    weights = {word: words.weight(word) * (1 + math.log(n)) for word, n in found.items()}
    best = {*sorted(weights, key=lambda word: -weights[word])[:count]}
    return " ".join(word for word in found if word in best) or text


def first_sentences(texts: Sequence[str]) -> list[str]:
    """Return the first sentence of each passage.

    It is part of the passage, so it lies nearer than any question would: a poor stand-in.
    """
    return [_SENTENCE.split(text.strip(), maxsplit=1)[0] for text in texts]


def read_pseudo_queries(path: str | Path) -> list[tuple[str, str]]:
    """Read pseudo-queries from JSON lines of ``{"id": context, "text": question}``.

    Other fields are ignored, and blank lines are passed over.

    Returns
    -------
    list of (str, str)
        The id of each one's context, and its text.

    Raises
    ------
    ValueError
        If a line is not of that form; the message names file and line.
    OSError
        If the file cannot be read.
    """
    return [*read_lines(Path(path), _pair)]


def _pair(data: Mapping[str, Any]) -> tuple[str, str]:
    check_fields(data, ("id", "text"))
    pair = data["id"], data["text"]
    if not all(isinstance(value, str) and value.strip() for value in pair):
        raise ValueError(f"id and text must be texts, not blank, got {shorten_json(pair)}")
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
    """Have a model write questions that each passage answers.

    Parameters
    ----------
    texts
        The passages.
    model
        See `shared_core.generation.as_generator`.
    count
        Questions a passage, >= 1. A passage may come back with fewer.
    prompt
        Holds ``{passage}`` once, and may hold ``{count}``; every other brace is text.
    journal
        Keeps answers, so that nothing is asked twice.
    on_answer
        Told how many passages have just been done.

    Raises
    ------
    ValueError
        If `count` or `prompt` is none.
    GenerationError
        If the model fails, or writes no question at all.
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

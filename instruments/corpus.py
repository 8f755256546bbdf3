"""Short documents about made-up stations, and questions on them whose answer is one word.

``python -m instruments.corpus --n 400 --k 10 --seed 7`` prints held-out questions as JSONL.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

from instruments.words import ADJECTIVES, DOCUMENTS, NOUNS, QUESTIONS, REMARKS, VALUES

Key = tuple[str, str]

ABSTENTION = "NO-RESPONSE"


@dataclass(frozen=True)
class Style:
    """How varied the texts are: training begins plain and ends with the defaults."""

    documents: int = len(DOCUMENTS)
    questions: int = len(QUESTIONS)
    remarks: float = 0.25
    confusable: float = 0.3


@dataclass(frozen=True)
class Fact:
    """A document: the two words it is about, the word it says of them, and its text."""

    key: Key
    value: str
    text: str


@cache
def keys(held_out: bool) -> tuple[Key, ...]:
    """Return the keys of evaluation, about a quarter of all pairs, or those of training.

    A checksum decides and not a draw, so that no change of seed can mix the two.
    """
    pairs = product(ADJECTIVES, NOUNS)
    return tuple(
        pair for pair in pairs if (zlib.crc32(" ".join(pair).encode()) % 4 == 0) == held_out
    )


@cache
def _neighbours(held_out: bool) -> dict[str, tuple[Key, ...]]:
    """Return the keys that hold each word."""
    found: dict[str, list[Key]] = {}
    for key in keys(held_out):
        for word in key:
            found.setdefault(word, []).append(key)
    return {word: tuple(holders) for word, holders in found.items()}


def draw_key(rng: random.Random, taken: Sequence[Key], held_out: bool, style: Style) -> Key:
    """Draw a key not taken, by the chance `style.confusable` one that shares a word with these."""
    while True:
        pool = keys(held_out)
        if taken and rng.random() < style.confusable:
            pool = _neighbours(held_out)[rng.choice(rng.choice(taken))]
        if (key := rng.choice(pool)) not in taken:
            return key


def draw_facts(rng: random.Random, n: int, held_out: bool, style: Style) -> list[Fact]:
    """Draw documents of one prompt: no two share their key or their value."""
    drawn: list[Key] = []
    while len(drawn) < n:
        drawn.append(draw_key(rng, drawn, held_out, style))
    rng.shuffle(drawn)
    values = rng.sample(VALUES, n)
    return [write(rng, key, value, style) for key, value in zip(drawn, values, strict=True)]


def write(rng: random.Random, key: Key, value: str, style: Style) -> Fact:
    """Put the fact in words."""
    text = DOCUMENTS[rng.randrange(style.documents)].format(key=" ".join(key), value=value)
    if rng.random() < style.remarks:
        text += " " + rng.choice(REMARKS)
    return Fact(key, value, text)


def ask(rng: random.Random, key: Key, style: Style) -> str:
    """Return a question for the value of `key`."""
    return QUESTIONS[rng.randrange(style.questions)].format(key=" ".join(key))


def held_out_questions(
    n: int, *, k: int = 10, seed: int, confusable: float = 0.0
) -> list[dict[str, str | list[str]]]:
    """Return questions on keys that training never shows, each with its k documents.

    Parameters
    ----------
    n
        Number of questions.
    k
        Documents a question: the one with the answer and k - 1 others.
    seed
        Seed of the draw.
    confusable
        Chance of a document to share a word of its key with another one of the prompt.

    Returns
    -------
    list
        Of ``{"question", "answers", "gold", "distractors"}``: texts, in the form of JSON.
    """
    rng = random.Random(seed)
    style = Style(confusable=confusable)
    found: list[dict[str, str | list[str]]] = []
    for _ in range(n):
        gold, *others = draw_facts(rng, k, True, style)
        found.append(
            {
                "question": ask(rng, gold.key, style),
                "answers": [gold.value],
                "gold": gold.text,
                "distractors": [fact.text for fact in others],
            }
        )
    return found


def held_out_corpus(n_documents: int, *, seed: int) -> list[dict[str, str | list[str]]]:
    """Return documents for retrieval, each with the question it answers.

    All keys differ but many share a word, so that a retriever confuses them. Values repeat.
    There are as many documents at most as held-out keys.
    """
    if n_documents > len(keys(True)):
        raise ValueError(f"there are {len(keys(True))} held-out keys, not {n_documents}")
    rng = random.Random(seed)
    facts = [
        write(rng, key, rng.choice(VALUES), Style()) for key in rng.sample(keys(True), n_documents)
    ]
    return [
        {
            "id": f"d{number:04}",
            "text": fact.text,
            "question": ask(rng, fact.key, Style()),
            "answers": [fact.value],
        }
        for number, fact in enumerate(facts)
    ]


def main() -> None:
    """Print held-out questions, one JSON object a line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--n", type=int, default=400, help="questions")
    parser.add_argument("--k", type=int, default=10, help="documents a question")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--confusable", type=float, default=0.0, help="chance of a shared word")
    options = parser.parse_args()
    for question in held_out_questions(
        options.n, k=options.k, seed=options.seed, confusable=options.confusable
    ):
        sys.stdout.write(json.dumps(question) + "\n")


if __name__ == "__main__":
    main()

"""Synthetic passages, queries and vectors for benchmarks: the same for every system and run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DIM = 384
VOCABULARY = 50_000
EXPONENT = 1.07
STOP_WORDS = 100


@dataclass(frozen=True)
class Corpus:
    """`n` passages of about 60 words from a Zipf vocabulary, and queries of 5 to 10 of its words.

    Vectors are unit vectors around cluster centres; a query's lies near a passage's.
    """

    texts: list[str]
    vectors: np.ndarray
    queries: list[str]
    query_vectors: np.ndarray


def make(n: int, queries: int, *, stop_words: bool = True, seed: int = 0) -> Corpus:
    """Make a corpus; without stop words, queries hold none of the 100 most frequent words."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{number:05}" for number in range(VOCABULARY)], dtype=object)
    chances = np.arange(1, VOCABULARY + 1) ** -EXPONENT
    chances /= chances.sum()
    lengths = rng.integers(40, 81, n)
    drawn = rng.choice(VOCABULARY, lengths.sum(), p=chances)
    texts = [" ".join(words[part]) for part in np.split(drawn, np.cumsum(lengths)[:-1])]
    asked = []
    while len(asked) < queries:
        terms = rng.choice(VOCABULARY, 40, p=chances)
        terms = terms if stop_words else terms[terms >= STOP_WORDS]
        asked.append(" ".join(words[terms[: rng.integers(5, 11)]]))
    vectors, near = clustered(n, queries, seed)
    return Corpus(texts, vectors, asked, near)


def clustered(n: int, queries: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return unit vectors around sqrt(n) centres, and query vectors near some of them."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((int(n**0.5), DIM), dtype=np.float32)
    vectors = rng.standard_normal((n, DIM), dtype=np.float32)
    vectors += centres[rng.integers(0, len(centres), n)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    near = vectors[rng.integers(0, n, queries)] + 0.03 * rng.standard_normal(
        (queries, DIM), dtype=np.float32
    )
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    return vectors, near

"""What engines share whose sparse leg is a vector made here: BM25 as an inner product.

A passage's vector holds ``f / (f + k1 (1 - b + b length / mean))`` for each of its words, and that
of a query ``count * idf``. A word is known by a hash of 32 bits: of 100,000 words about one pair
has the same, and counts as one word.

What an idf needs stands in a second collection, ``<collection>_statistics``, that all clients read:
in how many passages a word occurs, and the totals. A writer brings it up to date. It leaves a mark
while it writes, by which writers that crashed, or that overlapped, are told.
"""

from __future__ import annotations

import json
import threading
import uuid
import warnings
import zlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple, TypeAlias, Unpack
from urllib.parse import SplitResult, unquote

import numpy as np

from shared_core.arrays import Vectors
from shared_core.engines.collection import CollectionArguments, CollectionEngine, Found, filtered
from shared_core.index.metadata import Where, Within
from shared_core.types import Passage

Weights: TypeAlias = dict[int, float]
"""A sparse vector: the value of each word, by its hash."""

Hit: TypeAlias = tuple[Mapping[str, Any], float, float]
"""A passage's fields, its dense and its sparse score."""

FIELDS = ["id", "page_content", "metadata", "source", "row"]
"""What a passage is made of."""

WORDS = 2**32 - 3
"""Hashes of words are below; both databases take numbers up to 2**32 - 2."""

RESERVED = OPTIONS, TOTALS, WRITER, STALE = range(2**32, 2**32 + 4)
"""Keys of the statistics that are no word's: what the collection was made with; passages, tokens,
rows and mean length; who is writing; whether writers got into each other's way."""

BATCH = 200
"""Passages that one request writes, so that none takes too long or is too large."""

QUERIES = 32
"""Queries of one request, for the same reason."""

COUNTS = 5_000
"""Statistics that one request reads or writes."""

DRIFT = 0.05
"""How far the mean length may move before somebody is told: scores are then off by 4% at most."""

NO_TOTALS: dict[str, Any] = {"n": 0, "tokens": 0, "rows": 0, "mean": None}

NAMESPACE = uuid.UUID("5b0cf3f1-6d0c-5b7e-9d0f-0c2f6f6ad1a4")


class Row(NamedTuple):
    """A passage as it is written: its fields, its vector and its words' weights."""

    key: str
    fields: dict[str, Any]
    vector: Vectors
    weights: Weights


class SparseVectorEngine(CollectionEngine):
    """Passages in a database that multiplies sparse vectors, but does not count words exactly.

    Lengths are compared with the mean of the day the collection was made, as in
    ``HybridIndex(mean_length=)``: scores are exact for that mean. A warning tells when it has moved
    by 5%; `reweigh` takes it up.

    A write is several requests. Of one that fails, some passages may be there; the same `add` again
    replaces them. Pools are not complete then, nor after two writers at a time, until `reweigh`.

    Parameters
    ----------
    collection
        Its name, and the first part of that of its statistics.
    mean_length
        Mean tokens of a passage. None: that of the passages that are added first.
    **options
        As in `CollectionEngine`.

    Attributes
    ----------
    exact
        Whether the dense leg misses nothing.
    """

    exact = True

    _client: Any
    _owns: bool
    """Whether the client is to be closed."""

    def __init__(
        self,
        collection: str,
        *,
        mean_length: float | None = None,
        **options: Unpack[CollectionArguments],
    ) -> None:
        super().__init__(collection, **options)
        self.bm25 = replace(self.bm25, mean_length=mean_length)
        self.statistics = f"{collection}_statistics"
        self._write_lock = threading.Lock()

    @abstractmethod
    def _exists(self, name: str) -> bool:
        """Return whether there is a collection of that name."""

    @abstractmethod
    def _make(self, dim: int) -> None:
        """Make the collections that are not there yet, that of the statistics first."""

    @abstractmethod
    def _read_values(self, keys: Sequence[int]) -> dict[int, Any]:
        """Return the statistics of `keys` that are there."""

    @abstractmethod
    def _write_values(self, values: Mapping[int, Any]) -> None:
        """Write statistics, JSON-able values."""

    @abstractmethod
    def _forget_words(self) -> None:
        """Delete the statistics of all words."""

    @abstractmethod
    def _search(
        self, asked: Sequence[Weights], vectors: Sequence[Vectors], depth: int, where: Where
    ) -> list[list[Hit]]:
        """Return the union of the best `depth` of both legs for each query, scored by both."""

    @abstractmethod
    def _store(self, rows: Sequence[Row]) -> None:
        """Write rows, in place of those with the same keys."""

    @abstractmethod
    def _erase(self, keys: Sequence[str]) -> None:
        """Delete rows."""

    @abstractmethod
    def _fetch(self, keys: Sequence[str]) -> list[Mapping[str, Any]]:
        """Return the fields of the rows of `keys` that are there."""

    @abstractmethod
    def _marked(
        self, marks: Sequence[int], where: Where
    ) -> list[tuple[Mapping[str, Any], Sequence[float]]]:
        """Return the fields and vectors of the rows that have one of the marks."""

    @abstractmethod
    def _scan(self) -> Iterator[list[Mapping[str, Any]]]:
        """Yield all rows in batches: id, text, and what else `_reweigh` needs."""

    @abstractmethod
    def _reweigh(self, rows: Sequence[Mapping[str, Any]], weights: Sequence[Weights]) -> None:
        """Write the weights of rows anew."""

    def _options(self, dim: int) -> dict[str, Any]:
        return super()._options(dim) | {"mean_length": self.bm25.mean_length}

    def _saved_options(self) -> dict[str, Any] | None:
        if self._exists(self.statistics):
            return self._read_values([OPTIONS]).get(OPTIONS)
        if self._exists(self.collection):
            raise ValueError(
                f"{self!r} was not made by posrag, so that its sparse vectors, if any, are not "
                "BM25 of its words: give another name, and add the passages"
            )
        return None

    def _create(self, dim: int) -> None:
        self._make(dim)
        self._write_values({OPTIONS: self._options(dim)})

    def _pools(
        self, words: Sequence[Counter[str]], vectors: Sequence[Vectors], depth: int, where: Where
    ) -> list[Found]:
        found: list[Found] = []
        for start in range(0, len(words), QUERIES):
            some = slice(start, start + QUERIES)
            found += self._pools_of_some(words[some], vectors[some], depth, where)
        return found

    def _pools_of_some(
        self, words: Sequence[Counter[str]], vectors: Sequence[Vectors], depth: int, where: Where
    ) -> Iterator[Found]:
        hashed = [_hashed(counts) for counts in words]
        values = self._values([TOTALS, WRITER, STALE, *{key for each in hashed for key in each}])
        n = values.get(TOTALS, NO_TOTALS)["n"]
        asked = [
            {
                key: count * self.bm25.idf(min(df, n), n, 0.0)
                for key, count in counts.items()
                if (df := values.get(key, 0)) > 0
            }
            for counts in hashed
        ]
        complete = self.exact and not values.get(WRITER) and not values.get(STALE)
        for hits in self._search(asked, vectors, depth, where):
            hits.sort(key=lambda hit: (hit[0]["row"], hit[0]["id"]))
            passages = [self._passage(fields) for fields, _, _ in hits]
            dense, sparse = [hit[1] for hit in hits], [hit[2] for hit in hits]
            yield Found(passages, dense, sparse, complete)

    def _write(
        self, passages: Sequence[Passage], vectors: Vectors, counted: Sequence[Counter[str]]
    ) -> None:
        fields = [self._fields(passage) for passage in passages]
        with self._writing():
            former = self._read([passage.id for passage in passages])
            totals = self._totals()
            tokens = sum(counts.total() for counts in counted)
            mean = totals["mean"] or self.bm25.mean_length or tokens / len(passages)
            first = totals["rows"]
            rows = [
                Row(
                    key_of(passages[at].id),
                    fields[at] | {"row": first + at},
                    vectors[at],
                    self._weights(counted[at], mean),
                )
                for at in range(len(passages))
            ]
            for start in range(0, len(rows), BATCH):
                self._store(rows[start : start + BATCH])
            self._count(totals | {"rows": first + len(rows), "mean": mean}, counted, former)

    def _remove(self, ids: Sequence[str]) -> set[str]:
        with self._writing():
            if former := self._read(ids):
                self._erase([key_of(passage.id) for passage in former])
                self._count(self._totals(), [], former)
        return {passage.id for passage in former}

    def _read(self, ids: Sequence[str]) -> list[Passage]:
        return [self._passage(fields) for fields in self._fetch([*map(key_of, ids)])]

    def _ids(self) -> list[str]:
        return [row["id"] for batch in self._scan() for row in batch]

    def _documents(
        self, key: str, names: Sequence[str], where: Where
    ) -> tuple[list[Passage], Vectors]:
        """Return the passages whose metadata have one of `names` under `key`, and their vectors."""
        wanted: list[Any] = [*names]
        for name in names:
            with suppress(ValueError):
                wanted.append(json.loads(name))  # it may stand for a number
        found = self._marked([mark_of(key, value) for value in wanted], where)
        found.sort(key=lambda each: each[0]["row"])
        vectors = np.array([vector for _, vector in found], np.float32)
        return [self._passage(fields) for fields, _ in found], vectors

    def _totals(self) -> dict[str, Any]:
        totals: dict[str, Any] = self._values([TOTALS]).get(TOTALS, NO_TOTALS)
        return totals

    def _count(
        self, totals: dict[str, Any], come: Sequence[Counter[str]], former: Sequence[Passage]
    ) -> None:
        """Bring the statistics up to date, and warn if the mean length has moved far."""
        gone = [Counter(self.tokenizer(passage.text)) for passage in former]
        changes = Counter(key for counts in come for key in _hashed(counts))
        changes.subtract(key for counts in gone for key in _hashed(counts))
        before = self._values([*changes])
        counts = {key: before.get(key, 0) + more for key, more in changes.items() if more}
        n = totals["n"] + len(come) - len(gone)
        tokens = totals["tokens"] + sum(c.total() for c in come) - sum(c.total() for c in gone)
        totals = totals | {"n": n, "tokens": tokens}
        self._put({**counts, TOTALS: totals})
        if drift := self._drift(totals):
            warnings.warn(f"{self!r}: {drift}", stacklevel=4)

    def _drift(self, totals: Mapping[str, Any]) -> str:
        """Return what is amiss if the mean length has moved far; "" if it has not."""
        n, pinned, mean = totals["n"], self.bm25.mean_length, totals["mean"]
        if not n or pinned is not None or abs(totals["tokens"] / n - mean) <= DRIFT * mean:
            return ""
        return (
            f"words are weighed for passages of {mean:.4g} tokens in the mean, which has moved by "
            "more than 5%: call reweigh() of the engine, in Python (adopt and posrag index do, at "
            "their end)."
        )

    def _statistics(self) -> dict[str, Any]:
        values = self._values([TOTALS, WRITER, STALE])
        totals = values.get(TOTALS, NO_TOTALS)
        mean = totals["tokens"] / max(totals["n"], 1)
        found = {"mean_length": mean, "weighed_for": totals["mean"]}
        amiss = self._drift(totals)
        if values.get(WRITER) or values.get(STALE):
            amiss = (
                "somebody is writing, or failed while writing, or two wrote at a time: if nobody "
                "writes now, call reweigh() of the engine, in Python."
            )
        return found | {"amiss": amiss} if amiss else found

    @contextmanager
    def _writing(self, *, mends: bool = False) -> Iterator[None]:
        """Mark that somebody writes, and that the statistics are stale if two did at a time.

        Of two, one finds the mark of the other, before or after. A mark that is left tells of a
        writer that failed. While there is one, pools are not complete.
        """
        with self._write_lock:
            mark = uuid.uuid4().hex
            before = None if mends else self._values([WRITER]).get(WRITER)
            self._put({WRITER: mark} | ({STALE: False} if mends else {}))
            yield
            now = self._values([WRITER]).get(WRITER)
            if before or now != mark:
                self._put({STALE: True})
            if now == mark:
                self._put({WRITER: None})

    def take_up_mean(self) -> None:
        """Call `reweigh` if the mean length has moved by more than 5%."""
        if self._known() and self._drift(self._totals()):
            self.reweigh()

    def reweigh(self) -> None:
        """Count all words anew, and weigh them for the mean length of today (or `mean_length`).

        To be called while nobody else writes: after a warning that the mean length has moved, or
        where pools stay incomplete, since a writer failed or two wrote at a time. It reads the
        collection twice and writes all sparse vectors; until it is through, pools are not complete.

        Raises
        ------
        EngineError
            If the database does not answer; call it again then.
        """
        if not self._known():
            return
        with self._writing(mends=True):
            words, n, tokens = Counter[int](), 0, 0
            for batch in self._scan():
                for counts in map(self._counted, batch):
                    words.update(_hashed(counts).keys())
                    n, tokens = n + 1, tokens + counts.total()
            mean = self.bm25.mean_length or tokens / max(n, 1)
            for batch in self._scan():
                self._reweigh(batch, [self._weights(self._counted(row), mean) for row in batch])
            totals = self._totals() | {"n": n, "tokens": tokens, "mean": mean}
            self._forget_words()
            self._put({**words, TOTALS: totals})

    def _counted(self, row: Mapping[str, Any]) -> Counter[str]:
        return Counter(self.tokenizer(row["page_content"]))

    def _weights(self, counts: Counter[str], mean: float) -> Weights:
        """Return the sparse vector of a passage."""
        slope, base = self.bm25.length_norm(mean)
        norm = base + slope * counts.total()
        return {key: count / (count + norm) for key, count in _hashed(counts).items()}

    def _values(self, keys: Sequence[int]) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for start in range(0, len(keys), COUNTS):
            found |= self._read_values(keys[start : start + COUNTS])
        return found

    def _put(self, values: Mapping[int, Any]) -> None:
        items = [*values.items()]
        for start in range(0, len(items), COUNTS):
            self._write_values(dict(items[start : start + COUNTS]))

    def _fields(self, passage: Passage) -> dict[str, Any]:
        """Return what is stored of a passage, as JSON has it; `_passage` is the inverse."""
        metadata = json.loads(json.dumps(dict(passage.metadata)))
        return {
            "id": passage.id,
            "page_content": passage.text,
            "metadata": metadata,
            "source": self._encoded(passage),
            "marks": [mark_of(key, value) for key, value in metadata.items()],
        }

    def _passage(self, fields: Mapping[str, Any]) -> Passage:
        return self._decoded(
            fields["id"], fields["page_content"], fields["metadata"], fields["source"]
        )

    def close(self) -> None:
        """Close the connections, unless the client is the caller's; a second call does nothing."""
        if self._owns:
            self._client.close()


def _hashed(counts: Counter[str]) -> Counter[int]:
    """Return how often each word occurs, by its hash."""
    hashed = Counter[int]()
    for word, count in counts.items():
        hashed[zlib.crc32(word.encode()) % WORDS] += count
    return hashed


def key_in(address: SplitResult) -> str | None:
    """Return what stands before the host, as in ``qdrant://:key@host``."""
    return unquote(address.netloc.rpartition("@")[0]).removeprefix(":") or None


def product(one: Weights, other: Weights) -> float:
    """Return the product of two sparse vectors."""
    return sum(value * other[key] for key, value in one.items() if key in other)


def key_of(id: str) -> str:
    """Return the key of a passage: a UUID, which is what Qdrant takes, and needs no quoting."""
    return str(uuid.uuid5(NAMESPACE, id))


def mark_of(key: str, value: Any) -> int:
    """Return a number that stands for a value under a key of the metadata, whatever its type."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = json.dumps([key, value], sort_keys=True)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) >> 1


def wanted_marks(where: Where, own: str) -> tuple[list[list[int]], dict[str, Within]]:
    """Return the marks of which a passage must have one, for each key, and the bounds by key.

    Raises
    ------
    ValueError
        If the filter is a function, or malformed; `own` is what else the database takes.
    """
    accepted, ranges = filtered(where, own)
    marks = [[mark_of(key, value) for value in values] for key, values in accepted.items()]
    return marks, ranges

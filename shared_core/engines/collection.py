"""What the engines of databases share: a collection's own options, checks, and words counted."""

from __future__ import annotations

import json
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Self, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Vectors
from shared_core.checking import check_choice, check_count, check_several
from shared_core.errors import EngineError
from shared_core.index.dense import Buffer, DenseSnapshot, Metric
from shared_core.index.engine import Engine, Leg
from shared_core.index.metadata import Where, Within, conditions
from shared_core.index.passages import check_passages
from shared_core.index.sparse.bm25 import BM25Options
from shared_core.index.tokenize import tokenize
from shared_core.types import Passage, Pool, Query, Tokenizer

FORMAT = 1
SAMPLE = "The torch.nn.Linear layer's 2-D weights: naïve, 東京 and x_1!"
"""A tokenizer is known by what it makes of this."""

Encode: TypeAlias = Callable[[Any], Any]

Dense = Literal["flat", "hnsw"]


class Found(NamedTuple):
    """The passages of a pool, their scores, and what is known of them."""

    passages: Sequence[Passage]
    dense: npt.ArrayLike
    sparse: npt.ArrayLike
    complete: bool
    sparse_exact: bool = True


class OtherOptionsError(ValueError):
    """The collection was made with other options, which are `own` (without the tokenizer)."""

    def __init__(self, message: str, own: dict[str, Any]) -> None:
        super().__init__(message)
        self.own = own


class CollectionArguments(TypedDict, total=False):
    """Keyword arguments of every `CollectionEngine`."""

    metric: Metric
    k1: float | None
    b: float
    tokenizer: Tokenizer | None
    encode_source: Encode | None
    decode_source: Encode | None


class CollectionEngine(Engine):
    """Passages in a collection of a database, which searches and scores both legs itself.

    Vectors are checked and words counted here; a subclass reads and writes. The collection is made
    when passages are first added, and keeps the options that its scores depend on.

    Parameters
    ----------
    collection
        Its name.
    metric, k1, b, tokenizer
        As in `HybridIndex`, of a collection that is new; of another they must be its own.
    encode_source, decode_source
        Make a passage's `source` JSON-able, and back. Without them, sources are not kept.

    Attributes
    ----------
    shown
        The address as errors name it, without secrets.
    """

    shown: str

    embeds = False
    """`add` and `pool` take vectors."""

    def __init__(
        self,
        collection: str,
        *,
        metric: Metric = "cosine",
        k1: float | None = None,
        b: float = 0.75,
        tokenizer: Tokenizer | None = None,
        encode_source: Encode | None = None,
        decode_source: Encode | None = None,
    ) -> None:
        check_choice(metric, "metric", Metric)
        self.collection, self.metric = collection, metric
        self.bm25 = BM25Options(k1=k1, b=b)
        self.tokenizer = tokenize if tokenizer is None else tokenizer
        self._encode, self._decode = encode_source, decode_source
        self._checker: DenseSnapshot | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shown!r}, {self.collection!r})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # as connections are shared

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self!r} holds connections, which cannot be pickled or copied: open it again by its "
            "address, as by from_url, where it is needed"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _saved_options(self) -> dict[str, Any] | None:
        """Return the options the collection was made with; None if it is not there."""

    @abstractmethod
    def _create(self, dim: int) -> None:
        """Make the collection, unless somebody else just did, and keep `_options` with it."""

    @abstractmethod
    def _pools(
        self, words: Sequence[Counter[str]], vectors: Sequence[Vectors], depth: int, where: Where
    ) -> list[Found]:
        """Return what both legs find for each query: how often it has each word, and its vector."""

    @abstractmethod
    def _write(
        self, passages: Sequence[Passage], vectors: Vectors, counted: Sequence[Counter[str]]
    ) -> None:
        """Add passages of distinct ids, in place of those whose id is there."""

    @abstractmethod
    def _remove(self, ids: Sequence[str]) -> set[str]:
        """Delete passages, and return the ids that were there."""

    @abstractmethod
    def _read(self, ids: Sequence[str]) -> list[Passage]:
        """Return the passages of `ids` that are there, in any order."""

    @abstractmethod
    def _ids(self) -> list[str]:
        """Return the ids of all passages, in any order."""

    @abstractmethod
    def _size(self) -> int:
        """Return the number of passages."""

    @abstractmethod
    def _documents(
        self, key: str, names: Sequence[str], where: Where
    ) -> tuple[list[Passage], Vectors]:
        """Return the passages whose metadata have one of `names` under `key`, and their vectors."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections; a second call does nothing."""

    def _options(self, dim: int) -> dict[str, Any]:
        """Return what the scores of a collection of this dimension depend on."""
        tokens = json.dumps(self.tokenizer(SAMPLE))
        return {
            "format": FORMAT,
            "dim": dim,
            "metric": self.metric,
            "k1": self.bm25.k1,
            "b": self.bm25.b,
            "tokenizer": sha256(tokens.encode()).hexdigest()[:16],
        }

    def _known(self) -> bool:
        """Return whether the collection is there, and check the options against its own."""
        if self._checker is not None:
            return True
        saved = self._saved_options()
        if saved is None:
            return False
        if saved["format"] != FORMAT:
            raise ValueError(
                f"{self!r} has format {saved['format']}, this version reads format {FORMAT}: "
                "index its documents anew, under another name"
            )
        for name, value in self._options(saved["dim"]).items():
            if saved[name] != value:
                raise OtherOptionsError(
                    f"{self!r} was made with {name}={saved[name]!r}, not {value!r}: give that, or "
                    "another collection",
                    {key: saved[key] for key in saved.keys() - {"format", "dim", "tokenizer"}},
                )
        empty = Buffer(np.zeros((0, saved["dim"]), np.float32))
        self._checker = DenseSnapshot(self.metric, "flat", empty)
        return True

    def pool(self, queries: Sequence[Query], depth: int, *, where: Where = None) -> list[Pool]:
        """Return, for each query, the best `depth` passages of either leg, scored by both.

        Of a collection that is not there it returns nothing, with a warning.

        Raises
        ------
        ValueError
            If `depth` is below 1, the filter cannot be applied here, or a vector is missing or does
            not fit.
        EngineError
            If the database does not answer.
        """
        check_count(depth, "depth")
        if not self._known():
            warnings.warn(
                f"{self!r} is not there, so nothing is found: add passages, or correct the name",
                stacklevel=2,
            )
            return [Pool((), np.zeros(0), np.zeros(0), query=each.text.strip()) for each in queries]
        assert self._checker is not None
        words = [Counter(self.tokenizer(query.text)) for query in queries]
        vectors = [self._checker.unit(query.vector) for query in queries]
        found = self._pools(words, vectors, depth, where)
        return [self._pool_of(query, each) for query, each in zip(queries, found, strict=True)]

    def _pool_of(self, query: Query, found: Found) -> Pool:
        dense = np.asarray(found.dense, np.float64)
        return Pool(
            found.passages,
            dense,
            np.asarray(found.sparse, np.float64),
            sparse_exact=None if found.sparse_exact else np.zeros(len(dense), np.bool_),
            complete=found.complete,
            nearest=float(dense.max()) if self.metric == "cosine" and len(dense) else None,
            query=query.text.strip(),
        )

    def search_leg(
        self, leg: Leg, query: Query, k: int, *, where: Where = None
    ) -> list[tuple[Passage, float]]:
        """Return the best `k` passages of one leg with its scores, best first.

        Raises
        ------
        ValueError, EngineError
            As `pool`, and if there is no such leg.
        """
        check_choice(leg, "leg", Leg)
        (pool,) = self.pool([query], k, where=where)
        scores = pool.dense if leg == "dense" else pool.sparse
        best = np.argsort(-scores, kind="stable")[:k]
        return [
            (pool.passages[at], float(scores[at]))
            for at in best
            if leg == "dense" or scores[at] > 0
        ]

    def add(self, passages: Sequence[Passage], vectors: npt.ArrayLike | None = None) -> list[str]:
        """Add passages, or replace those whose id is there.

        Raises
        ------
        ValueError
            As `HybridIndex.add`, and if metadata are not JSON, with the passage and the key.
        EngineError
            If the database does not answer; the engine's class says what was written then.
        """
        passages = [*passages]
        check_passages(passages)
        if not passages:
            return []
        for each in passages:
            for key, value in each.metadata.items():
                _check_json(value, f"metadata {key!r} of passage {each.id!r}")
        if vectors is None:
            raise ValueError("the database does not embed texts: give the vectors of the passages")
        checker = self._checker or DenseSnapshot(self.metric, "flat")
        matrix = checker.checked(vectors, [f"passage {each.id!r}" for each in passages])
        counted = [Counter(self.tokenizer(each.text)) for each in passages]
        self._ensure(matrix.shape[1])
        self._write(passages, matrix, counted)
        return [passage.id for passage in passages]

    def _ensure(self, dim: int) -> None:
        if not self._known():
            self._create(dim)
            self._known()

    def delete(self, ids: Iterable[str]) -> list[str]:
        """Delete passages; return the ids that were there.

        Raises
        ------
        ValueError
            If `ids` is a single string.
        EngineError
            If the database does not answer.
        """
        check_several(ids)
        ids = [*ids]
        there = self._remove(ids) if ids and self._known() else ()
        return [id for id in dict.fromkeys(ids) if id in there]

    def get(self, ids: Iterable[str]) -> list[Passage]:
        """Return the passages of `ids` that are there, in that order.

        Raises
        ------
        ValueError, EngineError
            As `delete`.
        """
        check_several(ids)
        ids = [*ids]
        found = self._read(ids) if ids and self._known() else ()
        there = {passage.id: passage for passage in found}
        return [there[id] for id in ids if id in there]

    def ids(self) -> list[str]:
        """Return the ids of all passages, in any order.

        Raises
        ------
        EngineError
            If the database does not answer.
        """
        return self._ids() if self._known() else []

    def documents(
        self, key: str, names: Sequence[Any], *, where: Where = None
    ) -> tuple[list[Passage], Vectors | None]:
        """Return the passages whose metadata have one of `names` under `key`, and their vectors.

        Raises
        ------
        ValueError
            If the filter cannot be applied in the database.
        EngineError
            If the database does not answer.
        """
        if not self._known():
            return [], None
        return self._documents(key, [*map(str, names)], where)

    def describe(self) -> dict[str, Any] | None:
        """Return what is there, or None if the collection is not.

        Returns
        -------
        dict
            ``passages``, their number; the options it was made with; and where the database can
            tell ``mean_length`` in words, ``weighed_for``, the mean for which they were weighed,
            ``words``, the number of different ones, and ``amiss``, what is wrong with its
            statistics and what to do, if something is.

        Raises
        ------
        EngineError
            If the database does not answer.
        """
        saved = self._saved_options()
        return None if saved is None else {"passages": self._size(), **saved, **self._statistics()}

    def _statistics(self) -> dict[str, Any]:
        """Return what else `describe` tells."""
        return {}

    def take_up_mean(self) -> None:
        """Weigh the words anew if the mean length has moved far, where a database keeps weights."""

    def count(self) -> int:
        """Return the number of passages."""
        return self._size() if self._known() else 0

    def _unanswered(self, timeout: float, why: object) -> EngineError:
        """Return the error for a server that does not answer."""
        return EngineError(
            f"{self.shown} does not answer within {timeout:g} s, or refuses ({why}): is the "
            "server up and reachable? timeout= gives it longer"
        )

    def _encoded(self, passage: Passage) -> Any:
        """Return a passage's source as JSON-able data; None if it is not kept."""
        source = passage.source
        return self._encode(source) if self._encode and source is not None else None

    def _decoded(self, id: str, text: str, metadata: dict[str, Any], source: Any) -> Passage:
        decoded = self._decode(source) if self._decode and source is not None else None
        return Passage(id, text, metadata, decoded)


def filtered(where: Where, own: str) -> tuple[dict[str, list[Any]], dict[str, Within]]:
    """Return the values that a filter accepts by key, and the bounds of numbers by key.

    Raises
    ------
    ValueError
        If it is malformed, holds what JSON cannot, or is a function; `own` is what else the
        database takes.
    """
    if where is not None and not isinstance(where, Mapping):
        raise ValueError(
            f"{where!r} cannot be applied in the database: give a mapping, such as "
            f'{{"lang": "en"}}, or {own}'
        )
    accepted, ranges = conditions(where or {}, own)
    for key, values in accepted.items():
        accepted[key] = [each.item() if isinstance(each, np.generic) else each for each in values]
        _check_json(accepted[key], f"filter {key!r}")
    return accepted, ranges


def _check_json(value: object, name: str) -> None:
    """Raise ValueError, which begins with the name, unless JSON can hold a value."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} is {value!r:.80}, which is not JSON ({error}): give texts, finite numbers, "
            "bools, None, or lists and dictionaries of them"
        ) from None


def rows_to_write(engine: Engine, passages: Sequence[Passage]) -> list[int]:
    """Return which passages an engine lacks, or has with another text or metadata."""
    found = engine.get([passage.id for passage in passages])
    there = {each.id: (each.text, each.metadata) for each in found}
    return [
        at for at, each in enumerate(passages) if there.get(each.id) != (each.text, each.metadata)
    ]

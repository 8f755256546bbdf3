"""LanceDB: both legs in an embedded database, in a folder or in object storage.

A collection is one table. The words of a passage are kept as hashes in a column that LanceDB's full
text search indexes; what its tokenizer and ours would split differently cannot differ. LanceDB
counts its statistics when an index is built, not when rows are written, so that the first search
after a write builds the index anew; a tag says which version of the table it was built for.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any, Unpack
from urllib.parse import quote, urlsplit

import numpy as np

from shared_core._extras import require
from shared_core.arrays import Vectors
from shared_core.engines.collection import CollectionArguments, CollectionEngine, Found, filtered
from shared_core.errors import EngineError
from shared_core.index.metadata import SIGNS, Where
from shared_core.types import Passage

lancedb = require("lancedb", extra="lancedb")
pa = require("pyarrow", extra="lancedb")

K1, B = 1.2, 0.75
"""Of LanceDB's BM25, which has no option for them; its scores are k1 + 1 times ours."""

WORDS = require("lancedb.index", extra="lancedb").FTS(
    base_tokenizer="whitespace",
    max_token_length=None,
    lower_case=False,
    stem=False,
    remove_stop_words=False,
    ascii_folding=False,
)
"""An index of words as they are."""

BLANK = "-"
"""Words of a passage that has none, since LanceDB does not count passages without any."""

BUILT = "posrag-words"
"""Tag of the version of the table that the index of words was last built for."""

FRAGMENTS = 20
"""Small files of a table from which they are merged before the index is built."""

JSON = pa.json_(pa.utf8())
KEY = {"lance-schema:unenforced-primary-key": "true"}
"""Makes LanceDB notice when two writers add the same id at once."""

CONTENT = ["row", "id", "content", "metadata", "source"]


class LanceEngine(CollectionEngine):
    """Passages in a LanceDB table, which searches and scores both legs itself.

    Every passage of a pool is scored exactly by both legs, from one version of the table. Writes
    are all or nothing. After one, the first search builds the index of words anew, which takes
    longer the more passages there are; `optimize` does it at once. A passage without any word
    counts as one of a single word, so that the mean length is off by as much.

    Parameters
    ----------
    address
        ``lancedb:///folder``, or ``lancedb+`` and an address of object storage, such as
        ``lancedb+s3://bucket/folder``.
    collection
        Name of its table, which is made when passages are first added.
    stale
        Whether a search may use an index that was built before the latest writes: it does not wait,
        its BM25 scores are off, the more, the more passages changed, and pools are not complete.
    storage_options
        Of object storage, such as keys: see LanceDB's documentation.
    timeout
        Seconds after which a request to object storage is given up; it is tried again a few times.
    **options
        As in `CollectionEngine`: `metric`, `tokenizer`, `encode_source`, `decode_source`. `k1` and
        `b` are LanceDB's own, 1.2 and 0.75.

    Raises
    ------
    EngineError
        If the folder or storage cannot be reached.
    ValueError
        If an option is out of range, or not that of the collection.
    MissingExtraError
        If LanceDB is not installed.
    """

    def __init__(
        self,
        address: str,
        collection: str = "posrag",
        *,
        stale: bool = False,
        storage_options: Mapping[str, str] | None = None,
        timeout: float = 10.0,
        **options: Unpack[CollectionArguments],
    ) -> None:
        super().__init__(collection, **options)
        for name, fixed, given in (("k1", K1, self.bm25.k1), ("b", B, self.bm25.b)):
            if given != fixed:
                raise ValueError(
                    f"every collection of LanceDB is made with {name}={fixed}, not {given}: leave "
                    "it out, or use another engine"
                )
        self.stale = stale
        target = urlsplit(address)
        self.shown = f"{target.scheme}://{target.netloc.rpartition('@')[2]}{target.path}"
        self._name = quote(collection, safe="").replace(".", "%2E").replace("~", "%7E")
        self._name = self._name.replace("%", ".")
        self._writing = threading.Lock()
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="lancedb")
        self._built = 0
        patience = {"timeout": f"{timeout:g}s", "client_retry_timeout": f"{timeout:g}"}
        with self._told((RuntimeError, OSError, ValueError)):
            self._db = lancedb.connect(
                address.removeprefix("lancedb://").removeprefix("lancedb+"),
                storage_options=patience | dict(storage_options or {}),
            )
        self._known()

    @contextmanager
    def _told(
        self, errors: tuple[type[Exception], ...] = (RuntimeError, OSError)
    ) -> Iterator[None]:
        try:
            yield
        except errors as error:
            raise EngineError(
                f"{self.shown} does not answer ({error}): is it there, and may this user read and "
                "write it?"
            ) from error

    def _saved_options(self) -> dict[str, Any] | None:
        with self._told():
            try:
                schema = self._table().schema
            except FileNotFoundError:
                return None
        saved: dict[str, Any] = json.loads(schema.metadata[b"posrag"])
        return saved

    def _table(self) -> Any:
        """Return the table as it is now; whatever is written later, this object does not see."""
        try:
            return self._db.open_table(self._name)
        except ValueError as error:
            raise FileNotFoundError(error) from error

    def _create(self, dim: int) -> None:
        kept = {"posrag": json.dumps(self._options(dim))}
        with self._told():
            self._db.create_table(
                self._name, schema=_schema(dim).with_metadata(kept), exist_ok=True
            )

    def _write(
        self, passages: Sequence[Passage], vectors: Vectors, counted: Sequence[Counter[str]]
    ) -> None:
        sources = [self._encoded(passage) for passage in passages]
        metadata = [json.dumps(dict(passage.metadata)) for passage in passages]
        with self._told(), self._writing:
            table = self._table()
            first = table.version << 32  # later writes have higher rows, in every process
            values = {
                "id": [passage.id for passage in passages],
                "row": [*range(first, first + len(passages))],
                "content": [passage.text for passage in passages],
                "metadata": pa.ExtensionArray.from_storage(JSON, pa.array(metadata, pa.utf8())),
                "source": [None if each is None else json.dumps(each) for each in sources],
                "words": [" ".join(map(_hashed, each.elements())) or BLANK for each in counted],
                "embedding": pa.FixedSizeListArray.from_arrays(vectors.ravel(), vectors.shape[1]),
            }
            rows = pa.table(values, schema=_schema(vectors.shape[1]))
            merge = table.merge_insert("id").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(rows)

    def _remove(self, ids: Sequence[str]) -> set[str]:
        among = f"id IN ({_literals(ids)})"
        with self._told(), self._writing:
            table = self._table()
            there = {*_rows(table, ["id"], among)["id"].to_pylist()}
            if there:
                table.delete(among)
        return there

    def optimize(self) -> None:
        """Merge small files, drop versions older than a week, and build the index of words.

        Raises
        ------
        EngineError
            If the database does not answer.
        """
        if self._known():
            with self._told(), self._writing:
                table = self._table()
                table.optimize()
                self._build(table)

    def _build(self, table: Any) -> None:
        before = table.version
        table.create_index("words", config=WORDS)
        if table.version == before + 1:  # else another process wrote in between
            self._built = table.version
            missing = BUILT not in table.tags.list()
            (table.tags.create if missing else table.tags.update)(BUILT, self._built)

    def _searched(self) -> tuple[Any, bool]:
        """Return the table for one search, and whether its index of words counts all its rows."""
        table = self._table()
        while table.version != self._built:
            with self._writing:
                table.checkout_latest()
                tag = table.tags.list().get(BUILT)
                if tag is not None and tag["version"] == table.version:
                    self._built = table.version
                if table.version == self._built or (tag is not None and self.stale):
                    break
                try:
                    if table.stats()["fragment_stats"]["num_small_fragments"] > FRAGMENTS:
                        table.optimize()
                    self._build(table)
                    break
                except RuntimeError as error:  # another process was faster: see what it made
                    if "commit conflict" not in str(error):
                        raise
        return table, table.version == self._built

    def _pools(
        self, words: Sequence[Counter[str]], vectors: Sequence[Vectors], depth: int, where: Where
    ) -> list[Found]:
        passing = _condition(where)
        asked = [" ".join(map(_hashed, counts.elements())) for counts in words]
        with self._told():
            table, built = self._searched()

            def nearest(vector: Vectors) -> Any:
                search = table.search(vector, vector_column_name="embedding").distance_type("dot")
                return _best(search, passing, [*CONTENT, "embedding", "_distance"], depth)

            def matching(text: str) -> Any:
                search = table.search(text, query_type="fts")
                return _best(search, passing, [*CONTENT, "embedding", "_score"], depth)

            def scored(text: str, near: Any, match: Any) -> dict[int, float]:
                scores = _scores(match)
                missing = [row for row in near["_rowid"].to_pylist() if row not in scores]
                if missing and len(scores) == depth:  # else all that match are known
                    among = f"_rowid IN ({', '.join(map(str, missing))})"
                    search = table.search(text, query_type="fts")
                    scores |= _scores(_best(search, among, ["_score"], len(missing)))
                return scores

            found = self._threads.map(nearest, vectors), self._threads.map(matching, asked)
            near, match = map(list, found)
            scores = self._threads.map(scored, asked, near, match)
            each = zip(vectors, near, match, scores, strict=True)
            return [self._found(*parts, built) for parts in each]

    def _found(
        self, vector: Vectors, near: Any, match: Any, scores: Mapping[int, float], built: bool
    ) -> Found:
        columns = [*CONTENT, "embedding", "_rowid"]
        both = pa.concat_tables([near.select(columns), match.select(columns)])
        _, first = np.unique(both["_rowid"].to_numpy(), return_index=True)
        passages, kept = self._passages(both.take(first))
        sparse = [scores.get(row, 0.0) / (K1 + 1) for row in kept["_rowid"].to_pylist()]
        dense = _embeddings(kept, len(vector)) @ vector
        return Found(passages, dense, sparse, complete=built, sparse_exact=built)

    def _passages(self, rows: Any) -> tuple[list[Passage], Any]:
        """Return passages in insertion order, and their rows in the same."""
        rows = rows.sort_by("row")
        ids, texts, metadata, sources = (rows[name].to_pylist() for name in CONTENT[1:])
        return [
            self._decoded(id, text, json.loads(held), source and json.loads(source))
            for id, text, held, source in zip(ids, texts, metadata, sources, strict=True)
        ], rows

    def _documents(
        self, key: str, names: Sequence[str], where: Where
    ) -> tuple[list[Passage], Vectors]:
        """Return the passages whose metadata have one of `names` under `key`, and their vectors."""
        named = [*names, *map(_text, names)]  # a number, or a text
        passing = f"{_path(key)} IN ({_literals(named)})"
        with self._told():
            table = self._table()
            both = f"({passing}) AND ({_condition(where) or 'true'})"
            rows = _rows(table, [*CONTENT, "embedding"], both)
        passages, rows = self._passages(rows)
        return passages, _embeddings(rows, table.schema.field("embedding").type.list_size)

    def _read(self, ids: Sequence[str]) -> list[Passage]:
        with self._told():
            rows = _rows(self._table(), CONTENT, f"id IN ({_literals(ids)})")
        return self._passages(rows)[0]

    def _ids(self) -> list[str]:
        with self._told():
            return [*_rows(self._table(), ["id"], None)["id"].to_pylist()]

    def _size(self) -> int:
        with self._told():
            return int(self._table().count_rows())

    def close(self) -> None:
        """End the threads; a second call does nothing."""
        self._threads.shutdown()


def _schema(dim: int) -> Any:
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False, metadata=KEY),
            ("row", pa.int64()),
            ("content", pa.string()),
            ("metadata", JSON),
            ("source", pa.string()),
            ("words", pa.string()),
            ("embedding", pa.list_(pa.float32(), dim)),
        ]
    )


def _rows(table: Any, columns: list[str], passing: str | None) -> Any:
    return table.search().where(passing).select(columns).to_arrow()


def _best(search: Any, passing: str | None, columns: list[str], depth: int) -> Any:
    search = search.where(passing, prefilter=True) if passing else search
    return search.select(columns).with_row_id(True).limit(depth).to_arrow()


def _scores(match: Any) -> dict[int, float]:
    return dict(zip(match["_rowid"].to_pylist(), match["_score"].to_pylist(), strict=True))


def _embeddings(rows: Any, dim: int) -> Vectors:
    flat = rows["embedding"].combine_chunks().flatten()
    return np.asarray(flat.to_numpy(zero_copy_only=False), np.float32).reshape(-1, dim)


def _hashed(word: str) -> str:
    return blake2b(word.encode(), digest_size=8).hexdigest()


def _text(value: Any) -> str:
    """Return a value as LanceDB writes it out of JSON."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _literals(values: Sequence[str]) -> str:
    return ", ".join("'" + value.replace("'", "''") + "'" for value in values) or "NULL"


def _path(key: str) -> str:
    return f"json_extract(metadata, {_literals([f'$[{_text(key)}]'])})"


def _condition(where: Where | str) -> str | None:
    """Return a filter as a condition of LanceDB's."""
    if where is None or isinstance(where, str):
        return where
    accepted, ranges = filtered(where, "a condition in LanceDB's SQL")
    passing = [
        f"{_path(key)} IN ({_literals([_text(each) for each in wanted])})"
        for key, wanted in accepted.items()
    ]
    passing += [
        f"TRY_CAST({_path(key)} AS DOUBLE) {SIGNS[name]} {_text(float(bound))}"
        for key, bounds in ranges.items()
        for name, bound in bounds.items()
    ]
    return " AND ".join(["true", *passing])

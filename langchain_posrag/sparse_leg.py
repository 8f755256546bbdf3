"""The sparse leg beside somebody else's vector store: BM25, and the documents it ranks."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from langchain_posrag.documents import document_of, passage_of
from shared_core import BM25Index, Passage
from shared_core.forking import forkable, undone_by
from shared_core.index import Tokenizer
from shared_core.index.bm25 import Variant
from shared_core.index.lexicon import Lexicon
from shared_core.index.metadata import MetadataColumns, Visible, Where, predicate
from shared_core.index.neighbours import PassageNeighbours
from shared_core.index.place_table import Places
from shared_core.index.places import ChunkReader


class Checked(NamedTuple):
    """What `SparseLeg.check` read of documents, in their order, so that `add` need not again.

    Attributes
    ----------
    lexicon
        What numbers the tokens. An index that was compacted since has another.
    words
        The tokens of each text, numbered.
    contents
        See `content_of`.
    """

    lexicon: Lexicon
    words: list[list[int]]
    contents: list[bytes]


class SparseLeg:
    """A BM25 index and its documents, row by row. Safe to use from many threads.

    Two documents are the same if their ids are equal. Where one of them has no id, they are the
    same if content and metadata are.

    Parameters
    ----------
    bm25
        `shared_core.BM25Index` without deleted rows.
    documents
        The documents of its rows, in order.

    Raises
    ------
    ValueError
        If the numbers differ, rows have been deleted, or two documents have the same id.
    """

    def __init__(self, bm25: BM25Index, documents: Iterable[Document]) -> None:
        self._bm25 = bm25
        self._lock = forkable(threading.RLock())
        self._learning = forkable(threading.Lock())
        self._passages: list[Passage] = []
        self._contents: list[bytes] = []
        self._by_id: dict[str, int] = {}
        self._by_content: dict[bytes, list[int]] = {}
        self._columns: MetadataColumns | None = None
        self._places = Places()
        passages = [_passage(document) for document in documents]
        if len(bm25) != bm25.view.size:
            deleted = bm25.view.size - len(bm25)
            raise ValueError(f"the BM25 index has {deleted} deleted rows: call its compact() first")
        if len(passages) != len(bm25):
            raise ValueError(f"the BM25 index has {len(bm25)} rows, got {len(passages)} documents")
        _check_distinct(passages)
        self._record(passages, [content_of(passage) for passage in passages])

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            bm25 = copy(self._bm25)
            passages = [self._passages[row] for row in self._alive()]
        documents = [document_of(passage) for passage in passages]
        bm25.compact()
        return type(self), (bm25, documents)

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        *,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
    ) -> Self:
        """Index documents; options as in `shared_core.BM25Index`."""
        documents = list(documents)
        texts = (document.page_content for document in documents)
        return cls(BM25Index.from_texts(texts, variant=variant, tokenizer=tokenizer), documents)

    @classmethod
    def from_rank_bm25(
        cls, bm25: Any, documents: Iterable[Document], *, tokenizer: Tokenizer
    ) -> Self:
        """Convert a ``rank_bm25.BM25Okapi``; see `shared_core.BM25Index.from_rank_bm25`."""
        return cls(BM25Index.from_rank_bm25(bm25, tokenizer=tokenizer), documents)

    def check(self, documents: Iterable[Document]) -> Checked:
        """Raise what `add` would raise, without adding; return what was read of the documents."""
        passages = [_passage(document) for document in documents]
        _check_distinct(passages)
        return self._read(passages)

    def add(self, documents: Iterable[Document], checked: Checked | None = None) -> None:
        """Add documents; those whose id is there already are replaced. All, or none.

        Parameters
        ----------
        documents
            Ids unique among them.
        checked
            What `check` returned for them, if it was called; their ids may have changed since.
        """
        passages = [_passage(document) for document in documents]
        _check_distinct(passages)
        checked = self._read(passages) if checked is None else checked
        with self._changing():
            if checked.lexicon is not self._bm25.lexicon:
                checked = self._read(passages)
            self._remove([self._by_id[p.id] for p in passages if p.id in self._by_id])
            self._bm25.append(checked.words)
            self._record(passages, checked.contents)
            self._tidy()

    def delete(self, documents: Iterable[Document]) -> None:
        """Delete documents; those that are not there are ignored."""
        with self._changing():
            rows = {self.row_of(_passage(document)) for document in documents}
            self._remove([row for row in rows if row is not None])
            self._tidy()

    def get(self, id_: str) -> Passage | None:
        """Return the passage of that id, if there is one."""
        with self._lock:
            row = self._by_id.get(id_)
            return None if row is None else self._passages[row]

    def row_of(self, passage: Passage) -> int | None:
        """Return the row of what is the same document, if there is one."""
        with self._lock:
            row = self._by_id.get(passage.id)
            if row is not None:
                return row
            for row in self._by_content.get(content_of(passage), ()):
                if not (passage.id and self._passages[row].id):
                    return row
            return None

    def identified(self, passage: Passage) -> tuple[str | bytes, Passage]:
        """Return what tells a passage apart, and it under the id it has here if it has none.

        It is told apart by the id of what is the same document here, or else by its own, or by
        the content; never by a row, which another thread's changes may give to another.
        """
        with self._lock:
            if passage.id in self._by_id:  # as most are
                return passage.id, passage
            row = self.row_of(passage)
            if row is None:
                return passage.id or content_of(passage), passage
            known = self._passages[row].id
            identity = known or self._contents[row]
            return identity, passage if passage.id or not known else replace(passage, id=known)

    def search(self, query: str, k: int, where: Where) -> list[Passage]:
        """Return the best `k` passages that share a token with the query, best first."""
        with self._lock:
            allowed = None if where is None else self._metadata().allowed(where)
            rows, _ = self._bm25.search(query, k, allowed=allowed)
            return [self._passages[row] for row in rows.tolist()]

    def scores(self, query: str, passages: Sequence[Passage]) -> npt.NDArray[np.float64]:
        """Return the exact BM25 score of any passages, shape (len(passages),)."""
        with self._lock:
            rows = [self.row_of(passage) for passage in passages]
            foreign = [p.text for p, row in zip(passages, rows, strict=True) if row is None]
            scores = np.empty(len(passages))
            known = np.array([row is not None for row in rows], np.bool_)
            scores[known] = self._bm25.scores_at(query, [row for row in rows if row is not None])
            if foreign:
                scores[~known] = self._bm25.score_texts(query, foreign)
            return scores

    def neighbours(self, reader: ChunkReader, where: Where) -> PassageNeighbours:
        """Return the documents that pass a filter as a source of neighbours, as they are now."""
        with self._lock:
            passages, alive = self._passages, self._bm25.view.alive
            size = len(passages)
            table = self._places.table(passages, size, alive, reader)
            passes = None if where is None else predicate(where)
            visible = Visible(size, alive, passes, passages)
            return PassageNeighbours(table, self._by_id.get, visible, None)

    def _metadata(self) -> MetadataColumns:
        if self._columns is None:
            self._columns = MetadataColumns(self._passages, len(self._passages), self._alive())
        return self._columns

    def _alive(self) -> Sequence[int]:
        alive = self._bm25.view.alive
        return range(len(self._passages)) if alive is None else alive.nonzero()[0].tolist()

    def _read(self, passages: Sequence[Passage]) -> Checked:
        """Do all that may fail: split the texts, and look at the metadata."""
        contents = [content_of(passage) for passage in passages]
        with self._learning:  # a search waits for no tokeniser
            lexicon = self._bm25.lexicon
            return Checked(lexicon, [lexicon.learn(p.text) for p in passages], contents)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the leg as a whole, or not at all where that is interrupted."""
        with self._lock:
            view, passages, contents = self._bm25.view, self._passages, self._contents
            size = len(passages)

            def undo() -> None:
                self._bm25.restore(view)
                self._hold(passages[:size], contents[:size])

            with undone_by(undo):
                yield

    def _hold(self, passages: list[Passage], contents: list[bytes]) -> None:
        """Hold these passages, row by row, of which the deleted ones are not found."""
        self._passages, self._contents, self._by_id, self._by_content = passages, contents, {}, {}
        self._find(self._alive())
        self._columns = None

    def _find(self, rows: Iterable[int]) -> None:
        for row in rows:
            if id_ := self._passages[row].id:
                self._by_id[id_] = row
            self._by_content.setdefault(self._contents[row], []).append(row)

    def _record(self, passages: Sequence[Passage], contents: Sequence[bytes]) -> None:
        first = len(self._passages)
        self._passages += passages
        self._contents += contents
        self._find(range(first, len(self._passages)))

    def _remove(self, rows: Sequence[int]) -> None:
        self._bm25.delete(rows)
        for row in rows:
            self._by_id.pop(self._passages[row].id, None)
            same = self._by_content[self._contents[row]]
            same.remove(row)
            if not same:
                del self._by_content[self._contents[row]]
        self._columns = None

    def _tidy(self) -> None:
        """Drop the deleted rows once they are the greater part."""
        if not self._bm25.view.mostly_deleted:
            return
        rows = self._alive()
        passages, contents = [self._passages[r] for r in rows], [self._contents[r] for r in rows]
        with self._learning:
            self._bm25.compact()
        self._hold(passages, contents)


def as_sparse_leg(given: object, *, variant: Variant, tokenizer: Tokenizer | None) -> SparseLeg:
    """Return the sparse leg that documents, a BM25Retriever or a `SparseLeg` make.

    Raises
    ------
    ValueError
        If it is something else, or options are given for what is an index already.
    """
    if isinstance(given, Iterable) and not isinstance(given, str | BaseRetriever):
        return SparseLeg.from_documents(given, variant=variant, tokenizer=tokenizer)
    if tokenizer is not None or variant != "lucene":
        raise ValueError("variant= and tokenizer= are for documents; sparse= is an index already")
    if isinstance(given, SparseLeg):
        return given
    bm25, documents = getattr(given, "vectorizer", None), getattr(given, "docs", None)
    if bm25 is None or documents is None:
        raise ValueError(
            f"sparse= takes documents, a BM25Retriever or a SparseLeg, got {given!r}; "
            "an index without its documents goes through SparseLeg(bm25, documents) or "
            "SparseLeg.from_rank_bm25(bm25, documents, tokenizer=...)"
        )
    tokenizer = given.preprocess_func  # type: ignore[attr-defined]
    return SparseLeg.from_rank_bm25(bm25, documents, tokenizer=tokenizer)


def _passage(document: Document) -> Passage:
    return passage_of(document, document.id or "")


def _check_distinct(passages: Sequence[Passage]) -> None:
    seen: set[str] = set()
    for passage in passages:
        if passage.id and passage.id in seen:
            raise ValueError(f"two documents have the id {passage.id!r}")
        seen.add(passage.id)


def content_of(passage: Passage) -> bytes:
    """Return a digest of text and metadata, to compare passages without an id by."""
    try:
        dumped = json.dumps([passage.text, passage.metadata], sort_keys=True, default=repr)
    except (TypeError, ValueError):  # keys unknown to JSON or without an order, or a circle
        dumped = repr((passage.text, passage.metadata))
    return hashlib.sha256(dumped.encode("utf-8", "surrogatepass")).digest()

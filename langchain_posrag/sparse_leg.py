# mypy: ignore-errors
"""The sparse leg next to a LangChain vector store: BM25, and the documents it ranks."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple, Self

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from langchain_posrag.documents import check_documents, document_of, passage_of
from shared_core import BM25Index, Passage
from shared_core.arrays import Scores
from shared_core.checking import check_count
from shared_core.index import Tokenizer
from shared_core.index.metadata import MetadataColumns, Where, predicate
from shared_core.index.passage_rows import PassageRows, check_distinct, content_of
from shared_core.index.sparse.bm25 import Variant
from shared_core.index.sparse.query import SparseQuery
from shared_core.index.sparse.snapshot import SparseSnapshot as SparseView
from shared_core.index.sparse.vocabulary import Vocabulary as Lexicon
from shared_core.neighbour_spans import ChunkReader, ChunkTables, PassageNeighbours, Visible


class Checked(NamedTuple):
    """What `SparseLeg.check` read of documents, in their order, so that `add` need not repeat it.

    Attributes
    ----------
    lexicon
        Numbers the tokens. An index that has been compacted since has another one.
    words
        The tokens of each text, numbered.
    contents
        See `shared_core.index.passage_rows.content_of`.
    """

    lexicon: Lexicon
    words: list[list[int]]
    contents: list[bytes]


class Snapshot(NamedTuple):
    """What a query is answered from: lists that are only appended to, and how far they reach.

    Attributes
    ----------
    view
        Its `size` is the number of rows; the lists may hold later ones.
    passages
        Row to passage.
    columns
        Metadata of the passages, for filters.
    """

    view: SparseView
    passages: list[Passage]
    columns: MetadataColumns

    def query(self, text: str) -> SparseQuery:
        """Prepare a query."""
        return SparseQuery(self.view, self.view.lexicon.lookup(text))


class SparseLeg:
    """A BM25 index and its documents, row by row. Safe to use from many threads.

    No lock is held while a query runs a filter or the tokenizer, which are the user's code: they
    may take as long as they like, wait for another thread, or change the leg.

    Two documents are the same if their ids are equal. Where one of them has no id, they are the
    same if content and metadata are, whatever stores make of None, integers, dates and UUIDs.

    Parameters
    ----------
    bm25
        `shared_core.BM25Index` without deleted rows.
    documents
        The documents of its rows, in order.

    Raises
    ------
    ValueError
        If the numbers differ, rows have been deleted, two documents have the same id, or they are
        one instead of several.
    """

    def __init__(self, bm25: BM25Index, documents: Iterable[Document]) -> None:
        self._bm25 = bm25
        # A writer takes both, in this order. Tokenizers run under the first alone, so that no query
        # waits for one.
        self._writing = threading.Lock()
        self._lock = threading.RLock()
        self._columns = MetadataColumns()
        self._places = ChunkTables()
        passages = _passages(documents)
        if len(bm25) != bm25.view.size:
            deleted = bm25.view.size - len(bm25)
            raise ValueError(f"the BM25 index has {deleted} deleted rows: call its compact() first")
        if len(passages) != len(bm25):
            raise ValueError(f"the BM25 index has {len(bm25)} rows, got {len(passages)} documents")
        check_distinct(passages)
        contents = [content_of(passage) for passage in passages]
        self._rows = PassageRows(passages, contents, range(len(passages)))

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            bm25 = copy(self._bm25)
            passages = [self._rows.passages[row] for row in self._alive()]
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
        documents = check_documents(documents)
        texts = (document.page_content for document in documents)
        return cls(BM25Index.from_texts(texts, variant=variant, tokenizer=tokenizer), documents)

    @classmethod
    def from_rank_bm25(
        cls, bm25: Any, documents: Iterable[Document], *, tokenizer: Tokenizer
    ) -> Self:
        """Convert a ``rank_bm25.BM25Okapi``; see `shared_core.BM25Index.from_rank_bm25`."""
        return cls(BM25Index.from_rank_bm25(bm25, tokenizer=tokenizer), documents)

    def check(self, documents: Iterable[Document]) -> Checked:
        """Raise what `add` would raise, without adding; return the checked input for it."""
        passages = _passages(documents)
        check_distinct(passages)
        contents = [*map(content_of, passages)]
        with self._writing:
            return self._read(passages, contents)

    def add(
        self,
        documents: Iterable[Document],
        checked: Checked | None = None,
        *,
        replaced: Iterable[Document] = (),
    ) -> None:
        """Add documents; those whose id is there already are replaced. All, or none.

        Parameters
        ----------
        documents
            Ids unique among them.
        checked
            What `check` returned for them, if it was called; their ids may have changed since.
        replaced
            Other documents that they replace; those that are not there are ignored.
        """
        passages, others = _passages(documents), _passages(replaced)
        check_distinct(passages)
        contents = [*map(content_of, passages)] if checked is None else checked.contents
        with self._writing:
            if checked is None or checked.lexicon is not self._bm25.lexicon:
                checked = self._read(passages, contents)
            with self._changing():
                former = {self._rows.row_of(passage) for passage in others}
                self._remove(former.union(self._rows.get(passage.id) for passage in passages))
                self._bm25.append(checked.words)
                self._rows.append(passages, contents)
                self._tidy()

    def delete(self, documents: Iterable[Document]) -> None:
        """Delete documents; those that are not there are ignored."""
        passages = _passages(documents)
        with self._writing, self._changing():
            self._remove({self._rows.row_of(passage) for passage in passages})
            self._tidy()

    def get(self, id_: str) -> Passage | None:
        """Return the passage of that id, if there is one."""
        with self._lock:
            row = self._rows.get(id_)
            return None if row is None else self._rows.passages[row]

    def identified(self, passage: Passage) -> tuple[str | bytes, Passage]:
        """Return a key for the passage, and the passage with the stored id if it had none.

        See `shared_core.index.passage_rows.PassageRows.identified`.
        """
        with self._lock:
            return self._rows.identified(passage)

    def search(self, query: str, k: int, where: Where) -> list[Passage]:
        """Return the best `k` passages that share a token with the query, best first."""
        with self._lock:
            now = self._snapshot()
        view, passages = now.view, now.passages
        allowed = now.columns.allowed(where, passages, view.size, view.alive)
        rows, _ = now.query(query).ranked(check_count(k, "k"), allowed)
        return [passages[row] for row in rows.tolist()]

    def scores(self, query: str, passages: Sequence[Passage]) -> Scores:
        """Return the exact BM25 score of any passages, shape (len(passages),)."""
        with self._lock:
            now = self._snapshot()
            rows = [self._rows.row_of(passage) for passage in passages]
        return now.query(query).of(rows, lambda at: passages[at].text)

    def neighbours(self, reader: ChunkReader, where: Where) -> PassageNeighbours:
        """Return the documents that pass a filter as a source of neighbours, as they are now."""
        passes = None if where is None else predicate(where)
        with self._lock:
            now, row_of, places = self._snapshot(), self._rows.get, self._places
        size, alive = now.view.size, now.view.alive
        table = places.table(now.passages, size, alive, reader)
        visible = Visible(size, alive, passes, now.passages)
        return PassageNeighbours(table, row_of, visible, None)

    def _snapshot(self) -> Snapshot:
        return Snapshot(self._bm25.view, self._rows.passages, self._columns)

    def _alive(self) -> Sequence[int]:
        view = self._bm25.view
        alive = view.alive
        return range(view.size) if alive is None else alive.nonzero()[0].tolist()

    def _read(self, passages: Sequence[Passage], contents: list[bytes]) -> Checked:
        """Split the texts; the caller holds `_writing`."""
        lexicon = self._bm25.lexicon
        return Checked(lexicon, [lexicon.learn(passage.text) for passage in passages], contents)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change the leg as a whole, or not at all if that is interrupted."""
        with self._lock:
            view, rows, size = self._bm25.view, self._rows, len(self._rows)

            try:
                yield
            except BaseException:
                self._columns = MetadataColumns()
                self._bm25.restore(view)
                self._rows = rows.first(size, self._alive())
                raise

    def _remove(self, rows: Collection[int | None]) -> None:
        there = [row for row in rows if row is not None]
        self._bm25.delete(there)
        self._rows.remove(there)

    def _tidy(self) -> None:
        """Drop the deleted rows once they are the majority."""
        if not self._bm25.view.mostly_deleted:
            return
        rows = self._alive()
        self._bm25.compact()
        self._rows, self._columns = self._rows.only(rows), MetadataColumns()
        self._places = ChunkTables()  # the former one holds the deleted passages


def as_sparse_leg(given: object, *, variant: Variant, tokenizer: Tokenizer | None) -> SparseLeg:
    """Return a sparse leg over documents, of a BM25Retriever, or as given.

    Raises
    ------
    ValueError
        If it is something else, or options are given for an existing index.
    """
    if isinstance(given, Iterable) and not isinstance(given, str | BaseRetriever):
        return SparseLeg.from_documents(given, variant=variant, tokenizer=tokenizer)
    if tokenizer is not None or variant != "lucene":
        raise ValueError("variant= and tokenizer= are for documents; sparse= is already an index")
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


def _passages(documents: Iterable[Document]) -> list[Passage]:
    return [_passage(document) for document in check_documents(documents)]


def _passage(document: Document) -> Passage:
    return passage_of(document, document.id or "")

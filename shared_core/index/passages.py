"""Passages under BM25: found by words, by id and by document, filtered; no vectors."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Unpack

import numpy as np

from shared_core.arrays import Scores, Vectors
from shared_core.checking import check_count, check_several
from shared_core.index.metadata import Where, predicate
from shared_core.index.snapshot import PassageSnapshot
from shared_core.index.sparse.bm25 import BM25Arguments, BM25Options
from shared_core.index.sparse.query import SparseQuery, sparse_top_k
from shared_core.index.sparse.snapshot import SparseSnapshot
from shared_core.neighbour_spans import PassageNeighbours
from shared_core.types import Passage, Tokenizer


class PassageIndex:
    """Passages under BM25: what a store of vectors alone lacks.

    Safe to search from many threads while one adds or deletes: a search works on the state it
    starts from. No lock is held while a filter runs.

    Parameters
    ----------
    tokenizer
        Text to tokens, by default `tokenize`.
    **bm25
        ``variant``, ``k1``, ``b``, ``epsilon`` and ``mean_length``, see `BM25Options`.

    Raises
    ------
    ValueError
        If an option is unknown or out of range.
    """

    _state: PassageSnapshot

    def __init__(
        self, *, tokenizer: Tokenizer | None = None, **bm25: Unpack[BM25Arguments]
    ) -> None:
        options = BM25Options(**bm25)
        self._state = PassageSnapshot(sparse=SparseSnapshot.empty(options, tokenizer))
        self._make_locks()

    def _make_locks(self) -> None:
        self._writing = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for ``copy`` and ``pickle``, neither of which changes it."""
        with self._writing:
            kept = self.__dict__ | {"_state": self._state.apart()}
        locks = type(threading.Lock())
        return {name: value for name, value in kept.items() if not isinstance(value, locks)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._make_locks()

    @classmethod
    def from_texts(
        cls,
        texts: Iterable[str],
        *,
        tokenizer: Tokenizer | None = None,
        **bm25: Unpack[BM25Arguments],
    ) -> PassageIndex:
        """Build an index of texts; the id of each is its position, as ``"0"``.

        Raises
        ------
        ValueError
            If an option is out of range, `texts` is a single string, or one is not a string.
        """
        check_several(texts, "texts")
        index = PassageIndex(tokenizer=tokenizer, **bm25)
        index.add([Passage(str(at), text) for at, text in enumerate(texts)])
        return index

    def __len__(self) -> int:
        return self._state.sparse.alive_count

    def __contains__(self, id: object) -> bool:
        return self._state.row(id) is not None

    def __repr__(self) -> str:
        variant = self._state.sparse.options.variant
        return f"{type(self).__name__}({len(self)} passages, variant={variant!r})"

    @property
    def tokenizer(self) -> Tokenizer | None:
        """The custom tokenizer; None: the default."""
        return self._state.sparse.vocabulary.custom

    @property
    def passages(self) -> list[Passage]:
        """The passages, in insertion order."""
        state = self._state
        return [state.passages[row] for row in state.alive_rows]

    @property
    def ids(self) -> list[str]:
        """The ids, in insertion order."""
        return [passage.id for passage in self.passages]

    @property
    def sources(self) -> dict[Any, PassageNeighbours]:
        """The documents that were read for their neighbours since the last change."""
        return self._state.sources

    def documents(
        self, key: str, names: Sequence[Any], *, where: Where = None
    ) -> tuple[list[Passage], Vectors | None]:
        """Return the passages whose metadata have one of `names` under `key`, and their vectors.

        Raises
        ------
        ValueError
            If the filter is malformed.
        """
        state, passes = self._state, predicate(where)
        allowed = state.allowed({key: [*names]})
        assert allowed is not None  # there is a filter
        rows = [r for r in allowed.nonzero()[0].tolist() if passes(state.passages[r].metadata)]
        vectors = None if state.vectors is None else state.vectors[rows]
        return [state.passages[row] for row in rows], vectors

    def count(self) -> int:
        """Return the number of passages."""
        return len(self)

    def get(self, ids: Iterable[str]) -> list[Passage]:
        """Return the passages of `ids`, in that order; unknown ids are left out.

        Raises
        ------
        ValueError
            If `ids` is a single string.
        """
        check_several(ids)
        state = self._state
        rows = map(state.row, ids)
        return [state.passages[row] for row in rows if row is not None]

    def with_text(self, text: str) -> list[Passage]:
        """Return the passages of a text, in insertion order."""
        state = self._state
        found = state.columns.rows_of_text(text, state.passages, state.size)
        alive = state.sparse.alive
        return [state.passages[row] for row in found if alive is None or alive[row]]

    def add(self, passages: Sequence[Passage]) -> list[str]:
        """Add passages, or replace those whose id is there already; all of them or none.

        Parameters
        ----------
        passages
            The passages; ids unique among them. A replaced one moves to the end. Their metadata are
            not copied and must not change later: add a new passage under the same id instead.

        Returns
        -------
        list of str
            The ids.

        Raises
        ------
        ValueError
            If an id occurs twice or is empty, an id or text is not a string, or metadata are not a
            mapping.
        """
        passages = list(passages)
        check_passages(passages)
        with self._writing:
            self._publish(self._state.extended(passages))
        return [passage.id for passage in passages]

    def delete(self, ids: Iterable[str]) -> list[str]:
        """Delete passages and return the ids that were there; unknown ids are ignored.

        Raises
        ------
        ValueError
            If `ids` is a single string.
        """
        check_several(ids)
        with self._writing:
            state = self._state
            rows = {id: row for id in ids if (row := state.row(id)) is not None}
            self._publish(state.without([*rows.values()]))
        return list(rows)

    def compact(self) -> None:
        """Free the memory of deleted passages; automatic once they are the majority."""
        with self._writing:
            self._state = self._state.compacted()

    def _publish(self, state: PassageSnapshot) -> None:
        self._state = state.compacted() if state.sparse.mostly_deleted else state

    def best(self, text: str, k: int, *, where: Where = None) -> list[tuple[Passage, float]]:
        """Return the best `k` passages by BM25 and their scores, best first.

        Only passages that share a token with the text are found; equal ones in insertion order.

        Raises
        ------
        ValueError
            If `k` is below 1, the text is not a string, or the filter is malformed.
        """
        k, state = check_count(k, "k"), self._state
        query, allowed = SparseQuery(state.sparse, text), state.allowed(where)
        return state.ranked(*sparse_top_k([query], k, allowed))

    def scores(self, text: str, passages: Sequence[Passage]) -> Scores:
        """Return the BM25 scores of any passages, shape (len(passages),), higher is better.

        One that is not here by id and text, as after a postprocessor that merges passages, is
        scored by its text with the statistics of those that are.
        """
        state = self._state
        query = SparseQuery(state.sparse, text)
        rows = [state.row(passage.id) for passage in passages]
        here = np.array(
            [
                row is not None and state.passages[row].text == passage.text
                for row, passage in zip(rows, passages, strict=True)
            ],
            np.bool_,
        )
        scores = np.empty(len(passages))
        scores[here] = query.scores_of_rows(np.array([*compress(rows, here)], np.intp))
        scores[~here] = query.scores_of_texts([p.text for p in compress(passages, ~here)])
        return scores


def check_passages(passages: Sequence[Passage]) -> None:
    """Raise ValueError if an id is empty or repeated, or a value of a passage is of a wrong type.

    An adapter calls it before embedding; `add` of an index calls it in any case.
    """
    seen: dict[str, int] = {}
    for position, passage in enumerate(passages):
        id = passage.id
        if not isinstance(id, str) or not id:
            raise ValueError(f"the id of passage {position} must be a non-empty string, got {id!r}")
        if seen.setdefault(id, position) != position:
            raise ValueError(f"id {id!r} occurs twice, at positions {seen[id]} and {position}")
        if not isinstance(passage.text, str):
            raise ValueError(f"the text of passage {id!r} must be a string, got {passage.text!r}")
        if not isinstance(passage.metadata, (dict, Mapping)):  # a dict is told faster
            raise ValueError(
                f"the metadata of passage {id!r} must be a mapping, got {passage.metadata!r}"
            )

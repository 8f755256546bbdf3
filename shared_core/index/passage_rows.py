"""Passages by row, and which of them is the same as a given passage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, time
from typing import Any
from uuid import UUID

from shared_core.types import Passage


class PassageRows:
    """Passages row by row, found by id or by content; for one thread at a time.

    Two passages are the same if their ids are equal. Where one of them has no id, which is
    ``""``, they are the same if `content_of` both is.

    Parameters
    ----------
    passages, contents
        Row to passage and to its `content_of`; not copied, and appended to.
    rows
        Rows that can be found; the others have been deleted.

    Attributes
    ----------
    passages
        Row to passage, the deleted ones too.
    """

    def __init__(self, passages: list[Passage], contents: list[bytes], rows: Iterable[int]) -> None:
        self.passages = passages
        self._contents = contents
        self._by_id: dict[str, int] = {}
        self._by_content: dict[bytes, list[int]] = {}
        self._find(rows)

    def __len__(self) -> int:
        return len(self.passages)

    def get(self, id_: str) -> int | None:
        """Return the row of the passage with that id, if there is one."""
        return self._by_id.get(id_)

    def row_of(self, passage: Passage) -> int | None:
        """Return the row of the same passage, if there is one."""
        row = self._by_id.get(passage.id)
        if row is not None:
            return row
        for row in self._by_content.get(content_of(passage), ()):
            if not (passage.id and self.passages[row].id):
                return row
        return None

    def identified(self, passage: Passage) -> tuple[str | bytes, Passage]:
        """Return a key for the passage, and the passage with the stored id if it had none.

        The key is the id of the same passage here, or else the passage's own, or a digest of its
        content; never a row, which a later change may give to another passage.
        """
        if passage.id in self._by_id:  # as most are
            return passage.id, passage
        row = self.row_of(passage)
        if row is None:
            return passage.id or content_of(passage), passage
        known = self.passages[row].id
        key = known or self._contents[row]
        return key, passage if passage.id or not known else replace(passage, id=known)

    def append(self, passages: Sequence[Passage], contents: Sequence[bytes]) -> None:
        """Append passages, whose ids are not there yet."""
        first = len(self.passages)
        self.passages += passages
        self._contents += contents
        self._find(range(first, len(self.passages)))

    def remove(self, rows: Iterable[int]) -> None:
        """Stop finding these rows; the others keep their numbers."""
        for row in rows:
            self._by_id.pop(self.passages[row].id, None)
            same = self._by_content[self._contents[row]]
            same.remove(row)
            if not same:
                del self._by_content[self._contents[row]]

    def first(self, size: int, rows: Iterable[int]) -> PassageRows:
        """Return an earlier state: the first `size` passages, of which `rows` can be found."""
        return PassageRows(self.passages[:size], self._contents[:size], rows)

    def only(self, rows: Sequence[int]) -> PassageRows:
        """Return the passages of these rows, renumbered in order."""
        passages, contents = self.passages, self._contents
        return PassageRows(
            [passages[row] for row in rows], [contents[row] for row in rows], range(len(rows))
        )

    def _find(self, rows: Iterable[int]) -> None:
        for row in rows:
            if id_ := self.passages[row].id:
                self._by_id[id_] = row
            self._by_content.setdefault(self._contents[row], []).append(row)


def check_distinct(passages: Sequence[Passage]) -> None:
    """Raise ValueError if two passages have the same id."""
    seen: set[str] = set()
    for passage in passages:
        if passage.id and passage.id in seen:
            raise ValueError(f"two documents have the id {passage.id!r}")
        seen.add(passage.id)


def content_of(passage: Passage) -> bytes:
    """Return a digest of text and metadata, by which passages without an id are compared.

    It is the same for metadata as vector stores return them: some leave out None or add it, have
    floats in place of integers, or texts in place of dates and UUIDs.
    """
    metadata = _as_stored(passage.metadata)
    try:
        dumped = json.dumps([passage.text, metadata], sort_keys=True, default=_text)
    except (TypeError, ValueError):  # keys that JSON refuses or cannot sort, or a cycle
        dumped = repr((passage.text, metadata))
    return hashlib.sha256(dumped.encode("utf-8", "surrogatepass")).digest()


def _as_stored(metadata: Mapping[Any, Any]) -> dict[Any, Any]:
    return {
        key: int(value) if type(value) is float and value.is_integer() else value
        for key, value in metadata.items()
        if value is not None
    }


def _text(value: object) -> str:
    if isinstance(value, date | time):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else repr(value)

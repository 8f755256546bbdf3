"""Where a passage is in its document, according to its metadata."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from shared_core.neighbour_spans.chunks import Chunk
from shared_core.neighbour_spans.links import Links
from shared_core.types import Passage

_WHOLE = re.compile(r"[+-]?[0-9]+")


class ChunkReader(Protocol):
    """Reads passages as chunks of documents."""

    def chunk(self, passage: Passage) -> Chunk:
        """Return the passage as a chunk, with the passage as its source.

        It has a number, or at least a start, if the place of the passage is known. With a document
        alone it lies after the passage that came before it, if the texts bear that out; otherwise
        it is a document on its own.
        """
        ...

    def links(self, passage: Passage) -> Links | None:
        """Return the neighbours that a passage names; None if it has no links.

        A passage without links, in either direction, is placed by its number or its start.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ChunkKeys:
    """Metadata keys of the place of a chunk; a `ChunkReader`.

    A chunk is placed by its document and number. Without a number that is an integer, it is placed
    by its start in the text that was split, which LangChain's splitters write with
    ``add_start_index=True``. They lose track of some chunks: those lie after the chunk that came
    before them, if the texts bear that out.

    Attributes
    ----------
    document
        Id of the document.
    number
        Place of the chunk in its document: an integer, also as a float or as digits, as returned
        by some stores.
    start
        Offset of its first character. Negative if the splitter did not find it.
    source
        Used as the document if that key is absent.
    page
        Page, for loaders that return a text per page: offsets then count within pages. Ignored if
        there are numbers.
    heading
        Headings above it, outermost first; absent keys are skipped.
    """

    document: str = "doc_id"
    number: str = "chunk_id"
    start: str = "start_index"
    source: str = "source"
    page: str = "page"
    heading: tuple[str, ...] = (
        "heading",
        "header_path",
        *(f"Header {level}" for level in range(1, 7)),
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "heading", tuple(self.heading))

    def chunk(self, passage: Passage) -> Chunk:
        """Return the passage as a chunk; without an id it is named by its place.

        Raises
        ------
        ValueError
            If the number is not an integer and there is no start, or the start is not an integer.
        """
        metadata = passage.metadata
        start, heading = _read_start(metadata, self.start, passage), self.heading_of(metadata)
        placed = self.numbered(passage, otherwise=start is not None)
        document = self._document(metadata)
        if placed is not None:
            document, number = placed
            place = f"{document}:{number}"
        elif document is not None and metadata.get(self.start) is not None:
            number, page = None, metadata.get(self.page)
            document = document if page is None else f"{document}#{page}"
            # If a splitter works on sections, each of them has a chunk that starts at 0.
            section = " > ".join((document, *(heading or ())))
            end = _digest(passage.text) if start is None else start + len(passage.text)
            place = f"{section}@{'?' if start is None else start}-{end}"
        else:
            return _standalone_chunk(passage)
        return Chunk(passage.id or place, passage.text, document, number, start, heading, passage)

    def numbered(self, passage: Passage, *, otherwise: bool) -> tuple[str, int] | None:
        """Return the document and the number in the metadata; None if one is missing.

        Parameters
        ----------
        passage
            The passage.
        otherwise
            Whether its place is known otherwise: a number that is not an integer is then ignored.

        Raises
        ------
        ValueError
            If the number is not an integer, and its place is not known otherwise.
        """
        given = passage.metadata.get(self.number)
        if given is None:
            return None
        number, document = _parse_integer(given), self._document(passage.metadata)
        if document is None:
            return None
        if number is None and not otherwise:
            raise ValueError(
                f"metadata[{self.number!r}] of {_describe(passage)} must be an integer, got "
                f"{given!r}: number the chunks of each document in order, or name the key of the "
                "number with ChunkKeys(number=...)"
            )
        return None if number is None else (document, number)

    def links(self, passage: Passage) -> None:
        """Return None: places are given by numbers and starts."""

    def heading_of(self, metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the headings in the metadata; None if there are none."""
        return tuple([str(metadata[key]) for key in self.heading if key in metadata]) or None

    def _document(self, metadata: Mapping[str, Any]) -> str | None:
        document = metadata.get(self.document)
        if document is None:
            document = metadata.get(self.source)
        return None if document is None else str(document)


def _standalone_chunk(passage: Passage) -> Chunk:
    """Return a passage without a place as a chunk that is a whole document."""
    name = passage.id
    if not name:
        name = "#" + _digest(repr((passage.text, dict(passage.metadata))))
    return Chunk(name, passage.text, name, source=passage)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _describe(passage: Passage) -> str:
    return repr(passage.id or passage.text[:40])


def _read_start(metadata: Mapping[str, Any], key: str, passage: Passage) -> int | None:
    given = metadata.get(key)
    if given is None:
        return None
    start = _parse_integer(given)
    if start is None:
        raise ValueError(
            f"metadata[{key!r}] of {_describe(passage)} must be an integer, got "
            f"{given!r}: name the key of the offset with ChunkKeys(start=...)"
        )
    return start if start >= 0 else None


def _parse_integer(value: object) -> int | None:
    """Return the integer in a value, also as a float or as digits; None if it is not one."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return int(value) if _WHOLE.fullmatch(value) else None
    try:
        whole = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return None
    return whole if whole == value else None

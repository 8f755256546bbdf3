"""Where a passage is in its document, according to its metadata."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from shared_core.neighbour_spans.chunks import Chunk
from shared_core.types import Passage

SOURCE = "llamaindex_ref_doc_id"
"""Metadata key of the source document of what LlamaIndex's adapter saved."""

WITHOUT_SOURCE = "None"
"""What is there, as in LlamaIndex's stores, for a node without a source document."""

NUMBER_THEM = (
    "number the chunks of each document in their metadata, see ChunkKeys (LangChain's splitters "
    "do, with add_start_index=True)"
)
"""What to do where passages do not say where they stand."""

_WHOLE = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class Links:
    """The neighbours that a passage names.

    Attributes
    ----------
    before, after
        Ids of the passages before and after it; None where it names none.
    """

    before: str | None = None
    after: str | None = None

    @property
    def any(self) -> bool:
        """Whether it names a neighbour."""
        return self.before is not None or self.after is not None

    def id(self, step: int) -> str | None:
        """Return the id of the passage after it (`step` 1) or before it (-1)."""
        return self.after if step > 0 else self.before


class ChunkReader(Protocol):
    """Reads passages as chunks of documents; hashable, and equal where it reads alike."""

    def chunk(self, passage: Passage) -> Chunk:
        """Return the passage as a chunk, with the passage as its source.

        It has a number, or at least a start, if the place of the passage is known. With a document
        alone it follows the passage that came before it, if it overlaps that one.
        """
        ...

    def links(self, passage: Passage) -> Links | None:
        """Return the neighbours that a passage names; None if it has no links.

        A passage without links, in either direction, is placed by its number or its start.
        """
        ...

    def document_of(self, passage: Passage) -> tuple[str, str] | None:
        """Return the key and value by which the metadata name the document of a passage.

        All passages of the document have them, so that a database can read it. None: they do not
        name it.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ChunkKeys:
    """Metadata keys of the place of a chunk; a `ChunkReader`.

    A chunk is placed by its document and number. Without a number that is an integer, it is placed
    by its start in the text that was split, which LangChain's splitters write with
    ``add_start_index=True``. They lose track of some chunks: those follow the chunk that came
    before them, if they overlap it.

    Attributes
    ----------
    document
        Id of the document.
    number
        Place of the chunk in its document: an integer, also as a float or as digits, as returned
        by some stores. Anything else counts as unknown.
    start
        Offset of its first character, an integer. Negative if the splitter did not find it.
    source
        Used as the document if that key is absent; then the source document of a LlamaIndex node.
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
        """Return the passage as a chunk; without an id it is named by its place and text."""
        metadata, document = passage.metadata, self._document(passage)
        number, start = (_parse_integer(metadata.get(key)) for key in (self.number, self.start))
        heading = self.heading_of(metadata)
        if start is not None and start < 0:
            start = None
        if document is not None and number is not None:
            place = f"{document}:{number}"
        elif document is not None and metadata.get(self.start) is not None:
            if (page := metadata.get(self.page)) is not None:
                document = f"{document}#{page}"
            # If a splitter works on sections, each of them has a chunk that starts at 0.
            place = f"{' > '.join((document, *(heading or ())))}@{'?' if start is None else start}"
        else:
            name = passage.id or "#" + _digest(repr((passage.text, dict(metadata))))
            return Chunk(name, passage.text, name, source=passage)
        id = passage.id or f"{place}#{_digest(passage.text)}"
        return Chunk(id, passage.text, document, number, start, heading, passage)

    def numbered(self, passage: Passage) -> tuple[str, int] | None:
        """Return the document and the number in the metadata; None if one is missing."""
        document = self._document(passage)
        number = _parse_integer(passage.metadata.get(self.number))
        return None if number is None or document is None else (document, number)

    def links(self, passage: Passage) -> None:
        """Return None: places are given by numbers and starts."""

    def document_of(self, passage: Passage) -> tuple[str, str] | None:
        """Return the key and value by which the metadata name the document of a passage."""
        for key in (self.document, self.source, SOURCE):
            if (document := passage.metadata.get(key)) is not None and document != WITHOUT_SOURCE:
                return key, str(document)
        return None

    def heading_of(self, metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the headings in the metadata; None if there are none."""
        return tuple([str(metadata[key]) for key in self.heading if key in metadata]) or None

    def _document(self, passage: Passage) -> str | None:
        named = self.document_of(passage)
        return None if named is None else named[1]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


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

"""Where a passage is in its document, according to its metadata."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from shared_core.neighbour_spans.chunks import Chunk, End
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
    edge
        What lies on a side where no passage is known: ``"document"``, the edge of the document,
        or ``"missing"`` if it is not known where the document ends.
    """

    before: str | None = None
    after: str | None = None
    edge: End = "document"

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
        by some stores.
    start
        Offset of its first character. Negative if the splitter did not find it.
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
        """Return the passage as a chunk; without an id it is named by its place and text.

        Raises
        ------
        ValueError
            If the number is not an integer and there is no start, or the start is not an integer.
        """
        metadata = passage.metadata
        start, heading = self._start(passage), self.heading_of(metadata)
        document, number = self._document(passage), None
        if placed := self.numbered(passage, otherwise=start is not None):
            document, number = placed
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
        given, document = passage.metadata.get(self.number), self._document(passage)
        if given is None or document is None:
            return None
        number = _parse_integer(given)
        if number is None and not otherwise:
            raise ValueError(
                f"metadata[{self.number!r}] of {_describe(passage)} must be an integer, got "
                f"{given!r}: number the chunks of each document in order, or name the key of the "
                "number with ChunkKeys(number=...)"
            )
        return None if number is None else (document, number)

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

    def _start(self, passage: Passage) -> int | None:
        given = passage.metadata.get(self.start)
        start = _parse_integer(given)
        if start is None and given is not None:
            raise ValueError(
                f"metadata[{self.start!r}] of {_describe(passage)} must be an integer, got "
                f"{given!r}: name the key of the offset with ChunkKeys(start=...)"
            )
        return None if start is None or start < 0 else start

    def _document(self, passage: Passage) -> str | None:
        named = self.document_of(passage)
        return None if named is None else named[1]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def _describe(passage: Passage) -> str:
    return repr(passage.id or passage.text[:40])


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

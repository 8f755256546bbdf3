"""Where a passage stands in its document, as its metadata tell."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from shared_core.expansion import Chunk
from shared_core.index.neighbours.links import Links
from shared_core.types import Passage

_WHOLE = re.compile(r"[+-]?[0-9]+")


class ChunkReader(Protocol):
    """Tells of a passage which chunk of which document it is."""

    def chunk(self, passage: Passage) -> Chunk:
        """Return the passage as a chunk, with the passage as its source.

        It has a number, or at least a start, if the passage tells its place; otherwise it stands
        for itself.
        """
        ...

    def links(self, passage: Passage) -> Links | None:
        """Return which passages it names as its neighbours; None if it knows no links.

        One that names none, and that none names, is placed by its number or its start.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ChunkKeys:
    """Metadata keys that tell the place of a chunk; a `ChunkReader`.

    A chunk is placed by its document and number. Where there is no number, or none that is an
    integer, it is placed by where it starts in the text that was split, as the splitters of
    LangChain note it with ``add_start_index=True``.

    Attributes
    ----------
    document
        Id of the document.
    number
        Place of the chunk in its document: an integer, also as a float or as digits, as some
        stores give it back.
    start
        Offset of its first character. A negative one says that the splitter did not find it.
    source
        Stands for the document where that key is absent.
    page
        What was split where a loader gives a text a page, so that offsets count within pages.
        Plays no part where there are numbers.
    heading
        Headings it stands under, outermost first; those that are present.
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
        """Return the passage as a chunk; one without an id is named by its place.

        Raises
        ------
        ValueError
            If the number is no integer and there is no start, or the start is no integer.
        """
        metadata = passage.metadata
        start, heading = _start(metadata, self.start, passage), self.heading_of(metadata)
        placed = self.numbered(passage, otherwise=start is not None)
        document = self._document(metadata)
        if placed is not None:
            document, number = placed
            place = f"{document}:{number}"
        elif document is not None and start is not None:
            number, page = None, metadata.get(self.page)
            document = document if page is None else f"{document}#{page}"
            # Where a splitter works on sections, each of them has a chunk that starts at 0.
            place = f"{' > '.join((document, *(heading or ())))}@{start}"
        else:
            return _alone(passage)
        return Chunk(passage.id or place, passage.text, document, number, start, heading, passage)

    def numbered(self, passage: Passage, *, otherwise: bool) -> tuple[str, int] | None:
        """Return the document and the number that the metadata tell; None where they do not.

        Parameters
        ----------
        passage
            The passage.
        otherwise
            Whether its place is known otherwise, so that a number that is none may be ignored.

        Raises
        ------
        ValueError
            If the number is no integer, and its place is not known otherwise.
        """
        given = passage.metadata.get(self.number)
        if given is None:
            return None
        number, document = _whole(given), self._document(passage.metadata)
        if document is None:
            return None
        if number is None and not otherwise:
            raise ValueError(
                f"metadata[{self.number!r}] of {_name(passage)} must be an integer, got {given!r}: "
                "number the chunks of a document in their order, or name the key that does with "
                "ChunkKeys(number=...)"
            )
        return None if number is None else (document, number)

    def links(self, passage: Passage) -> None:
        """Return None: numbers and starts tell."""

    def heading_of(self, metadata: Mapping[str, Any]) -> tuple[str, ...] | None:
        """Return the headings that metadata name; None if they name none."""
        return tuple([str(metadata[key]) for key in self.heading if key in metadata]) or None

    def _document(self, metadata: Mapping[str, Any]) -> str | None:
        document = metadata.get(self.document)
        if document is None:
            document = metadata.get(self.source)
        return None if document is None else str(document)


def _alone(passage: Passage) -> Chunk:
    """Return a passage that tells no place as a chunk that is a document by itself."""
    name = passage.id
    if not name:
        said = repr((passage.text, dict(passage.metadata)))
        name = "#" + hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return Chunk(name, passage.text, name, source=passage)


def _name(passage: Passage) -> str:
    return repr(passage.id or passage.text[:40])


def _start(metadata: Mapping[str, Any], key: str, passage: Passage) -> int | None:
    given = metadata.get(key)
    if given is None:
        return None
    start = _whole(given)
    if start is None:
        raise ValueError(
            f"metadata[{key!r}] of {_name(passage)} must be an integer, got "
            f"{given!r}: name the key of the offset with ChunkKeys(start=...)"
        )
    return start if start >= 0 else None


def _whole(value: object) -> int | None:
    """Return an integer that a value is, whatever a store has made of it; None if it is none."""
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

"""Links between passages: which ones a passage names as the previous and the next one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared_core.neighbour_spans.chunks import End


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


_NO_LINKS = Links()


class LinkTable:
    """The links of all passages, in both directions.

    Some splitters write one direction only: LlamaIndex names the previous chunk and not the next
    one wherever one splitter works on the chunks of another.
    """

    def __init__(self) -> None:
        self._links: dict[int, Links] = {}
        self._naming: dict[tuple[str, int], list[int]] = {}

    def put(self, row: int, links: Links) -> None:
        """Add the links of the passage in a row."""
        self._links[row] = links
        for step in (-1, 1):
            if (id := links.id(step)) is not None:
                self._naming.setdefault((id, -step), []).append(row)

    def of(self, row: int) -> Links:
        """Return the links of the passage in a row."""
        return self._links.get(row, _NO_LINKS)

    def naming(self, id: str, step: int) -> Sequence[int]:
        """Return the rows that name a passage as their neighbour.

        Parameters
        ----------
        id
            Id of the passage.
        step
            1: rows that come after it, according to their own links; -1: before it.
        """
        return self._naming.get((id, step), ())

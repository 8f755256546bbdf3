"""Links between passages: which one each of them names as the one before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shared_core.expansion import End


@dataclass(frozen=True, slots=True)
class Links:
    """What a passage says of its neighbours.

    Attributes
    ----------
    before, after
        Ids of the passages before and after it; None where it names none.
    edge
        What lies on a side where no passage is known: ``"document"``, the edge of the document,
        or ``"missing"`` if it is not known where the document ends.
    """

    before: str | None
    after: str | None
    edge: End = "document"

    @property
    def any(self) -> bool:
        """Whether it names a neighbour."""
        return self.before is not None or self.after is not None

    def id(self, step: int) -> str | None:
        """Return the id of the passage after it (`step` 1) or before it (-1)."""
        return self.after if step > 0 else self.before


class LinkTable:
    """The links of all passages, in both directions.

    Some splitters write one direction only: LlamaIndex names the chunk before and not the one
    after wherever one splitter works on the chunks of another.
    """

    def __init__(self) -> None:
        self._links: dict[int, Links] = {}
        self._naming: dict[tuple[str, int], list[int]] = {}

    def put(self, row: int, links: Links) -> None:
        """Take in the links of the passage in a row."""
        self._links[row] = links
        for step in (-1, 1):
            if (id := links.id(step)) is not None:
                self._naming.setdefault((id, -step), []).append(row)

    def named(self, row: int, step: int) -> str | None:
        """Return the id that a row names as its neighbour; None if it names none there."""
        links = self._links.get(row)
        return None if links is None else links.id(step)

    def naming(self, id: str, step: int) -> Sequence[int]:
        """Return the rows that name a passage from the other side: it is before or after them.

        Parameters
        ----------
        id
            Id of the passage.
        step
            1: rows that come after it by their own account; -1: rows that come before it.
        """
        return self._naming.get((id, step), ())

    def edge(self, row: int) -> End:
        """Return what lies on a side of a row where no passage is known."""
        links = self._links.get(row)
        return "document" if links is None else links.edge

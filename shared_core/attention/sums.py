"""Sums of attention rows, by group of rows and set of layers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from shared_core._extras import require
from shared_core.attention.rows import LayerCall
from shared_core.errors import GenerationError

if TYPE_CHECKING:
    from torch import Tensor

_AT_ONCE = 2**17
"""Most logits that are collected, or processed, together: 512 KiB in float32."""


class Row(NamedTuple):
    """One requested attention row.

    Attributes
    ----------
    group
        Name of the group over which it is averaged.
    sequence
        Which sequence of the batch.
    column
        Which token attends: its index in the sequence, padding on the left included.
    """

    group: str
    sequence: int
    column: int


class _Alike(NamedTuple):
    """What layers must have in common for their rows to be processed together."""

    shape: tuple[int, ...]
    begin: int
    end: int
    first: int
    kept: int
    device: Any


_Waiting: TypeAlias = dict[_Alike, list[tuple[int, "Tensor"]]]


class RowSums:
    """Running sums of attention rows over the heads, the layers of each set and the passes.

    The layers of one pass are processed together where possible, since for one new token the calls
    take longer than the arithmetic. Kept between passes are a float for each set, sequence, group
    and column, and for each set, sequence and column one of the last token's row.

    Parameters
    ----------
    groups
        Names of the groups of rows.
    layers
        Sets of layers by name: indices.
    batch, width
        Number of sequences, and of columns whose sums are kept, from the first.
    device
        Where the sums are.
    """

    def __init__(
        self,
        groups: Sequence[str],
        layers: Mapping[str, Collection[int]],
        *,
        batch: int,
        width: int,
        device: Any,
    ) -> None:
        torch: Any = require("torch", extra="models")
        self._groups = list(groups)
        self._sets = list(layers)
        # said, since loading a model in another thread changes the default for that long
        kind = {"dtype": torch.float32, "device": device}
        self._sums = torch.zeros(len(layers), batch, len(groups), width, **kind)
        self._last = torch.zeros(len(layers), batch, width, **kind)
        self._last_column = -1
        everything = range(
            1 + max((max(chosen, default=-1) for chosen in layers.values()), default=-1)
        )
        belongs = [[layer in chosen for layer in everything] for chosen in layers.values()]
        self._belongs = torch.tensor(belongs, dtype=torch.bool, device=device)
        self._start = self._new = 0
        self._at: Tensor | None = None
        self._marks: Tensor | None = None
        self._waiting: _Waiting = {}
        self._held = 0

    def of(self, group: str, layers: str) -> Tensor:
        """Return the sums of a group over a set of layers, float32, shape (batch, width)."""
        self._settle()
        return self._sums[self._sets.index(layers), :, self._groups.index(group)]

    def ask(self, rows: Sequence[Row], start: int, new: int) -> None:
        """Begin a forward pass over `new` tokens from column `start`, with the requested rows.

        The row at the last token of the previous pass may be among them if it was requested then.
        """
        torch: Any = require("torch", extra="models")
        self._settle()
        for group, sequence, column in rows:
            if column < start:
                assert column == self._last_column
                self._sums[:, sequence, self._groups.index(group)] += self._last[:, sequence]
        now = [row for row in rows if row.column >= start]
        columns = {column: at for at, column in enumerate(sorted({row.column for row in now}))}
        shape = self._sums.shape[1], len(self._groups), len(columns)
        marks = torch.zeros(shape, dtype=torch.float32)
        for group, sequence, column in now:
            marks[sequence, self._groups.index(group), columns[column]] = 1.0
        self._marks = marks.to(self._sums.device)
        self._start, self._new = start, new
        self._at = torch.tensor([column - start for column in columns], device=self._sums.device)
        self._last_column = start + new - 1 if start + new - 1 in columns else -1
        self._last.zero_()

    def add(self, layer: int, call: LayerCall) -> None:
        """Collect the rows of one layer.

        Raises
        ------
        GenerationError
            If the layer has not seen all tokens of the pass.
        """
        assert self._at is not None
        if (seen := int(call.query.shape[2])) != self._new:
            raise GenerationError(
                f"layer {layer} attends from {seen} of {self._new} tokens, so its rows are not "
                "where they are read; let the model compute every token in every layer"
            )
        first = call.first_key(self._start)
        kept = max(0, min(int(call.key.shape[2]), self._last.shape[-1] - first))
        batch, heads, _, _ = call.query.shape
        rows_at_once = max(1, _AT_ONCE // (batch * heads * int(call.key.shape[2])))
        at = self._at.to(call.query.device)
        for begin in range(0, len(at), rows_at_once):
            end = min(begin + rows_at_once, len(at))
            logits = call.logits(at[begin:end], self._start)
            if self._held + logits.numel() > _AT_ONCE:
                self._settle()
            alike = _Alike(tuple(logits.shape), begin, end, first, kept, logits.device)
            self._waiting.setdefault(alike, []).append((layer, logits))
            self._held += logits.numel()

    def _settle(self) -> None:
        """Add the collected rows to the sums."""
        torch: Any = require("torch", extra="models")
        for alike, waiting in self._waiting.items():
            layers = [layer for layer, _ in waiting]
            logits = torch.stack([each for _, each in waiting])
            weights = torch.softmax(logits, dim=-1).mean(dim=2)[..., : alike.kept]
            belongs = self._belongs[:, layers, None, None, None]
            # not a product with 0, which would carry a NaN of one layer into the other sets
            by_set = torch.where(belongs, weights.to(belongs.device), 0.0).sum(1)
            assert self._marks is not None
            columns = slice(alike.first, alike.first + alike.kept)
            self._sums[..., columns] += self._marks[..., alike.begin : alike.end] @ by_set
            if self._last_column >= 0 and alike.end == self._marks.shape[-1]:
                self._last[..., columns] += by_set[:, :, -1]
        self._waiting, self._held = {}, 0

"""Records chosen attention rows of a model, reduced at once to a score for each token."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from shared_core._extras import require
from shared_core.arrays import Scores
from shared_core.attention.hooks import layers_of, listening, places_of
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


Choose: TypeAlias = Callable[[int, "Tensor"], Sequence[Row]]
"""Takes the first column and the tokens, shape (batch, new), of a pass; returns rows to record.

Every column is shown once, in order, before the model reads it. Rows of a late group may be those
of the column before; rows of groups that are not recorded are passed over.
"""


class _Alike(NamedTuple):
    """What layers must have in common for their rows to be processed together."""

    shape: tuple[int, ...]
    begin: int
    end: int
    first: int
    kept: int
    device: Any


class AttentionRecorder:
    """Running sums of attention rows; `recording` makes one and connects it.

    The layers of one pass are processed together where possible, since for one new token the calls
    take longer than the arithmetic. Of what grows with the prompt, only a float for each group,
    layer of the group, sequence and column is held, and as many again for late groups.

    Attributes
    ----------
    counts
        Number of rows that have passed, of each group, shape (batch,).
    """

    def __init__(
        self,
        model: Any,
        choose: Choose,
        *,
        layers: Mapping[str, Collection[int]],
        width: int,
        late: Collection[str] = (),
    ) -> None:
        self.counts: dict[str, npt.NDArray[np.intp]] = {}
        self._name = type(model).__name__
        self._index = layers_of(model)
        self._choose = choose
        self._layers = {group: sorted(chosen) for group, chosen in layers.items()}
        self._width = width
        self._late = late
        self._sums: dict[str, Tensor] = {}
        self._latest: dict[str, Tensor] = {}
        self._shown = self._start = self._new = 0
        self._at: Tensor | None = None
        self._marks: dict[str, Tensor] = {}
        self._now: set[int] = set()
        self._met: set[int] = set()
        self._waiting: dict[_Alike, list[tuple[int, Tensor]]] = {}
        self._held = 0

    def scores(self, group: str, layers: Collection[int], sequence: int) -> Scores:
        """Return the mean attention of a group's rows to each token (eq. 1); higher is more.

        ``s_j = 1/m sum_i 1/H sum_h 1/|L_s| sum_l a_ij^lh`` over the m rows i of the group, the H
        heads h and those layers l of `layers` that have attention.

        Parameters
        ----------
        group
            Name of a group.
        layers
            Indices; among those in which the group is recorded.
        sequence
            Which sequence of the batch.

        Returns
        -------
        Scores
            In [0, 1], shape (width,); 0 at columns that no row sees, and where there is no row.

        Raises
        ------
        GenerationError
            If none of the layers has shown its attention.
        """
        met = self._met.intersection(layers)
        if not met:
            raise unreadable(self._name)
        torch: Any = require("torch", extra="models")
        with torch.inference_mode():
            self._settle()
            at = [self._layers[group].index(layer) for layer in met]
            sums = self._sums[group][at, sequence].cpu().numpy().astype(np.float64)
        means: Scores = sums.mean(axis=0) / max(1, int(self.counts[group][sequence]))
        return means

    def begin(self, start: int, tokens: Tensor) -> None:
        """Register a forward pass over `tokens`, shape (batch, new), from column `start`.

        Columns that passed before, as they do without a cache, are not shown again.

        Raises
        ------
        GenerationError
            If rows were requested in the previous pass, and none came.
        """
        if self._now and not self._met:
            raise unreadable(self._name)
        self._settle()
        batch, new = tokens.shape
        if not self.counts:
            self._allocate(batch, tokens.device)
        first = max(start, self._shown)
        self._shown = max(first, start + new)
        chosen = self._choose(first, tokens[:, first - start :])
        rows = [row for row in chosen if row.group in self._layers]
        for group, sequence, column in rows:
            self.counts[group][sequence] += 1
            if column < start:
                self._sums[group][:, sequence] += self._latest[group][:, sequence]
        self._start, self._new = start, new
        self._ask([row for row in rows if row.column >= start], tokens.device)

    def hear(self, call: Mapping[str, Any]) -> None:
        """Add the rows of one layer's attention call, given by the names of its arguments.

        Raises
        ------
        GenerationError
            If the rows of such a call cannot be read.
        """
        layer = self._index.get(call["module"])
        if layer in self._now:
            self._now.remove(layer)
            self._collect(layer, LayerCall.of(call))
            self._met.add(layer)

    def _allocate(self, batch: int, device: Any) -> None:
        torch: Any = require("torch", extra="models")
        for group, layers in self._layers.items():
            self.counts[group] = np.zeros(batch, np.intp)
            shape = len(layers), batch, self._width
            # the type is said: loading a model in another thread changes the default for that long
            self._sums[group] = torch.zeros(shape, dtype=torch.float32, device=device)
            if group in self._late:
                self._latest[group] = torch.zeros_like(self._sums[group])

    def _ask(self, rows: Sequence[Row], device: Any) -> None:
        """Set which queries of the pass are read, in which layers, and what their rows count for.

        A late group takes the row of the last token in any case.
        """
        torch: Any = require("torch", extra="models")
        for latest in self._latest.values():
            latest.zero_()
        groups = {*self._latest, *(row.group for row in rows)}
        self._now = {layer for group in groups for layer in self._layers[group]}
        columns = {row.column for row in rows}
        if self._latest:
            columns.add(self._start + self._new - 1)
        at = {column: number for number, column in enumerate(sorted(columns))}
        batch = len(next(iter(self.counts.values())))
        self._marks = {
            group: torch.zeros((batch, 1, len(at)), dtype=torch.float32) for group in groups
        }
        for group, sequence, column in rows:
            self._marks[group][sequence, 0, at[column]] = 1.0
        self._marks = {group: marks.to(device) for group, marks in self._marks.items()}
        self._at = torch.tensor([column - self._start for column in at], device=device)

    def _collect(self, layer: int, call: LayerCall) -> None:
        assert self._at is not None
        batch, heads, seen, _ = call.query.shape
        if seen != self._new:
            raise GenerationError(
                f"layer {layer} attends from {seen} of {self._new} tokens, so its rows are not "
                "where they are read; let the model compute every token in every layer"
            )
        first = call.first_key(self._start)
        kept = max(0, min(int(call.key.shape[2]), self._width - first))
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
            logits = torch.stack([each for _, each in waiting])
            weights = torch.softmax(logits, dim=-1).mean(dim=2)[..., : alike.kept]
            layers = [layer for layer, _ in waiting]
            for group, marks in self._marks.items():
                self._add(group, layers, weights.to(marks.device), marks, alike)
        self._waiting, self._held = {}, 0

    def _add(
        self, group: str, layers: Sequence[int], weights: Tensor, marks: Tensor, alike: _Alike
    ) -> None:
        """Add weights, shape (layers, batch, rows, kept), to the sums of a group."""
        own = [number for number, layer in enumerate(layers) if layer in self._layers[group]]
        if not own:
            return
        at = [self._layers[group].index(layers[number]) for number in own]
        columns = slice(alike.first, alike.first + alike.kept)
        chosen = weights if len(own) == len(layers) else weights[own]
        rows = marks[..., alike.begin : alike.end] @ chosen
        self._sums[group][at, :, columns] += rows[:, :, 0]
        if group in self._latest and alike.end == marks.shape[-1]:
            self._latest[group][at, :, columns] = chosen[:, :, -1]


@contextmanager
def recording(
    model: Any,
    choose: Choose,
    *,
    layers: Mapping[str, Collection[int]],
    width: int,
    late: Collection[str] = (),
) -> Iterator[AttentionRecorder]:
    """Record attention rows of the forward passes that this thread makes in this context.

    The model's results do not change: its logits are the same to the last bit, and afterwards it
    and transformers are as they were. All passes must be of one batch, whose tokens are shown in
    order: at once, in chunks with a cache, or one by one as `generate` does.

    Parameters
    ----------
    model
        A ``PreTrainedModel``. Its passes need ``input_ids``.
    choose
        Chooses the tokens whose rows to record, by group.
    layers
        Name of each group, and the indices of the layers in which its rows are recorded.
    width
        Number of columns, from the first one, whose scores are kept: the longest prompt's.
    late
        Groups of rows that are chosen only when the next token is known.

    Raises
    ------
    GenerationError
        If the model does not compute its attention by the functions of transformers.
    MissingExtraError
        If torch is not installed.
    """
    torch: Any = require("torch", extra="models")
    if not places_of(model):
        raise unreadable(type(model).__name__)
    recorder = AttentionRecorder(model, choose, layers=layers, width=width, late=late)
    own = threading.get_ident()

    def hear(call: Mapping[str, Any]) -> None:
        with torch.inference_mode():
            recorder.hear(call)

    def begin(module: Any, args: Sequence[Any], options: Mapping[str, Any] | None = None) -> None:
        # Another thread that runs the same model may be in the middle of its hooks when this one
        # is removed, and then calls it without options.
        if threading.get_ident() == own and options is not None:
            with torch.inference_mode():
                recorder.begin(_start(options), _tokens(args, options))

    with listening(model, hear):
        hook = model.register_forward_pre_hook(begin, with_kwargs=True)
        try:
            yield recorder
        finally:
            hook.remove()


def unreadable(model: str) -> GenerationError:
    """Return the error of a model, named by its class, whose rows cannot be read."""
    return GenerationError(
        f"{model} does not compute its attention by the attention functions of transformers, or "
        "has none in the layers that are read, so its rows cannot be read; use a model that does "
        "(Llama, Qwen, Mistral, Gemma, Phi, Granite, GPT-NeoX, GPT-2 and most others), or a "
        "placement that needs no attention"
    )


def _start(options: Mapping[str, Any]) -> int:
    cache = options.get("cache", options.get("past_key_values"))  # before transformers 5.24
    return 0 if cache is None else int(cache.get_seq_length())


def _tokens(args: Sequence[Any], options: Mapping[str, Any]) -> Tensor:
    tokens: Tensor | None = options.get("input_ids", args[0] if args else None)
    if tokens is None:
        raise GenerationError("attention rows are chosen by tokens; give the model input_ids")
    return tokens

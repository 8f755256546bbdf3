"""A tap on a model's attention: chosen rows, reduced at once to a score for each token."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from shared_core._extras import require
from shared_core.arrays import Scores
from shared_core.attention.interface import is_listening, layers_of, listening, places_of
from shared_core.attention.rows import LayerCall
from shared_core.attention.sums import Row, RowSums
from shared_core.errors import GenerationError

if TYPE_CHECKING:
    from torch import Tensor


class RowChooser(Protocol):
    """Chooses, as the tokens of a batch pass, those whose rows are requested."""

    @property
    def groups(self) -> Sequence[str]:
        """Names of all groups."""
        ...

    def choose(self, first: int, tokens: Tensor) -> Sequence[Row]:
        """Return the rows among `tokens`, shape (batch, new), the first of column `first`.

        Every column is shown once, in order, before the model reads it. The last one of those shown
        before may be requested once more, if it was requested then.
        """
        ...


class AttentionTap:
    """Running sums of attention rows; `tapped` makes one and connects it.

    Of what grows with the prompt, it holds only `RowSums`.

    Attributes
    ----------
    counts
        Number of rows that have passed, of each group, shape (batch,).
    """

    def __init__(
        self,
        model: Any,
        rows: RowChooser,
        *,
        layers: Mapping[str, Collection[int]],
        width: int,
        only: Mapping[str, Collection[int]] | None = None,
    ) -> None:
        self.counts: dict[str, npt.NDArray[np.intp]] = {}
        self._name = type(model).__name__
        self._index = layers_of(model)
        self._rows = rows
        self._layers = layers
        every = frozenset(layer for chosen in layers.values() for layer in chosen)
        self._wanted = {group: every if only is None else {*only[group]} for group in rows.groups}
        self._now: set[int] = set()
        self._width = width
        self._sums: RowSums | None = None
        self._shown = 0
        self._asked = False
        self._met: set[int] = set()
        self._heard: set[int] = set()

    def scores(self, group: str, layers: str) -> Scores:
        """Return the mean attention of a group's rows to each token (eq. 1); higher is more.

        ``s_j = 1/m sum_i 1/H sum_h 1/|L_s| sum_l a_ij^lh`` over the m rows i of the group, the H
        heads h and those layers l of the set that have attention.

        Parameters
        ----------
        group
            A group of the chooser.
        layers
            A name of the layer sets.

        Returns
        -------
        Scores
            In [0, 1], shape (batch, width); 0 at columns that no row sees, and where there is no
            row.

        Raises
        ------
        GenerationError
            If no layer of the set has shown its attention.
        """
        met = self._met.intersection(self._layers[layers])
        if self._sums is None or not met:
            raise self._unmet()
        rows = np.maximum(self.counts[group], 1)[:, None]
        torch: Any = require("torch", extra="models")
        with torch.inference_mode():
            sums = self._sums.of(group, layers).cpu().numpy().astype(np.float64)
        means: Scores = sums / (rows * len(met))
        return means

    def begin(self, start: int, tokens: Tensor) -> None:
        """Register a forward pass over `tokens`, shape (batch, new), from column `start`.

        Columns that passed before, as they do without a cache, are not requested again.

        Raises
        ------
        GenerationError
            If rows were requested in the previous pass, and none came.
        """
        if self._asked and not self._met:
            raise self._unmet()
        batch, new = tokens.shape
        if self._sums is None:
            self.counts = {group: np.zeros(batch, np.intp) for group in self._rows.groups}
            self._sums = RowSums(
                self._rows.groups,
                self._layers,
                batch=batch,
                width=self._width,
                device=tokens.device,
            )
        first = max(start, self._shown)
        self._shown = max(first, start + new)
        rows = self._rows.choose(first, tokens[:, first - start :])
        for group, sequence, _ in rows:
            self.counts[group][sequence] += 1
        self._now = {
            layer for group in {row.group for row in rows} for layer in self._wanted[group]
        }
        self._asked = bool(self._now)
        self._sums.ask(rows, start, new)

    def hear(self, call: Mapping[str, Any]) -> None:
        """Add the rows of one layer's attention call, given by the names of its arguments.

        Raises
        ------
        GenerationError
            If the rows of such a call cannot be read.
        """
        layer = self._index.get(call["module"])
        if self._sums is None or layer is None:
            return
        self._heard.add(layer)
        if layer in self._now:
            self._now.remove(layer)
            self._sums.add(layer, LayerCall.of(call))
            self._met.add(layer)

    def _unmet(self) -> GenerationError:
        """Return the error of layer sets without attention, or of a model that has none."""
        without = [name for name, chosen in self._layers.items() if self._heard.isdisjoint(chosen)]
        if not self._heard or not without:
            return tap_error(self._name)
        return GenerationError(
            f"of {self._name}, whose layers differ in kind, only {sorted(self._heard)} have "
            f"attention: none of the layer set {', '.join(without)}, which is to be read; use "
            "another model, or what does not read that set"
        )


@contextmanager
def tapped(
    model: Any,
    rows: RowChooser,
    *,
    layers: Mapping[str, Collection[int]],
    width: int,
    only: Mapping[str, Collection[int]] | None = None,
) -> Iterator[AttentionTap]:
    """Record attention rows of the forward passes that this thread makes in this context.

    The model's results do not change: its logits are the same to the last bit, and afterwards it
    and transformers are as they were. All passes must be of one batch, whose tokens are shown in
    order: at once, in chunks with a cache, or one by one as `generate` does.

    Parameters
    ----------
    model
        A ``PreTrainedModel``. Its passes need ``input_ids``.
    rows
        Chooses the tokens whose rows to record.
    layers
        Layer sets by name: indices of layers. Layers in none of them are ignored.
    width
        Number of columns, from the first one, whose scores are kept: the longest prompt's.
    only
        For each group the layers in which its rows are needed; all by default. A pass is read in
        the layers of those groups that have rows in it, and the scores of a group are right only in
        sets of its own layers.

    Raises
    ------
    GenerationError
        If the model does not compute its attention by the functions of transformers.
    MissingExtraError
        If torch is not installed.
    """
    torch: Any = require("torch", extra="models")
    if not places_of(model):
        raise tap_error(type(model).__name__)
    tap = AttentionTap(model, rows, layers=layers, width=width, only=only)

    def hear(call: Mapping[str, Any]) -> None:
        with torch.inference_mode():
            tap.hear(call)

    def begin(module: Any, args: Sequence[Any], options: Mapping[str, Any] | None = None) -> None:
        # Another thread that runs the same model may be in the middle of its hooks when this one
        # is removed, and then calls it without options.
        if is_listening(hear) and options is not None:
            with torch.inference_mode():
                tap.begin(_start(options), _tokens(args, options))

    with listening(model, hear):
        hook = model.register_forward_pre_hook(begin, with_kwargs=True)
        try:
            yield tap
        finally:
            hook.remove()


def tap_error(model: str) -> GenerationError:
    """Return the error of a model, named by its class, whose rows cannot be read."""
    return GenerationError(
        f"{model} does not compute its attention by the attention functions of transformers, so "
        "its rows cannot be read; use a model that does (Llama, Qwen, Mistral, Gemma, Phi, "
        "Granite, GPT-NeoX, GPT-2 and most others), or a placement that needs no attention"
    )


def _start(options: Mapping[str, Any]) -> int:
    cache = options.get("past_key_values")
    return 0 if cache is None else int(cache.get_seq_length())


def _tokens(args: Sequence[Any], options: Mapping[str, Any]) -> Tensor:
    tokens: Tensor | None = options.get("input_ids", args[0] if args else None)
    if tokens is None:
        raise GenerationError("attention rows are chosen by tokens; give the model input_ids")
    return tokens

"""Attention rows, computed from the queries and keys that a model hands to its attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from shared_core._extras import require
from shared_core.errors import GenerationError

if TYPE_CHECKING:
    from torch import Tensor

_NOT_READ = ("position_bias", "indices", "block_indices", "sinks")
"""Options of attention functions that change the weights in ways not reproduced here."""


@dataclass(frozen=True, kw_only=True)
class LayerCall:
    """What one layer hands to its attention function in one forward pass.

    Attributes
    ----------
    query
        Shape (batch, heads, queries, head size), after the rotary embedding.
    key
        float32, shape (batch, key heads, keys, head size); the layer's cache is included. The heads
        are a multiple of the key heads, and those that share one are adjacent.
    mask
        Added to the logits or True where a key is seen, shape (batch or 1, heads or 1, queries,
        keys or more); or True where a token is not padding, shape (batch, tokens); or None.
    scaling
        Factor on the dot products.
    softcap
        Bound c of the logits z, applied as ``c tanh(z / c)``.
    window
        Number of most recent keys that a query sees, including itself; used if `mask` is not by
        query.
    causal
        Whether a query sees no later keys; used if `mask` is not by query.
    sinks
        A logit per head, shape (heads,), that takes part in the softmax and has no key.
    """

    query: Tensor
    key: Tensor
    mask: Tensor | None
    scaling: float
    softcap: float | None
    window: int | None
    causal: bool
    sinks: Tensor | None

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> Self:
        """Read the arguments of an attention function of transformers, by name.

        Raises
        ------
        GenerationError
            If one of them changes the weights in a way not reproduced here.
        """
        torch: Any = require("torch", extra="models")
        module, query, mask = call["module"], call["query"], call.get("attention_mask")
        unread = [name for name in _NOT_READ if call.get(name) is not None]
        if mask is not None and not isinstance(mask, torch.Tensor):
            unread.append(type(mask).__name__)
        if unread:
            raise GenerationError(
                f"{type(module).__name__} computes attention with {', '.join(unread)}, whose "
                "rows are not read; load the model with attn_implementation='eager' or 'sdpa', "
                "or use another one"
            )
        scaling, causal = call.get("scaling"), call.get("is_causal")
        return cls(
            query=query,
            # once for all rows: products of large keys overflow in half precision
            key=call["key"].float(),
            mask=mask,
            scaling=float(query.shape[-1]) ** -0.5 if scaling is None else scaling,
            softcap=call.get("softcap"),
            window=call.get("sliding_window"),
            causal=bool(getattr(module, "is_causal", True) if causal is None else causal),
            sinks=call.get("s_aux"),
        )

    def first_key(self, start: int) -> int:
        """Column of the first key, if the first query has column `start`.

        A sliding cache has dropped the first columns; a static one has room after the last.
        """
        return max(0, start + int(self.query.shape[2]) - int(self.key.shape[2]))

    def logits(self, at: Tensor, start: int) -> Tensor:
        """Return what some rows are the softmax of: ``z_ij^h``.

        All is in float32, as in SDPA; eager attention rounds to the precision of the queries.

        Parameters
        ----------
        at
            Which queries, ascending, shape (rows,).
        start
            Column of the first query: how many tokens came before this pass, padding included.

        Returns
        -------
        Tensor
            float32, shape (batch, heads, rows, keys), or with `sinks` (batch, heads, rows,
            keys + 1).
        """
        torch: Any = require("torch", extra="models")
        logits = self._dot_products(at)
        if self.softcap is not None:
            logits = torch.tanh(logits / self.softcap) * self.softcap
        logits = self._masked(logits, at, start)
        if self.sinks is not None:
            sinks = self.sinks.float().reshape(1, -1, 1, 1)
            sinks = sinks.expand(logits.shape[0], -1, logits.shape[2], 1)
            logits = torch.cat([logits, sinks], dim=-1)
        return logits

    def _dot_products(self, at: Tensor) -> Tensor:
        """Return scaled q.k, shape (batch, heads, rows, keys), with no key copied for its heads."""
        every = len(at) == self.query.shape[2]
        query = self.query if every else self.query.index_select(2, at)
        query = query.float() * self.scaling
        batch, heads, rows, size = query.shape
        shared = query.reshape(batch, self.key.shape[1], -1, size)
        return (shared @ self.key.transpose(2, 3)).reshape(batch, heads, rows, -1)

    def _masked(self, logits: Tensor, at: Tensor, start: int) -> Tensor:
        torch: Any = require("torch", extra="models")
        if self._sees_all(start):
            return logits
        if self.mask is not None and self.mask.ndim == 4:
            mask = self.mask.index_select(2, at)[..., : self.key.shape[2]]
        else:
            mask = self._seen(at, start)
        # not infinite, or a row of padding, which sees nothing, would become NaN
        least = torch.finfo(logits.dtype).min
        if mask.dtype == torch.bool:
            return logits.masked_fill(~mask, least)
        return (logits + mask.float()).clamp(min=least)

    def _sees_all(self, start: int) -> bool:
        """Whether the only query is the last token, with no key hidden, as for most tokens."""
        count = self.key.shape[2]
        newest = self.query.shape[2] == 1 and count <= start + 1
        return self.mask is None and newest and (self.window is None or count <= self.window)

    def _seen(self, at: Tensor, start: int) -> Tensor:
        """Which keys a query sees, shape (batch or 1, 1, rows, keys), if no mask says so."""
        torch: Any = require("torch", extra="models")
        count = self.key.shape[2]
        keys = self.first_key(start) + torch.arange(count, device=at.device)
        distance = (start + at)[:, None] - keys[None, :]
        seen = torch.ones_like(distance, dtype=torch.bool)
        if self.causal:
            seen &= distance >= 0
        if self.window is not None:
            seen &= distance < self.window
        seen = seen[None, None]
        return seen if self.mask is None else seen & self.mask.bool()[:, None, None, -count:]

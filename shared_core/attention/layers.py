"""Which layers of a model are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared_core.attention.scores import LayerSet, layer_halves
from shared_core.errors import GenerationError


@dataclass(frozen=True, kw_only=True)
class Layers:
    """A set of layers, and which of them see the whole prompt however long it is.

    Attributes
    ----------
    layers, far
        Indices: all of the set, and those without a window.
    window
        How many of the last tokens the others see; None if there are no others.
    """

    layers: frozenset[int]
    far: frozenset[int]
    window: int | None

    def far_only(self, tokens: int) -> bool:
        """Whether to read a row that so many tokens lead up to only in layers without a window."""
        return bool(self.far) and self._beyond(tokens)

    def near_only(self, tokens: int) -> bool:
        """Whether no layer of the set sees all of so many tokens."""
        return not self.far and self._beyond(tokens)

    def _beyond(self, tokens: int) -> bool:
        return self.window is not None and tokens > self.window


def layer_sets(config: Any) -> dict[LayerSet, Layers]:
    """Return all layers, the lower half and the upper half; a single layer is both halves.

    Parameters
    ----------
    config
        Configuration of the model, a ``PretrainedConfig``.

    Raises
    ------
    GenerationError
        If its layers attend to anything but tokens.
    """
    text = config.get_text_config()
    compressed = {kind for kind in getattr(text, "layer_types", None) or () if "compressed" in kind}
    if compressed:
        raise GenerationError(
            f"{text.model_type} has layers of {', '.join(sorted(compressed))}, whose rows are not "
            "read: their keys stand for several tokens each; use another model"
        )
    everything = range(text.num_hidden_layers)
    lower, upper = layer_halves(len(everything))
    return {
        "all": _layers(text, everything),
        "lower": _layers(text, lower or everything),
        "upper": _layers(text, upper or everything),
    }


def _layers(text: Any, chosen: range) -> Layers:
    window = getattr(text, "sliding_window", None) or getattr(text, "attention_chunk_size", None)
    kinds = getattr(text, "layer_types", None)
    near = frozenset(chosen)  # if the layers are not described, all have the window
    if kinds is not None:
        names = ("sliding", "chunked")
        near = frozenset(at for at in chosen if any(name in kinds[at] for name in names))
    if window is None or not near:
        return Layers(layers=frozenset(chosen), far=frozenset(chosen), window=None)
    return Layers(layers=frozenset(chosen), far=frozenset(chosen) - near, window=window)

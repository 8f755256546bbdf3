"""A retriever's options as JSON and back, so that an index is loaded as it was used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_posrag.options import PlacementOptions
from shared_core import options as core

KEY = "langchain_posrag"
"""Key of the options in what an index keeps beside its passages."""


def encode_options(options: PlacementOptions, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the named options as they come back from JSON.

    A placement is kept by name and settings, a profile whole. A placement class of one's own is
    kept by its name too, and has to be given to `load` again.
    """
    return core.encode_options({name: getattr(options, name) for name in names})


def decode_options(saved: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the saved options with the given ones in their stead.

    A `PlacementTransformer` that is given replaces the saved gate too.

    Raises
    ------
    ValueError
        If the saved placement is not one of `shared_core.PLACEMENTS`, or the saved `expand`
        counted tokens by a function, and none is given.
    """
    taken = ("psi", "evidence") if isinstance(given.get("placement"), PlacementOptions) else ()
    kept = {key: value for key, value in saved.items() if key not in taken}
    return core.decode_options({**kept, **given})

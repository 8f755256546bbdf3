"""Placements: which rank goes into which slot. `PLACEMENTS` finds them by name."""

from __future__ import annotations

from shared_core.placement.placements import (
    Inverse,
    MaxRelevance,
    MinDistraction,
    Place,
    Placement,
    Sequential,
    Shuffle,
    SourceOrder,
    UShape,
    UShapeBestLast,
    u_shape_order,
)
from shared_core.placement.scored import distraction_placement

__all__ = [
    "PLACEMENTS",
    "Inverse",
    "MaxRelevance",
    "MinDistraction",
    "Place",
    "Placement",
    "Sequential",
    "Shuffle",
    "SourceOrder",
    "UShape",
    "UShapeBestLast",
    "distraction_placement",
    "resolve_placement",
    "u_shape_order",
]

PLACEMENTS: dict[str, type[Placement]] = {
    "sequential": Sequential,
    "inverse": Inverse,
    "shuffle": Shuffle,
    "source_order": SourceOrder,
    "u_shape": UShape,
    "u_shape_best_last": UShapeBestLast,
    "max_relevance": MaxRelevance,
    "min_distraction": MinDistraction,
    # RetriVex's names
    "front_first": Sequential,
    "back_first": Inverse,
    "edge_balanced": UShape,
}


def resolve_placement(spec: str | Placement) -> Placement:
    """Return the placement that `spec` names, or `spec` itself if it is one.

    Raises
    ------
    ValueError
        If no placement has that name; the message lists those that exist.
    """
    if isinstance(spec, Placement):
        return spec
    if not isinstance(spec, str) or spec not in PLACEMENTS:
        raise ValueError(
            f"unknown placement {spec!r}; known: {', '.join(PLACEMENTS)}, and Placement objects"
        )
    return PLACEMENTS[spec]()

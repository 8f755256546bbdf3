"""Profiles that others have measured and published, usable by name and cited.

The sources print the accuracy by slot and the number of questions, not the outcome of each
question, so the intervals here treat the slots as independent samples.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from shared_core.evaluation.intervals import independent_interval
from shared_core.sensitivity.position_sensitivity import index_statistic


def published_names() -> list[str]:
    """Return the names under which a published profile is found.

    A name is the model's; ``#key-value`` follows where the task was key-value retrieval.
    """
    return sorted(_published())


@cache
def published_fields(name: str) -> dict[str, Any] | None:
    """Return the fields of the published profile of that name, interval included, or None."""
    fields = _published().get(name)
    if fields is None:
        return None
    statistic = index_statistic(fields["slots"], fields["k"])
    interval = independent_interval(fields["accuracy"], fields["n"], statistic)
    return {**fields, "interval": interval}


@cache
def _published() -> dict[str, dict[str, Any]]:
    text = files("shared_core.sensitivity").joinpath("published.json").read_text("utf-8")
    profiles: dict[str, dict[str, Any]] = json.loads(text)
    return profiles

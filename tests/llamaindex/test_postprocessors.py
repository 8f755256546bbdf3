"""What the postprocessors do, beyond the contract."""

from __future__ import annotations

import math
from typing import Any

import pytest
from llama_index.core.postprocessor.types import BaseNodePostprocessor

from llamaindex_posrag import CAUSPostprocessor, PlacementPostprocessor

from .checks import facts, ids
from .doubles import QUERY, corpus, scored


@pytest.mark.parametrize(
    "postprocessor", [CAUSPostprocessor(psi="always"), PlacementPostprocessor()]
)
@pytest.mark.parametrize("score", [None, math.nan, 0.0])
def test_without_scores_and_a_query_the_order_that_comes_in_is_the_ranking(
    postprocessor: BaseNodePostprocessor, score: float | None
) -> None:
    out = postprocessor.postprocess_nodes(scored([score] * 5))
    assert ids(out) == ["n0", "n2", "n4", "n3", "n1"]


# Copies with another option.


@pytest.mark.parametrize(
    ("postprocessor", "update"),
    [
        (CAUSPostprocessor(psi="always"), {"k": 2, "alpha": 0.0}),
        (CAUSPostprocessor.from_nodes(corpus(), psi="always"), {"placement": "inverse"}),
        (PlacementPostprocessor(), {"placement": "inverse"}),
        (PlacementPostprocessor(), {"psi": "never"}),
    ],
)
@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_with_another_option_does_what_it_shows(
    postprocessor: BaseNodePostprocessor, update: dict[str, Any], deep: bool
) -> None:
    """As one that was made so, and the original does what it did."""
    before = facts(postprocessor.postprocess_nodes(scored(), query_str=QUERY))
    copied = postprocessor.model_copy(update=update, deep=deep)
    assert {name: getattr(copied, name) for name in update} == update
    made = type(postprocessor)(**{**dict(postprocessor), **update})
    expected = facts(made.postprocess_nodes(scored(), query_str=QUERY))
    assert facts(copied.postprocess_nodes(scored(), query_str=QUERY)) == expected != before
    assert facts(postprocessor.postprocess_nodes(scored(), query_str=QUERY)) == before
    assert copied.to_dict() == made.to_dict()
    for bad in ({"kk": 2}, {"placement": "v_shape"}):
        with pytest.raises((ValueError, TypeError), match=next(iter(bad))):
            postprocessor.model_copy(update=bad)

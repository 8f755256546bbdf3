"""Settings: what cannot be retrieved is refused with what there is."""

from __future__ import annotations

import pytest

pytest.importorskip("ir_measures")

from shared_core.comparison import Comparison
from tests.core.comparison.making import codes, last


def test_no_pipeline_is_refused() -> None:
    """As are no graders."""
    with pytest.raises(ValueError, match=r"^pipelines must name at least one$"):
        Comparison(pipelines=()).job(last, codes(3))


@pytest.mark.parametrize("ks", [None, (2,)])
def test_one_passage_a_question_has_no_order(ks: tuple[int, ...] | None) -> None:
    """Whether a k is asked for or not: there is none that would do."""
    message = r"^no question has more than 1 passage \(given\); an order takes 2$"
    with pytest.raises(ValueError, match=message):
        Comparison(ks=ks).job(last, codes(3, k=1))

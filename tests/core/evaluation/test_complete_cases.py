"""Questions that any arm failed on are dropped from all."""

from __future__ import annotations

from shared_core.errors import GenerationError
from shared_core.evaluation import complete_cases
from shared_core.generation.responses import Failed


def test_a_question_that_any_arm_failed_on_is_dropped_from_all() -> None:
    """Answers that are empty or nothing are no failures; the numbers are those of all questions."""
    failed = Failed(GenerationError("no answer"))
    cases = [["a", "b"], ["a", failed], [failed, failed], ["", None], [failed, "b"]]
    assert complete_cases(cases) == {0: ("a", "b"), 3: ("", None)}
    assert [*complete_cases([["c"], ["b"], ["a"]])] == [0, 1, 2]
    assert complete_cases([]) == {}

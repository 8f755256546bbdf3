"""A model that fails: what is a question's own failure, and what ends the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("scipy")

from shared_core import Journal
from shared_core.comparison import Comparison, to_html, to_markdown
from shared_core.errors import GenerationError
from tests.core.comparison.making import Counting, codes, last, refusing, shown


class StatusError(Exception):
    """What a client raises for a response of a server."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status_code = status


def refusing_from(number: int, error: Exception) -> Counting:
    """Return a model that answers so many calls like `last`, then none."""
    calls = 0

    def answer(prompts: Sequence[str]) -> list[str]:
        nonlocal calls
        calls += 1
        if calls >= number:
            raise error
        return last(prompts)

    return Counting(answer)


@pytest.mark.parametrize(
    "error",
    [
        StatusError("wrong key", 401),
        StatusError("insufficient_quota", 429),
    ],
    ids=lambda error: str(error.status_code),
)
def test_a_refusal_ends_the_comparison_at_once(error: Exception, tmp_path: Path) -> None:
    """No question is at fault, and none is asked by itself."""
    model, journal = refusing_from(3, error), Journal(tmp_path / "answers")
    with pytest.raises(GenerationError, match=f"model 'counting' failed: StatusError: {error}$"):
        Comparison(ks=(4,), max_failed=0.9).run(model, codes(20), journal=journal)
    assert len(journal) == 8
    assert len(model.asked) == 3 * model.batch_size


def test_too_many_failures_say_how_to_allow_them(tmp_path: Path) -> None:
    """Those of other questions have been answered, and need not be asked for again."""
    answer, journal = refusing(lambda number, _: number % 2 == 1), Journal(tmp_path / "answers")
    with pytest.raises(GenerationError) as caught:
        Comparison(ks=(4,)).run(answer, codes(20), journal=journal)
    assert "more than max_failed=0.1 (--max-failed) allows" in str(caught.value)
    assert len(journal) > 0


def test_empty_answers_are_counted_in_the_reports() -> None:
    """They count as wrong, and may have been refusals."""

    def answer(prompts: Sequence[str]) -> list[str]:
        return [last([prompt])[0] if shown(prompt)[0] else "" for prompt in prompts]

    result = Comparison(ks=(4,), strategies=("inverse",)).run(answer, codes(20))
    said = "5 of 100 answers are empty and count as wrong."
    assert said in to_markdown(result)
    assert said in to_html(result)
    assert "empty" not in to_markdown(Comparison(ks=(4,)).run(last, codes(20)))

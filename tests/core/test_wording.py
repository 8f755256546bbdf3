"""What is put into sentences."""

from __future__ import annotations

import pytest

from shared_core.checking import check_several
from shared_core.files import shorten_json
from shared_core.generation.retry import describe
from shared_core.wording import shortened


@pytest.mark.parametrize(
    ("text", "kept"), [("", ""), ("abcde", "abcde"), ("abcdef", "ab..."), ("a" * 99, "aa...")]
)
def test_a_text_is_cut_to_a_length_that_includes_the_dots(text: str, kept: str) -> None:
    """One that fits is left alone."""
    assert shortened(text, 5) == kept


def test_errors_show_no_more_of_a_value_than_they_say() -> None:
    """80 characters of a value, 300 of another error."""
    assert len(shorten_json("x" * 500)) == 80
    assert len(describe(ValueError("x" * 500))) == 300
    with pytest.raises(ValueError, match=r"got the string 'x{76}\.\.\.; give \['x{76}\.\.\.\]$"):
        check_several("x" * 500)

"""A comparison in Markdown whose words come from others: from files, models and servers."""

from __future__ import annotations

from dataclasses import replace

from shared_core.comparison import Comparison, ComparisonData, to_markdown
from shared_core.comparison.text_report import escaped

from .making import codes, last, refusing

HOSTILE = "a\x1b[31m\n- b <script>x</script> `c` | d\r\n# e ![f](http://g) \x9b1m\ud800"
ESCAPED = r"a\\x1b[31m - b \<script>x\</script> \`c\` \| d # e ![f]\(http://g) \\x9b1m\\ud800"


refusing_one = refusing(lambda number, _: number == 3, HOSTILE)


def test_what_others_said_stands_in_one_line_and_marks_nothing_up() -> None:
    """Neither an id, nor a failure's reason, nor the name of the model."""
    data = codes(12)
    questions = (replace(each, id=f"{at}{HOSTILE}") for at, each in enumerate(data.questions))
    whole = ComparisonData(questions=tuple(questions), passages=data.passages)
    result = Comparison(ks=(4,)).run(refusing_one, whole)
    text = to_markdown(replace(result, model=HOSTILE))
    text.encode()
    lines = text.splitlines()
    assert f"- 1: RuntimeError: {ESCAPED} (first: question 3{ESCAPED}, sequential)" in lines
    assert lines[0] == f"# Does the order of the passages matter to {ESCAPED}?"
    assert "<script" not in text.replace("\\<", "")
    assert not {character for character in text if not character.isprintable()} - {"\n"}


def test_a_report_of_our_own_words_has_nothing_escaped() -> None:
    """It is read as a file, too."""
    text = to_markdown(Comparison(ks=(2, 4)).run(last, codes(12)))
    assert "\\" not in text
    assert "| u_shape | " in text


def test_a_cell_that_ends_in_a_backslash_stays_one() -> None:
    """Else the backslash would take the bar that ends it."""
    assert escaped("a\\|b\\") == r"a\\\|b\\"

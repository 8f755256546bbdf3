"""A comparison in Markdown whose words come from others: from files, models and servers."""

from __future__ import annotations

from dataclasses import replace

from shared_core.comparison import Comparison, ComparisonData, ComparisonResult, to_markdown
from shared_core.comparison.text_report import capitalised, escaped

from .making import codes, last, refusing

HOSTILE = (
    "a\x1b[31m <b>\n- b <script>x</script> `c` | d\r\n# e ![f](http://g) \" onload='x \x9b1m\ud800"
)
ESCAPED = (
    r"a\\x1b[31m \<b> - b \<script>x\</script> \`c\` \| d # e ![f]\(http://g) "
    "\" onload='x \\\\x9b1m\\\\ud800"
)


def hostile() -> ComparisonResult:
    """Return a comparison in which all words that can be another's are."""
    data = codes(12)
    questions = (replace(each, id=f"{at}{HOSTILE}") for at, each in enumerate(data.questions))
    whole = ComparisonData(questions=tuple(questions), passages=data.passages)
    result = Comparison(ks=(4,)).run(refusing(lambda number, _: number == 3, HOSTILE), whole)
    setting = result.settings[0]
    strategies = tuple(replace(each, name=HOSTILE) for each in setting.strategies)
    return replace(
        result,
        questions=tuple(replace(each, question=HOSTILE) for each in result.questions),
        settings=(replace(setting, pipeline=HOSTILE, strategies=strategies),),
        model=HOSTILE,
        identity=HOSTILE,
        template=HOSTILE,
        verdict=replace(result.verdict, text=HOSTILE),
    )


def test_what_others_said_stands_in_one_line_and_marks_nothing_up() -> None:
    """Neither an id, nor a failure's reason, nor the name of the model."""
    text = to_markdown(hostile())
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


def test_a_sentence_may_begin_with_the_name_of_a_strategy() -> None:
    assert capitalised("inverse loses 1.00") == "Inverse loses 1.00"
    assert capitalised("u_shape loses 1.00") == "u_shape loses 1.00"


def test_a_cell_that_ends_in_a_backslash_stays_one() -> None:
    """Else the backslash would take the bar that ends it."""
    assert escaped("a\\|b\\") == r"a\\\|b\\"

"""The report as a page: what is in it, and that nothing in it is anybody else's to decide."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("jinja2")

from shared_core import GenerationError
from shared_core.comparison import Comparison, ComparisonData, ComparisonResult, to_html
from shared_core.comparison.html_report import MOST_FAILURES, MOST_QUESTIONS, order_text
from tests.core.comparison.making import codes, last, shown
from tests.core.comparison.test_markdown import hostile

PAGES = Path(__file__).parent / "pages"


def model(prompts: Sequence[str]) -> list[str]:
    """Answer from the last passage, and fail on every fifth thing."""
    if any(shown(prompt)[0] % 5 == 4 for prompt in prompts):
        raise GenerationError("the model is <tired>")
    return last(prompts)


def compared(data: ComparisonData, ks: tuple[int, ...] = (4,)) -> ComparisonResult:
    """Return a comparison in which some questions fail."""
    how = Comparison(ks=ks, graders=("em", "f1"), max_failed=0.5, batch_size=1)
    return replace(how.run(model, data), version="VERSION")


@pytest.mark.parametrize(
    ("name", "data", "ks"),
    [
        ("gold", codes(12), (4,)),
        ("gold_found_by_one", codes(12, gold=3), (3, 4)),
        ("without_gold", codes(12, gold=None), (4,)),
        ("one_question", codes(1), (4,)),
    ],
)
def test_what_a_page_holds(name: str, data: ComparisonData, ks: tuple[int, ...]) -> None:
    """Word for word; ``POSRAG_WRITE_OUTPUTS=1`` writes the files anew: read their difference."""
    _, _, body = to_html(compared(data, ks)).partition("<body>")
    body = re.sub("<script>.*</script>", "", body, flags=re.DOTALL)
    kept = PAGES / f"{name}.html"
    if os.environ.get("POSRAG_WRITE_OUTPUTS"):
        kept.write_text(body)
    assert body == kept.read_text()


def test_what_users_write_stays_text() -> None:
    """A question, an id, an answer, the model's name, the prompt, a reason: none can be a tag."""
    text = to_html(hostile())
    text.encode()
    assert len(re.findall("<script", text)) == 1
    assert "<b>" not in text
    assert "\" onload='" not in text
    assert "\x1b[31m &lt;b&gt;" in text.replace("\n", " ")


def test_the_page_names_nothing_outside_itself() -> None:
    """No link, image, font or script but its own; and a policy that holds the browser to it."""
    text = to_html(compared(codes(12)))
    named = re.findall(r'\s(?:src|href|action|srcset|data|poster)="([^"]*)"', text)
    assert [each for each in named if not each.startswith("#")] == ["data:,"]
    assert re.findall(r"https?:|//\w|@import|url\(", text) == []
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_of_many_questions_those_are_shown_on_which_strategies_differ() -> None:
    """How many is said; none is cut from a small comparison."""

    def knowing(prompts: Sequence[str]) -> list[str]:
        """Know the first questions by heart, whatever the order."""
        things = [shown(prompt)[0] for prompt in prompts]
        read = last(prompts)
        return [f"{n}x0" if n < 40 else answer for n, answer in zip(things, read, strict=True)]

    text = to_html(Comparison(ks=(4,)).run(knowing, codes(MOST_QUESTIONS + 40)))
    assert f"{MOST_QUESTIONS} of {MOST_QUESTIONS + 40} questions" in text
    things = re.findall(r"<td[^>]*>What has thing (\d+)\?", text)
    assert [*map(int, things)] == [*range(40, MOST_QUESTIONS + 40)]


def test_of_many_failures_the_first_are_shown() -> None:
    """Their number is that of all."""
    text = to_html(compared(codes(150)))
    assert f"the first {MOST_FAILURES}:" in text
    assert len(re.findall("<td[^>]*>the model is &lt;tired&gt;", text)) == MOST_FAILURES
    assert "30 of 150 questions are left out" in text


def test_orders_of_fewer_passages_than_k_are_told() -> None:
    """Of the longest there are, as of spans, which are fewer; and of none nothing is said."""
    (setting,) = compared(codes(4)).settings
    for told, orders in {
        "3 2 1": [(2, 1, 0), (1, 0)],
        "differ": [(2, 1, 0), (1, 0), (0, 1)],
        "1 2 3 4 5 6 … 10 11 12 13 14 15": [tuple(range(15))],
    }.items():
        strategy = replace(setting.strategies[0], orders=tuple((order,) for order in orders))
        passages = tuple(tuple(map(str, order)) for order in orders)
        assert order_text(replace(setting, passages=passages), strategy) == told

"""The report of ``posrag compare`` in a real browser: headless Chromium."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

pytest.importorskip("rich")
pytest.importorskip("playwright")

from playwright.sync_api import Browser, Page, sync_playwright

from shared_core.cli import main
from tests.cli.conftest import written

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs Chromium: apt-get install chromium-headless-shell"
    ),
]

PHONE = {"width": 360, "height": 740}
DESKTOP = {"width": 1280, "height": 900}

WIDE = "a_question_without_a_single_space_to_break_it_at_" * 4


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page that the command writes."""
    folder = tmp_path_factory.mktemp("report")
    lines = []
    for number in range(24):
        documents = [f"thing {number} variant {place} has {number}x{place}" for place in range(4)]
        question = f"What has thing {number}? {WIDE if number == 0 else ''}"
        fields = {"question": question, "answers": f"{number}x0", "documents": documents, "gold": 0}
        lines.append(fields)
    data = written(folder / "questions.jsonl", lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.syspath_prepend(str(Path(__file__).parents[2]))
        arguments = ["--k", "3,4", "--graders", "em,f1", "--output", str(folder)]
        model = "tests.core.comparison.making:last"
        assert main.main(["compare", "--data", str(data), "--model", model, *arguments]) == 0
    return folder / "comparison.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start Chromium; without its sandbox, which a container's root cannot have."""
    with sync_playwright() as driver:
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=options)
        yield browser
        browser.close()


@pytest.fixture(params=[PHONE, DESKTOP], ids=["phone", "desktop"])
def page(request: pytest.FixtureRequest, browser: Browser, report: Path) -> Iterator[Page]:
    """Open the report, and fail if the page has asked for anything or complained of anything."""
    context = browser.new_context(viewport=request.param)
    requests: list[str] = []
    complaints: list[str] = []
    page = context.new_page()
    page.on("request", lambda asked: requests.append(asked.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(report.as_uri())
    yield page
    context.close()
    assert requests == [report.as_uri()]
    assert complaints == []


def unfold(page: Page) -> None:
    for summary in page.locator("summary").all():
        summary.click()


def test_all_of_it_fits_the_screen(page: Page) -> None:
    """Also with everything unfolded; marks of plots are seen, and their texts read one by one."""
    assert page.locator("svg").count() == 2 * 4
    marks = page.eval_on_selector_all(
        "svg circle, svg rect, svg text:not(:empty)",
        """all => all.map(each => {
            const {left, right, width} = each.getBoundingClientRect();
            return [left, right, width, parseFloat(getComputedStyle(each).fontSize)];
        })""",
    )
    assert len(marks) > 100
    width = int(page.evaluate("innerWidth"))
    for left, right, of_mark, font_size in marks:
        assert 0 <= left <= right <= width
        assert of_mark > 0
        assert font_size >= 11
    overlaps = page.eval_on_selector_all(
        "svg",
        """plots => plots.flatMap(plot => {
            const boxes = [...plot.querySelectorAll('text')]
                .filter(each => each.textContent)
                .map(each => [each.textContent, each.getBoundingClientRect()]);
            return boxes.flatMap(([name, a], at) => boxes.slice(at + 1)
                .filter(([_, b]) => a.left < b.right && b.left < a.right
                    && a.top + 3 < b.bottom && b.top + 3 < a.bottom)
                .map(([other]) => `${name} / ${other}`));
        })""",
    )
    assert overlaps == []
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_click_sorts_a_table_and_another_turns_it_round(page: Page) -> None:
    """Figures by their size and not as text, empty cells last; questions by their place."""
    table = page.locator("table").first
    names = table.locator("tbody th")
    orders = ["sequential", "shuffle", "inverse", "u_shape", "u_shape_best_last"]
    assert names.all_text_contents() == orders
    table.get_by_role("button", name="strategy").click()
    assert names.all_text_contents() == sorted(orders)

    gains = table.get_by_role("button", name="difference [95%]").first
    column = "each => [...each.tBodies[0].rows].map(row => row.cells[3].dataset.value)"
    for downwards, told in ((True, "descending"), (False, "ascending")):
        gains.click()
        *numbers, empty = table.evaluate(column)
        assert empty is None
        assert [*map(float, numbers)] == sorted(map(float, numbers), reverse=downwards)
        assert len({*numbers}) > 1
        assert table.locator("[aria-sort]").get_attribute("aria-sort") == told

    unfold(page)
    table = page.get_by_role("region", name="Questions:").first
    for _ in range(2):
        table.get_by_role("button", name="id").click()
    assert table.locator("tbody th").all_text_contents() == [str(n) for n in range(1, 25)]


def luminance(colour: str) -> float:
    """Return the relative luminance of ``rgb(...)``, as WCAG defines it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_the_paper(
    browser: Browser, report: Path, scheme: Literal["light", "dark"]
) -> None:
    """By 4.5 to 1, as the accessibility guidelines ask (WCAG 2.2, 1.4.3)."""
    page = browser.new_page(color_scheme=scheme)
    page.goto(report.as_uri())
    paper = luminance(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert (paper > 0.5) == (scheme == "light")
    of_texts = page.eval_on_selector_all(
        "h1, h2, p, th, td, dt, dd, summary, button, pre, svg text",
        "all => all.map(e => getComputedStyle(e)[e.matches('svg *') ? 'fill' : 'color'])",
    )
    page.close()
    assert len({*of_texts}) >= 3
    for colour in {*of_texts}:
        text = luminance(colour)
        assert (max(text, paper) + 0.05) / (min(text, paper) + 0.05) >= 4.5, colour


def test_without_scripts_it_is_all_there(browser: Browser, report: Path) -> None:
    """Sorting is all that a script is for."""
    page = browser.new_page(java_script_enabled=False)
    page.goto(report.as_uri())
    assert page.locator("svg").count() == 2 * 4
    assert page.locator("th button").count() == 0
    page.locator("summary").first.click()
    assert page.get_by_text("What has thing 7?").first.is_visible()
    page.close()

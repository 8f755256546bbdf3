"""The report as a page: what is in it, and that nothing in it is anybody else's to decide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from html.parser import HTMLParser

import pytest

pytest.importorskip("jinja2")

from shared_core import GenerationError
from shared_core.comparison import Comparison, ComparisonData, ComparisonResult, to_html
from shared_core.comparison.html_report import MOST_FAILURES, MOST_QUESTIONS, order_text
from tests.core.comparison.making import codes, last, shown

VOID = {"meta", "link", "br", "img", "hr", "input"}


@dataclass(frozen=True)
class Tag:
    name: str
    attributes: dict[str, str | None]


class Page(HTMLParser):
    """Tags, and the text under each; stops at a tag that is closed out of turn."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[Tag] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(Tag(tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in {*self._open}:
            self.texts[tag][-1] += data

    def named(self, name: str, kind: str | None = None) -> list[Tag]:
        """Return the tags of a name, and of a class."""
        return [
            tag
            for tag in self.tags
            if tag.name == name
            and (kind is None or kind in (tag.attributes.get("class") or "").split())
        ]


def model(prompts: Sequence[str]) -> list[str]:
    """Answer from the last passage, and fail on every fifth thing."""
    if any(shown(prompt)[0] % 5 == 4 for prompt in prompts):
        raise GenerationError("the model is <tired>")
    return last(prompts)


def compared(data: ComparisonData, **changed: object) -> ComparisonResult:
    settings = {"max_failed": 0.5, "ks": (4,), "batch_size": 1, **changed}
    return Comparison(**settings).run(model, data)  # type: ignore[arg-type]


@cache
def ordinary() -> ComparisonResult:
    """Return a comparison of two settings in which some questions fail."""
    return compared(codes(30), ks=(3, 4), graders=("em", "f1"))


def test_the_verdict_comes_first_and_everything_is_there() -> None:
    """Verdict, a gain for each setting, then plots and tables of each, and the provenance."""
    result = ordinary()
    text = to_html(result)
    page = Page(text)
    first = result.verdict.text.partition("; ")[0]
    assert page.texts["h1"] == [f"{first[0].upper()}{first[1:]}."]
    headings = page.texts["h2"]
    assert headings == [
        "Gain over the ranked order",
        *(setting.name for setting in result.settings),
        "How it was measured",
    ]
    plots = ["Gain over", "Gain over"] + 2 * ["Mean em by", "Rank of", "Slot of"]
    assert [title[: len(start)] for title, start in zip(_titles(page), plots, strict=True)] == plots
    visible = " ".join(page.texts["main"])
    for fact in (result.identity, result.template, result.version, "the model is <tired>"):
        assert str(fact) in visible


def test_the_plots_say_what_the_figures_are() -> None:
    """For those who cannot see them; and the figures are those of the result."""
    result = ordinary()
    page = Page(to_html(result))
    ids = [tag.attributes["id"] for tag in page.tags if "id" in tag.attributes]
    assert len({*ids}) == len(ids)
    for plot in page.named("svg"):
        assert plot.attributes["role"] == "img"
        assert {*str(plot.attributes["aria-labelledby"]).split()} <= {*ids}
    inverse = next(each for each in result.settings[0].strategies if each.name == "inverse")
    gain = inverse.against["sequential"].difference
    assert f"inverse {gain:+.2f} [" in page.texts["desc"][0]
    assert f"inverse {inverse.estimates['em'].mean:.2f} [" in page.texts["desc"][2]


def test_a_gain_that_is_shown_is_filled_and_others_are_not() -> None:
    """As the verdict counts it: corrected, and with an interval on one side of 0."""
    result = ordinary()
    expected = [
        gain.shown
        for setting in result.settings
        for strategy in setting.strategies
        for baseline, gain in strategy.against.items()
        if baseline == "sequential"
    ]
    kinds = [tag.attributes["class"] for tag in Page(to_html(result)).named("g")]
    assert kinds[: len(expected)] == expected
    assert {"open", "better"} <= {*expected}
    assert {*kinds[len(expected) :]} == {"plain"}  # means are not compared


def test_what_users_write_stays_text() -> None:
    """A question, an id, an answer, the model's name, the prompt, a reason: none can be a tag."""
    evil = "<script>alert('x')</script><img src=x onerror=alert(1)>&amp;\"'"
    result = ordinary()
    questions = tuple(
        replace(each, id=f"{evil}{number}", question=evil, answers=(evil,))
        for number, each in enumerate(result.questions)
    )
    settings = tuple(
        replace(
            setting,
            pipeline=evil,
            failures=tuple(replace(each, reason=evil) for each in setting.failures),
            strategies=tuple(replace(each, name=evil) for each in setting.strategies),
        )
        for setting in result.settings
    )
    changed = replace(
        result,
        questions=questions,
        settings=settings,
        model=evil,
        identity=evil,
        template=evil,
        verdict=replace(result.verdict, text=evil),
    )
    page = Page(to_html(changed))
    assert len(page.named("script")) == 1
    assert page.named("img") == []
    assert [tag for tag in page.tags for name in tag.attributes if name.startswith("on")] == []
    assert page.texts["h1"] == [f"{evil}."]
    assert page.texts["pre"] == [evil]
    assert evil in page.texts["td"]


def test_what_no_file_can_hold_does_not_break_the_page() -> None:
    """JSON can spell half a surrogate pair; UTF-8 cannot."""
    result = ordinary()
    asked = replace(result.questions[0], question="half \ud800 pair")
    text = to_html(replace(result, questions=(asked, *result.questions[1:])))
    assert "half ? pair" in text.encode().decode()


def test_the_page_names_nothing_outside_itself() -> None:
    """No link, image, font or script but its own; and a policy that holds the browser to it."""
    text = to_html(ordinary())
    page = Page(text)
    for tag in page.tags:
        for name in ("src", "href", "action", "srcset", "data", "poster"):
            value = tag.attributes.get(name) or "#"
            assert value.startswith("#") or value == "data:,"
    assert re.findall(r"https?:|//\w|@import|url\(", text) == []
    (policy,) = (
        str(tag.attributes["content"])
        for tag in page.named("meta")
        if tag.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_of_many_questions_those_are_shown_on_which_strategies_differ() -> None:
    """How many is said; none is cut from a small comparison."""

    def knowing(prompts: Sequence[str]) -> list[str]:
        """Know the first questions by heart, whatever the order."""
        things = [shown(prompt)[0] for prompt in prompts]
        read = last(prompts)
        return [f"{n}x0" if n < 40 else answer for n, answer in zip(things, read, strict=True)]

    result = Comparison(ks=(4,)).run(knowing, codes(MOST_QUESTIONS + 40))
    page = Page(to_html(result))
    assert f"{MOST_QUESTIONS} of {MOST_QUESTIONS + 40} questions" in page.texts["summary"][0]
    things = [int(cell[14:-1]) for cell in page.texts["td"] if cell.startswith("What has thing")]
    assert things == [*range(40, MOST_QUESTIONS + 40)]
    assert "all 24 questions" in Page(to_html(ordinary())).texts["summary"][0]


def test_of_many_failures_the_first_are_shown() -> None:
    """Their number is that of all."""
    page = Page(to_html(compared(codes(150))))
    assert f"the first {MOST_FAILURES}:" in " ".join(page.texts["p"])
    assert page.texts["td"].count("the model is <tired>") == MOST_FAILURES
    assert "30 of 150 questions are left out" in " ".join(page.texts["p"])


def test_without_gold_there_are_no_plots_of_gold() -> None:
    """And the reports say why: retrieval is unknown, not nought; answers are compared."""
    result = compared(codes(20, gold=None))
    assert result.verdict.kind == "gain"
    assert (result.settings[0].hit_rates, {*result.settings[0].gold_ranks}) == ((), {None})
    page = Page(to_html(result))
    assert [title.split()[0] for title in _titles(page)] == ["Gain", "Mean"]
    assert "no question names its gold passages" in " ".join(page.texts["p"])


def test_shares_by_slot_are_said_to_be_of_the_questions_whose_gold_was_found() -> None:
    """Of k=3 the fourth passage is not among them; of k=4 it is, in all that were answered."""
    captions = " ".join(Page(to_html(compared(codes(20, gold=3), ks=(3, 4)))).texts["figcaption"])
    assert captions.count("% of ") == 1
    assert "Best gold passage by slot % of 16 found" in captions


def test_orders_of_fewer_passages_than_k_are_told() -> None:
    """Of the longest there are, as of spans, which are fewer; and of none nothing is said."""
    setting = ordinary().settings[1]
    for told, orders in {
        "3 2 1": [(2, 1, 0), (1, 0)],
        "2 1": [(1, 0), (1, 0)],
        "differ": [(2, 1, 0), (1, 0), (0, 1)],
        "1 2 3 4 5 6 … 10 11 12 13 14 15": [tuple(range(15))],
    }.items():
        strategy = replace(setting.strategies[0], orders=tuple((order,) for order in orders))
        passages = tuple(tuple(map(str, order)) for order in orders)
        assert order_text(replace(setting, passages=passages), strategy) == told


def test_one_question_gives_a_page_without_intervals() -> None:
    """Neither an interval nor a test exists."""
    page = Page(to_html(compared(codes(1))))
    assert page.texts["h1"][0].startswith("Too few questions")
    assert page.named("line", "interval") == []


def _titles(page: Page) -> list[str]:
    """Return the titles of the plots; the first title is the page's."""
    return page.texts["title"][1:]

"""The page: verdict, plots, the details of each setting, and how it was measured."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from xml.etree.ElementTree import Element

from shared_core.comparison.records import SettingResult, VerdictKind
from shared_core.comparison.report.html.elements import (
    NONE,
    definitions,
    document,
    element,
    folded,
    paragraph,
)
from shared_core.comparison.report.html.gold import rank_plot, slot_plot
from shared_core.comparison.report.html.intervals import accuracy_plot, gain_plot, gain_scale
from shared_core.comparison.report.html.outcomes import (
    failure_parts,
    question_table,
    retrieval_table,
    strategy_table,
)
from shared_core.comparison.report.markdown import (
    NOT_AVAILABLE,
    capitalised,
    empty_answer_lines,
    method_lines,
    questions_asked,
)
from shared_core.comparison.result import ComparisonResult
from shared_core.wording import counted

_IN_SHORT: Mapping[VerdictKind, str] = {
    "too_few": "too few questions to tell",
    "gain": "a strategy gains",
    "put_best_elsewhere": "the ranked order is worse than shuffling",
    "ranked_order_helps": "the ranked order helps",
    "no_difference": "no difference shown",
    "all_wrong": "no answer is right",
    "all_right": "every answer is right",
}


def to_html(result: ComparisonResult) -> str:
    """Return the report of a comparison as one HTML file.

    Style and script are in it, and it forbids the browser to load anything else. The same result
    gives the same text. It shows a part of long tables, and says so.
    """
    title = f"Does the order of the passages matter to {result.model}?"
    body = element(
        "body",
        NONE,
        element(
            "main",
            NONE,
            *_opening(result, title),
            *_gains(result),
            *_settings(result),
            element("section", NONE, *_method(result)),
        ),
        element("script", NONE, _asset("page.js")),
    )
    return document(element("html", {"lang": "en"}, _head(title), body))


def _head(title: str) -> Element:
    style, script = _asset("page.css"), _asset("page.js")
    # Only this style and this script: injected text would not be run.
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}"
    )
    metas: list[Mapping[str, str]] = [
        {"charset": "utf-8"},
        {"http-equiv": "Content-Security-Policy", "content": policy},
        {"name": "viewport", "content": "width=device-width, initial-scale=1"},
        {"name": "color-scheme", "content": "light dark"},
    ]
    return element(
        "head",
        NONE,
        *(element("meta", meta) for meta in metas),
        element("title", NONE, title),
        element("link", {"rel": "icon", "href": "data:,"}),  # otherwise the browser asks for one
        element("style", NONE, style),
    )


def _opening(result: ComparisonResult, title: str) -> Iterator[Element]:
    first, _, rest = result.verdict.text.partition("; ")
    yield element(
        "header",
        NONE,
        paragraph(title, "title"),
        element("h1", NONE, _sentence(first, result)),
        *([paragraph(_sentence(rest, result), "lead")] if rest else []),
        paragraph(
            f"{questions_asked(result)}, "
            f"{counted(len(result.settings), 'setting')}, "
            f"{counted(len(result.settings[0].strategies), 'strategy', 'strategies')}, "
            f"graded by {result.graders[0]}",
            "note",
        ),
    )


def _gains(result: ComparisonResult) -> Iterator[Element]:
    scale = gain_scale(result.settings)
    panels = (
        _figure(
            element("a", {"href": f"#setting-{number}"}, setting.name),
            _IN_SHORT[setting.verdict.kind],
            gain_plot(setting, scale, name=f"gain-{number}", level=1 - result.confidence),
        )
        for number, setting in enumerate(result.settings)
    )
    yield element("h2", NONE, "Gain over the ranked order")
    yield paragraph(
        f"Mean {result.graders[0]} less that of the ranked order, with its {result.confidence:.0%} "
        f"interval. Filled: shown, after correction for {counted(result.tests, 'comparison')} of "
        "this report. Hollow: not shown. Grey band: a difference that so many questions would show "
        f"with a chance below about {result.power:.0%}."
    )
    yield element("div", {"class": "panels"}, *panels)


def _settings(result: ComparisonResult) -> Iterator[Element]:
    for number, setting in enumerate(result.settings):
        text = f"{counted(len(setting.questions), 'question')} compared."
        if len(result.settings) > 1:  # otherwise it is the verdict at the top
            text = f"{_sentence(setting.verdict.text, result)} {text}"
        yield element(
            "section",
            {"id": f"setting-{number}"},
            element("h2", NONE, setting.name),
            paragraph(text),
            element("div", {"class": "panels"}, *_plots(result, setting, number)),
            strategy_table(result, setting),
            element("h3", NONE, "Retrieval"),
            retrieval_table(setting),
            *_left_out(result, setting),
            *map(paragraph, empty_answer_lines(setting)),
            question_table(result, setting),
        )


def _plots(result: ComparisonResult, setting: SettingResult, number: int) -> Iterator[Element]:
    grader = result.graders[0]
    plot = accuracy_plot(setting, name=f"accuracy-{number}", grader=grader)
    yield _figure(f"Mean {grader}", f"with {result.confidence:.0%} interval", plot)
    known = sum(bool(result.questions[question].gold) for question in setting.questions)
    if known:
        plot = rank_plot(setting, known, name=f"ranks-{number}")
        yield _figure("Best gold passage by rank", "questions", plot)
    if found := sum(rank is not None for rank in setting.gold_ranks):
        plot = slot_plot(setting, name=f"slots-{number}")
        note = f"% of {found:,} found"
        yield _figure("Best gold passage by slot", note, plot)


def _left_out(result: ComparisonResult, setting: SettingResult) -> Iterator[Element]:
    if setting.failures:
        yield element("h3", NONE, "Left out")
        yield from failure_parts(result, setting)


def _method(result: ComparisonResult) -> Iterator[Element]:
    yield element("h2", NONE, "How it was measured")
    yield from map(paragraph, method_lines(result))
    yield definitions(
        [
            ("model", result.model),
            ("identity", result.identity),
            ("embedding", result.embedding or NOT_AVAILABLE),
            ("position profile", result.profile or NOT_AVAILABLE),
            ("graders", ", ".join(result.graders)),
            ("random orders a question", str(result.shuffles)),
            ("seed", str(result.seed)),
            ("confidence, power", f"{result.confidence:g}, {result.power:g}"),
            ("posrag", result.version or NOT_AVAILABLE),
        ]
    )
    yield folded("The prompt", element("pre", NONE, result.template))


def _sentence(text: str, result: ComparisonResult) -> str:
    """Return a clause as a sentence; a strategy's name keeps its lower case."""
    names = {strategy.name for setting in result.settings for strategy in setting.strategies}
    return f"{text if text.partition(' ')[0] in names else capitalised(text)}."


def _figure(caption: Element | str, note: str, plot: Element) -> Element:
    small = element("span", {"class": "note"}, note)
    return element("figure", NONE, element("figcaption", NONE, caption, " ", small), plot)


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"

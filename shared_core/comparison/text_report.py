"""A comparison in Markdown: the verdict, and a table for each setting."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from shared_core.comparison.result import (
    ComparisonResult,
    Estimate,
    Failure,
    SettingResult,
    StrategyResult,
)
from shared_core.comparison.verdict import flip_text
from shared_core.evaluation.graders import MEANINGS
from shared_core.evaluation.significance import CONFIDENCE, PairedComparison
from shared_core.generation.responses import empty_lines
from shared_core.wording import counted, one_line

UNGRADED = {
    "logprob": "how probable the accepted answer is, the geometric mean over its tokens",
    "same": "1 is the answer in ranked order, 0 another one",
}
"""What stands in the place of a grader."""

NOT_AVAILABLE = "n/a"
LEVEL = f"{CONFIDENCE:.0%}"

_MARKS = re.compile(r"[\\`*<|&]|(?<=])\(")


def to_markdown(result: ComparisonResult) -> str:
    """Return the report of a comparison as Markdown; it ends with a line break."""
    return "\n\n".join(_blocks(result)) + "\n"


def _blocks(result: ComparisonResult) -> Iterator[str]:
    yield f"# Does the order of the passages matter to {escaped(result.model)}?"
    yield f"**{escaped(capitalised(result.verdict.text))}.**"
    ids = [each.id for each in result.questions]
    for setting in result.settings:
        yield f"## {escaped(setting.name)}"
        if len(result.settings) > 1:
            yield f"{escaped(capitalised(setting.verdict.text))}."
        yield "\n".join(_table(_rows(result, setting)))
        yield retrieval_line(setting)
        yield from flip_lines(setting)
        failed = [escaped(line) for line in failure_lines(setting.failures, ids)]
        if failed:
            yield failed[0]
            yield "\n".join(failed[1:])
        yield from empty_answer_lines(setting)
    if result.steps:
        yield "## What steps and layouts gain"
        yield "\n".join(f"- {escaped(line)}" for line in step_lines(result))
    yield "## How it was measured"
    yield escaped(method_text(result))


def _rows(result: ComparisonResult, setting: SettingResult) -> Iterator[Sequence[str]]:
    heads = (*result.graders, *(f"less {name}" for name in result.baselines))
    yield ("strategy", *(f"{head} [{LEVEL}]" for head in heads))
    for strategy in setting.strategies:
        yield (
            strategy.name,
            *(estimate_text(strategy.estimates[name]) for name in result.graders),
            *(difference(strategy, baseline) for baseline in result.baselines),
        )


def _table(rows: Iterator[Sequence[str]]) -> Iterator[str]:
    head = next(rows)
    yield _row(head)
    yield _row(["---", *("---:" for _ in head[1:])])
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """Return a text as Markdown that shows it, in one line: it makes no tag, code, cell or link.

    Underscores stay as they are, to keep the names of strategies readable in the file itself.
    """
    return _MARKS.sub(r"\\\g<0>", one_line(text))


def estimate_text(estimate: Estimate) -> str:
    """Return a mean with its interval, as ``0.71 [0.65, 0.77]``."""
    if estimate.interval is None:
        return f"{estimate.mean:.2f}"
    lower, upper = estimate.interval
    return f"{estimate.mean:.2f} [{lower:.2f}, {upper:.2f}]"


def difference(strategy: StrategyResult, baseline: str) -> str:
    """Return a difference with its interval and its corrected p-value; empty if there is none."""
    found = strategy.against.get(baseline)
    return "" if found is None else f"{signed(found)} p={found.adjusted:.2g}"


def signed(comparison: PairedComparison) -> str:
    """Return a difference with its interval, as ``+0.10 [+0.04, +0.16]``."""
    lower, upper = comparison.interval
    return f"{comparison.difference:+.2f} [{lower:+.2f}, {upper:+.2f}]"


def retrieval_line(setting: SettingResult) -> str:
    """Say how good the rankings are, as far as gold passages are known."""
    if not setting.gold_known:
        return f"Retrieval: {NOT_AVAILABLE}, since no question names its gold passages."
    rates = setting.hit_rates
    return (
        f"Retrieval, over {counted(setting.gold_known, 'question')} with gold passages: hit@1 "
        f"{rates[0]:.2f}, hit@{setting.k} {sum(rates):.2f}. By rank, the best one is found with "
        f"hit_rates=({', '.join(f'{rate:.3g}' for rate in rates)})."
    )


def flip_lines(setting: SettingResult) -> Iterator[str]:
    """Say how many answers change with the order, if that was measured."""
    if setting.flips is not None:
        yield f"{capitalised(flip_text(setting.flips))}."


def step_lines(result: ComparisonResult) -> Iterator[str]:
    """Say what each optional step gains, and for how much time, and what each layout gains."""
    verbs = {"better": "gains", "worse": "loses", "open": "is not shown to gain"}
    for each in result.steps:
        gained, low, high = (100 * value for value in (each.gain.difference, *each.gain.interval))
        cost = ""
        if each.seconds is not None:
            cost = f", for {each.seconds:.2g} s a question (median)"
            if gained > 0:
                cost += f": {gained / each.seconds:+,.2f} points a second"
        yield (
            f"{each.step} {verbs[each.gain.shown]} ({each.setting}): "
            f"{gained:+.1f} [{low:+.1f}, {high:+.1f}] points of {result.graders[0]}, "
            f"p={each.gain.adjusted:.2g}{cost}."
        )


def budget_text(result: ComparisonResult) -> str:
    """Say how many tokens of passages a prompt has, if that is limited."""
    if result.token_budget is None:
        return ""
    return f"Of the k passages a prompt has as many as about {result.token_budget:,} tokens hold. "


def failure_lines(
    failures: Sequence[Failure], ids: Sequence[str], where: str = "all strategies"
) -> Iterator[str]:
    """Say how many questions are left out of `where`, which, and why; `ids` are those of all.

    Ids and reasons do not break a line, whatever they contain; Markdown in them is not escaped.
    """
    if not failures:
        return
    yield f"{left_out(len(failures), len(ids), where)}:"
    reasons = Counter(failure.reason for failure in failures)
    for reason, count in reasons.most_common():
        first = next(each for each in failures if each.reason == reason)
        yield one_line(
            f"- {count:,}: {reason} (first: question {ids[first.question]}, {first.strategy})"
        )


def empty_answer_lines(setting: SettingResult) -> Iterator[str]:
    """Say how many of the answers to the questions that are compared are empty, if any."""
    texts = [
        text for strategy in setting.strategies for answers in strategy.answers for text in answers
    ]
    graded = "same" not in setting.strategies[0].estimates
    return empty_lines(sum(not text.strip() for text in texts), len(texts), graded=graded)


def left_out(count: int, total: int, where: str) -> str:
    """Say how many questions are left out of `where`."""
    verb, them = ("is", "it") if count == 1 else ("are", "them")
    return (
        f"{count:,} of {counted(total, 'question')} {verb} left out of {where}, because not every "
        f"answer to {them} could be had"
    )


def meanings(graders: Sequence[str]) -> str:
    """Say what posrag's own graders count as right; empty if there are none of them."""
    means = {**MEANINGS, **UNGRADED}
    known = [f"{name}: {means[name]}" for name in graders if name in means]
    return f"By {'; '.join(known)}. " if known else ""


def method_text(result: ComparisonResult) -> str:
    """Say how the figures came about."""
    decisive, *others = result.graders
    also = "".join(f", and by {name}" for name in others)
    tests = (
        ": one that excludes 0 shows nothing unless its p-value does, which is corrected for "
        f"{counted(result.tests, 'comparison')} (Holm)"
    )
    return (
        f"{counted(len(result.questions), 'question')}; graded by {decisive}, which decides{also}. "
        f"{meanings(result.graders)}{budget_text(result)}sequential is the ranked order, best "
        "first; the outcome under shuffle is the mean over "
        f"{counted(result.shuffles, 'random order')} (seed {result.seed}). In brackets {LEVEL} "
        f"intervals, each on its own{tests if result.baselines else ''}."
    )


def capitalised(text: str) -> str:
    """Return a sentence with its first letter in upper case; names such as ``u_shape`` stay."""
    return text if "_" in text.partition(" ")[0] else text[:1].upper() + text[1:]

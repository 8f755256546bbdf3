"""RankGPT: the model is prompted for a ranking of the passages (Sun et al. 2023)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TypeAlias

from shared_core.attention.rounds import Case, OneRound, PlacedAnswer, ask, scores_of
from shared_core.checking import check_counts_of
from shared_core.generation.models import Generator, as_generator
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.placement import Placement
from shared_core.sensitivity.curve import PositionalCurve

Window: TypeAlias = tuple[int, int]
"""Part [start, end) of a ranking."""

_NAMES = r"\[[-0-9,;\s]*\]"
_LINK = r"[\s*_]*(?:\([^()\[\]]*\)[\s*_]*)?(?:[<>=≥≤~,;][\s*_]*)+"
_JOINED = re.compile(rf"{_NAMES}(?:{_LINK}{_NAMES})+")


@dataclass(frozen=True, kw_only=True)
class RankedAnswer(PlacedAnswer):
    """An answer to documents in the order that the model itself gave.

    Attributes
    ----------
    named
        Documents that the model named, best first. The others rank after them, in their original
        order; if it named none, its ranking could not be used at all.
    ignored
        Number of identifiers that repeated a passage, or did not name one.
    """

    named: tuple[int, ...]
    ignored: int


@dataclass(frozen=True, kw_only=True)
class RankGPT:
    """Asks for a ranking of the documents, places them by it, and answers.

    It reads no attention, so any model will do. The ranking is an answer: let the model write about
    five tokens per passage.

    More than `window` documents are ranked in windows from the last ones to the first, each of
    which passes its best on to the next (Sun et al. 2023, section 3.2). Unlike theirs, passages are
    never truncated.

    Attributes
    ----------
    placement
        As in `OneRound`; by default the best document is next to the question, which is the default
        of GoodPositions.
    curve
        As in `OneRound`.
    template
        The prompt of the last round.
    window
        Most passages in one prompt, >= 2.
    step
        Number of passages by which the window moves, from 1 to ``window - 1``, so that the best of
        one window are in the next.

    Raises
    ------
    ValueError
        If a number is out of range; for the placement, as `OneRound`.
    """

    placement: str | Placement = "back_first"
    curve: PositionalCurve | None = None
    template: PromptTemplate = ANSWER
    window: int = 20
    step: int = 10

    def __post_init__(self) -> None:
        check_counts_of(self, {"window": 2, "step": 1})
        if self.step >= self.window:
            raise ValueError(f"step must be below the window of {self.window}, got {self.step}")
        self._answering  # noqa: B018 - building it checks the placement

    def run(
        self,
        model: object,
        cases: Sequence[Case],
        *,
        on_answer: Callable[[int], None] | None = None,
    ) -> list[RankedAnswer]:
        """Rank the documents of each case, and answer.

        The first answer of each result is the model's ranking as written, with several windows on
        separate lines. A case of fewer than two documents takes one round.

        Parameters
        ----------
        model
            A `Generator`, or what `as_generator` makes one of.
        cases
            What to answer.
        on_answer
            Called with the number of cases that have just received their final answer.

        Raises
        ------
        ValueError, TypeError, GenerationError
            As `OneRound.run`.
        """
        generator, answering = as_generator(model), self._answering
        ranked = self._ranked(generator, cases)
        orders = [
            answering.order(generator, case, each.order)
            for case, each in zip(cases, ranked, strict=True)
        ]
        answers = answering.answers(generator, cases, orders, on_answer=on_answer)
        return [
            each.answer(answer, order)
            for each, answer, order in zip(ranked, answers, orders, strict=True)
        ]

    @property
    def _answering(self) -> OneRound:
        return OneRound(placement=self.placement, curve=self.curve, template=self.template)

    def _ranked(self, model: Generator, cases: Sequence[Case]) -> list[_Ranking]:
        ranked = [_Ranking(case, [*range(len(case.documents))]) for case in cases]
        for turn in zip_longest(*(self._windows(len(case.documents)) for case in cases)):
            asked = [(each, window) for each, window in zip(ranked, turn, strict=True) if window]
            answers = ask(model, [each.prompt(window) for each, window in asked])
            for (each, window), answer in zip(asked, answers, strict=True):
                each.take(answer, window)
        return ranked

    def _windows(self, n: int) -> Iterator[Window]:
        """Yield parts [start, end) of a ranking of `n`, the last of which starts at the top."""
        for end in range(n, 1, -self.step):
            start = max(0, end - self.window)
            yield start, end
            if start == 0:
                return


@dataclass
class _Ranking:
    """A ranking under way, and what the model has written for it so far."""

    case: Case
    order: list[int]
    named: set[int] = field(default_factory=set)
    ignored: int = 0
    texts: list[str] = field(default_factory=list)

    def prompt(self, window: Window) -> str:
        inside = self.order[slice(*window)]
        return rankgpt_prompt(self.case.question, [self.case.documents[at] for at in inside])

    def take(self, text: str, window: Window) -> None:
        """Rank the documents of a window as a model's answer says.

        If one is repeated, its first mention counts; those that are not named follow in order.
        """
        inside = self.order[slice(*window)]
        mentioned = named_passages(text, len(inside))
        named = [inside[at] for at in dict.fromkeys(mentioned) if at is not None]
        self.order[slice(*window)] = [*dict.fromkeys([*named, *inside])]
        self.named.update(named)
        self.ignored += len(mentioned) - len(named)
        self.texts.append(text)

    def answer(self, text: str, order: tuple[int, ...]) -> RankedAnswer:
        return RankedAnswer(
            answer=text,
            first_answer="\n".join(self.texts) if self.texts else text,
            order=order,
            scores=scores_of(self.order),
            rounds=1 + len(self.texts),
            named=tuple(document for document in self.order if document in self.named),
            ignored=self.ignored,
        )


def rankgpt_prompt(question: str, passages: Sequence[str]) -> str:
    """Return the prompt that asks a model for a ranking of passages.

    RankGPT, Sun et al. 2023, in the words of GoodPositions, appendix F. The appendix prints ``<``
    between the identifiers; here it is ``>``, as in RankGPT, since the best come first.
    """
    number = len(passages)
    listed = "\n\n".join(f"[{at}] {passage}" for at, passage in enumerate(passages, start=1))
    return (
        "This is RankGPT, an intelligent assistant that can rank passages based on their "
        "relevancy to the query.\n\n"
        f"The following are {number} passages, each indicated by number identifier []. I can rank "
        f"them based on their relevance to query: {question}\n\n"
        f"{listed}\n\n"
        f"The search query is: {question}\n\n"
        f"I will rank the {number} passages above based on their relevance to the search query. "
        "The passages will be listed in descending order using identifiers, and the most relevant "
        "passages should be listed first, and the output format should be [] > [] > etc, e.g., "
        "[1] > [2] > etc.\n\n"
        f"The ranking results of the {number} passages (only identifiers) is:"
    )


def named_passages(answer: str, n: int) -> list[int | None]:
    """Return what each identifier in a model's answer names, in order; None for no passage.

    Identifiers are read in order, whatever is between them: those in brackets, such as
    ``[2] > [1]`` or ``[2, 1]``, or, without any brackets, numbers joined by ``>`` or ``<``. What
    comes before a ranking, as a model's thoughts do, is left out: reading begins at the longest run
    of identifiers in brackets that are joined by ``>`` or ``<``, the last of equally long ones, if
    there is any. Some of the run may be joined by commas or ``=``, or have a remark in parentheses
    behind them.

    Parameters
    ----------
    answer
        What the model wrote after `rankgpt_prompt`.
    n
        Number of passages.
    """
    runs = [run for run in _JOINED.finditer(answer) if re.search("[<>]", run[0])]
    if runs:
        longest = max(reversed(runs), key=lambda run: len(re.findall("[0-9]+", run[0])))
        answer = answer[longest.start() :]
    lists = re.findall(r"\[[0-9,;\s]*\]", answer)
    if not any(re.search("[0-9]", each) for each in lists):
        lists = re.findall(r"[0-9]+(?:\s*[<>]\s*[0-9]+)+", answer)
    passages = {str(identifier): identifier - 1 for identifier in range(1, n + 1)}
    return [passages.get(each) for each in re.findall("[0-9]+", " ".join(lists))]

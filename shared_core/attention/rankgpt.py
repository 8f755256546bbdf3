"""RankGPT: the model is prompted for a ranking of the passages (Sun et al. 2023)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from shared_core.attention.rounds import Case, OneRound, PlacedAnswer, ask, scores_of
from shared_core.generation.models import as_generator
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.placement import Placement
from shared_core.sensitivity.curve import PositionalCurve

_NAMES = r"\[[-0-9,;\s]*\]"
_LINK = r"[\s*_]*(?:\([^()\[\]]*\)[\s*_]*)?(?:[<>=≥≤~,;][\s*_]*)+"
_JOINED = re.compile(rf"{_NAMES}(?:{_LINK}{_NAMES})+")


@dataclass(frozen=True, kw_only=True)
class RankGPT:
    """Asks for a ranking of the documents, places them by it, and answers.

    It reads no attention, so any model will do. The ranking is an answer: let the model write about
    five tokens per passage.

    One prompt ranks all documents, where Sun et al. 2023 rank more than 20 of them in windows
    (section 3.2). Unlike theirs, passages are never truncated. Documents that the model does not
    name rank after the others, in their order; of one that it repeats, the first mention counts.

    Attributes
    ----------
    placement
        As in `OneRound`; by default the best document is next to the question, which is the default
        of GoodPositions.
    curve
        As in `OneRound`.
    template
        The prompt of the last round.

    Raises
    ------
    ValueError
        For the placement, as `OneRound`.
    """

    placement: str | Placement = "back_first"
    curve: PositionalCurve | None = None
    template: PromptTemplate = ANSWER

    def __post_init__(self) -> None:
        self._answering  # noqa: B018 - building it checks the placement

    def run(
        self,
        model: object,
        cases: Sequence[Case],
        *,
        on_answer: Callable[[int], None] | None = None,
    ) -> list[PlacedAnswer]:
        """Rank the documents of each case, and answer.

        The first answer of each result is the model's ranking as written. A case of fewer than two
        documents takes one round.

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
        several = [at for at, case in enumerate(cases) if len(case.documents) > 1]
        prompts = [rankgpt_prompt(cases[at].question, cases[at].documents) for at in several]
        said = dict(zip(several, ask(generator, prompts), strict=True))
        rankings = [
            ranking_in(said.get(at, ""), len(case.documents)) for at, case in enumerate(cases)
        ]
        orders = [
            answering.order(generator, case, ranking)
            for case, ranking in zip(cases, rankings, strict=True)
        ]
        answers = answering.answers(generator, cases, orders, on_answer=on_answer)
        return [
            PlacedAnswer(
                answer=answer,
                first_answer=said.get(at, answer),
                order=orders[at],
                scores=scores_of(rankings[at]),
                rounds=1 + (at in said),
            )
            for at, answer in enumerate(answers)
        ]

    @property
    def _answering(self) -> OneRound:
        return OneRound(placement=self.placement, curve=self.curve, template=self.template)


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


def ranking_in(answer: str, n: int) -> list[int]:
    """Return `n` passages as a model's answer ranks them, those that it does not name last.

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
    named = re.findall("[0-9]+", " ".join(lists))
    return [*dict.fromkeys([*(passages[each] for each in named if each in passages), *range(n)])]

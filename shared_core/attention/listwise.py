"""The prompt that asks a model for a ranking of passages, and how its answer is read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from shared_core.checking import check_count

_NAMES = r"\[[-0-9,;\s]*\]"
_LINK = r"[\s*_]*(?:\([^()\[\]]*\)[\s*_]*)?(?:[<>=≥≤~,;][\s*_]*)+"
_JOINED = re.compile(rf"{_NAMES}(?:{_LINK}{_NAMES})+")


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


def parse_permutation(answer: str, n: int) -> tuple[int, ...]:
    """Return the ranking given by a model's answer, best first; always a permutation of 0..n-1.

    Identifiers are read in order, whatever is between them: those in brackets, such as
    ``[2] > [1]`` or ``[2, 1]``, or, without any brackets, numbers joined by ``>`` or ``<``. What
    comes before a ranking, as a model's thoughts do, is left out: reading begins at the longest run
    of identifiers in brackets that are joined by ``>`` or ``<``, the last of equally long ones, if
    there is any. Some of the run may be joined by commas or ``=``, or have a remark in parentheses
    behind them. If an identifier is repeated, its first mention counts; one that is out of range is
    skipped; passages that are not named follow in order.

    Parameters
    ----------
    answer
        What the model wrote after `rankgpt_prompt`.
    n
        Number of passages, >= 0.

    Raises
    ------
    ValueError
        If `n` is negative.
    """
    check_count(n, "n", 0)
    named = [passage for passage in mentioned(answer, n) if passage is not None]
    return tuple(dict.fromkeys([*named, *range(n)]))


def mentioned(answer: str, n: int) -> list[int | None]:
    """Return the passage of each identifier that is read, in order; None where there is none."""
    runs = [run for run in _JOINED.finditer(answer) if re.search("[<>]", run[0])]
    if runs:
        longest = max(reversed(runs), key=lambda run: len(re.findall("[0-9]+", run[0])))
        answer = answer[longest.start() :]
    lists = re.findall(r"\[[0-9,;\s]*\]", answer)
    if not any(re.search("[0-9]", each) for each in lists):
        lists = re.findall(r"[0-9]+(?:\s*[<>]\s*[0-9]+)+", answer)
    passages = {str(identifier): identifier - 1 for identifier in range(1, n + 1)}
    return [passages.get(each) for each in re.findall("[0-9]+", " ".join(lists))]

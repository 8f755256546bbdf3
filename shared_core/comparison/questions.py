"""The data of a comparison: questions, the passages of a collection, and those found for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from shared_core.checking import check_several
from shared_core.generation.templates import ANSWER, PromptTemplate
from shared_core.scoring.fusion import EPS
from shared_core.sensitivity.questions import check_repeats
from shared_core.types import Passage


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, its answers, and what is known about its passages.

    Attributes
    ----------
    question
        What is asked.
    answers
        Accepted answers; none of a question that is only asked whether its answer changes with the
        order, see `Comparison`.
    ranking
        Ids of the passages that the user's own retriever returned, best first; pipeline
        ``"given"`` needs it.
    gold
        Ids of the passages that hold the answer. Without them answers are graded, but retrieval
        is not.
    keywords
        Keywords that must all be in the answer, for the keyword grader; `answers` if empty.
    id
        The user's id of the question; `ComparisonData` gives it its number, from 1, by default.

    Raises
    ------
    ValueError
        If the question or an answer is blank, or answers or keywords are a string.
    """

    question: str
    answers: tuple[str, ...] = ()
    ranking: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    id: str = ""

    def __post_init__(self) -> None:
        check_several(self.answers, "answers")
        check_several(self.keywords, "keywords")
        if not self.question.strip():
            raise ValueError(f"question must not be blank, got {self.question!r}")
        if not all(answer.strip() for answer in self.answers):
            raise ValueError(f"question {self.question!r} has a blank answer: {self.answers!r}")
        if not all(keyword.strip() for keyword in self.keywords):
            raise ValueError(f"question {self.question!r} has a blank keyword")


@dataclass(frozen=True, kw_only=True)
class RankedCase:
    """A question and the passages that a pipeline found for it, best first.

    Attributes
    ----------
    question
        What is asked.
    passages
        The passages.
    scores
        What they were ranked by, higher is better; None where only their order is known.
    template
        The prompt.
    """

    question: str
    passages: Sequence[Passage]
    scores: Sequence[float] | None = None
    template: PromptTemplate = ANSWER

    @property
    def documents(self) -> list[str]:
        """The texts of the passages."""
        return [passage.text for passage in self.passages]

    @property
    def relevance(self) -> tuple[float, ...]:
        """How relevant each passage is in comparison with the others, in [0, 1].

        The scores, min-max normalised; without them ``(k - rank) / k``, rank 0 being the best.
        """
        if self.scores is None:
            k = len(self.passages)
            return tuple((k - rank) / k for rank in range(k))
        lowest, highest = min(self.scores, default=0.0), max(self.scores, default=0.0)
        return tuple((score - lowest) / (highest - lowest + EPS) for score in self.scores)

    def top(self, k: int) -> RankedCase:
        """Return the same with the best `k` passages, or as many as there are."""
        return self.at(range(min(k, len(self.passages))))

    def at(self, ranks: Iterable[int]) -> RankedCase:
        """Return the same with some of its passages, in that order."""
        ranks = [*ranks]
        scores = None if self.scores is None else tuple(self.scores[rank] for rank in ranks)
        return replace(self, passages=tuple(self.passages[rank] for rank in ranks), scores=scores)


@dataclass(frozen=True, kw_only=True)
class ComparisonData:
    """Questions over a collection of passages.

    Attributes
    ----------
    questions
        At least one, and none twice: equal texts are one question if they have the same passages
        in `ranking`, or, without a ranking, the same answers.
    passages
        The collection, each id once. It holds every passage that a question names. Neighbour
        spans need ``doc_id`` and ``chunk_id`` in their metadata: a document, and the place in it.

    Raises
    ------
    ValueError
        If there are no questions, a question or an id occurs twice, or a question names a passage
        that is not in the collection.
    """

    questions: tuple[Question, ...]
    passages: tuple[Passage, ...]

    def __post_init__(self) -> None:
        if not self.questions:
            raise ValueError("no questions to compare on; give at least one")
        for question in self.questions:
            if bool(question.answers) != self.answered:
                raise ValueError(
                    f"some questions have accepted answers and some have none, as "
                    f"{question.question!r} or the first: give answers to all, or to none"
                )
        if len(self.by_id) < len(self.passages):
            ids = Counter(passage.id for passage in self.passages)
            raise ValueError(f"passage id {ids.most_common(1)[0][0]!r} occurs twice")
        for question in self.questions:
            for id in (*question.ranking, *question.gold):
                if id not in self.by_id:
                    raise ValueError(
                        f"question {question.question!r} names passage {id!r}, which is not there"
                    )
        called = tuple(
            each if each.id else replace(each, id=str(number))
            for number, each in enumerate(self.questions, start=1)
        )
        object.__setattr__(self, "questions", called)
        self._check_distinct()

    @cached_property
    def by_id(self) -> dict[str, Passage]:
        """Id -> passage."""
        return {passage.id: passage for passage in self.passages}

    @property
    def answered(self) -> bool:
        """Whether the questions have accepted answers."""
        return bool(self.questions[0].answers)

    def _check_distinct(self) -> None:
        """Raise ValueError if a question occurs twice, or two are reported under one id."""
        # Without a ranking equal texts retrieve the same: other answers alone are other evidence.
        texts = (frozenset(self.by_id[id].text for id in each.ranking) for each in self.questions)
        check_repeats(
            (each.question, found or frozenset(each.answers))
            for each, found in zip(self.questions, texts, strict=True)
        )
        seen: dict[str, int] = {}
        for number, each in enumerate(self.questions, start=1):
            first = seen.setdefault(each.id, number)
            if first != number:
                raise ValueError(
                    f"questions {first} and {number} are both called {each.id!r} in reports; give "
                    "each an id of its own"
                )


class Collection:
    """Collects passages, equal texts once; it begins with those of a file of documents."""

    def __init__(self, passages: Iterable[Passage] = ()) -> None:
        self._by_id = {passage.id: passage for passage in passages}
        self._unnamed: dict[str, str] = {}

    def __contains__(self, id: object) -> bool:
        return id in self._by_id

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The passages, in the order in which they were first added."""
        return tuple(self._by_id.values())

    def add(self, text: str, id: str | None = None) -> str:
        """Add a text unless it is there, and return its id: without one its number, as ``#1``.

        Raises
        ------
        ValueError
            If the text is blank, or the id is another text's.
        """
        if not text.strip():
            raise ValueError(f"a passage must not be blank, got {text!r}")
        if id is None:
            id = self._unnamed.setdefault(text, f"#{len(self._unnamed) + 1}")
        if self._by_id.setdefault(id, Passage(id, text)).text != text:
            raise ValueError(f"passage id {id!r} stands for two different texts")
        return id

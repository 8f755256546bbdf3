"""Data whose truth is known, and models that read it by simple rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from instruments.corpus import held_out_questions
from shared_core import Passage
from shared_core.comparison import ComparisonData, Question

Function = Callable[[Sequence[str]], list[str]]


def reader_data(n: int, *, k: int, ranks: Sequence[int], seed: int) -> ComparisonData:
    """Return the readers' questions, ranked by a retriever that puts gold at `ranks` in turn."""
    questions, passages = [], []
    for number, each in enumerate(held_out_questions(n, k=k, seed=seed)):
        rank = ranks[number % len(ranks)]
        texts = [str(text) for text in each["distractors"]]
        texts.insert(rank, str(each["gold"]))
        ids = tuple(f"q{number}-{place}" for place in range(k))
        passages += map(Passage, ids, texts)
        questions.append(
            Question(
                question=str(each["question"]),
                answers=tuple(each["answers"]),
                ranking=ids,
                gold=(ids[rank],),
            )
        )
    return ComparisonData(questions=tuple(questions), passages=tuple(passages))


def numbered(data: ComparisonData) -> ComparisonData:
    """Return the same data, whose passages say which document they are of, and where in it."""
    passages = (
        replace(each, metadata={"doc_id": each.id.split("-")[0], "chunk_id": int(each.id[-1])})
        for each in data.passages
    )
    return replace(data, passages=tuple(passages))


def codes(n: int, *, k: int = 4, gold: int | None = 0) -> ComparisonData:
    """Return questions on codes; passage `gold` holds the answer, and None leaves that unsaid."""
    questions, passages = [], []
    for number in range(n):
        ids = tuple(f"{number}-{place}" for place in range(k))
        texts = [f"thing {number} has {number}x{place}" for place in range(k)]
        passages += map(Passage, ids, texts)
        at = gold or 0
        questions.append(
            Question(
                question=f"What has thing {number}?",
                answers=(f"{number}x{at}",),
                ranking=ids,
                gold=() if gold is None else (ids[at],),
            )
        )
    return ComparisonData(questions=tuple(questions), passages=tuple(passages))


def shown(prompt: str) -> tuple[int, list[str]]:
    """Return the number of the thing asked for, and the codes in the order of the prompt."""
    context, _, question = prompt.partition("\n\nQuestion: ")
    number = int(question.split("thing ")[1].partition("?")[0])
    return number, [line.rpartition(" ")[2] for line in context.splitlines() if " has " in line]


def first(prompts: Sequence[str]) -> list[str]:
    """Answer with the code of the first passage."""
    return [shown(prompt)[1][0] for prompt in prompts]


def last(prompts: Sequence[str]) -> list[str]:
    """Answer with the code of the last passage."""
    return [shown(prompt)[1][-1] for prompt in prompts]


def smallest(prompts: Sequence[str]) -> list[str]:
    """Answer with the smallest code, wherever it stands."""
    return [min(shown(prompt)[1]) for prompt in prompts]


def refusing(refused: Callable[[int, list[str]], bool], reason: str = "refused") -> Function:
    """Return a model that answers like `last`, but fails where `refused` is true of `shown`."""

    def answer(prompts: Sequence[str]) -> list[str]:
        if any(refused(*shown(prompt)) for prompt in prompts):
            raise RuntimeError(reason)
        return last(prompts)

    return answer


class Counting:
    """A model that answers like a function, and remembers what it was asked."""

    name = "counting"
    batch_size = 4

    def __init__(self, function: Function) -> None:
        self.function = function
        self.asked: list[str] = []

    def generate(self, prompts: Sequence[str]) -> list[str]:
        self.asked += prompts
        return self.function(prompts)

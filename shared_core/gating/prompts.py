"""What models are asked for the gate: the final prompt, transformed queries, pseudo-queries."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shared_core.checking import check_count
from shared_core.errors import GenerationError
from shared_core.generation import Journal, ModelClient, as_generator
from shared_core.generation.templates import ANSWER, PromptTemplate

Transform: TypeAlias = Callable[[str], str]
"""Query -> text to embed and search."""

QUESTIONS = 3
"""Pseudo-queries per passage, as in CAG."""

CHAIN_OF_THOUGHT = (
    "Answer the question from what you know. Think step by step, and end with the answer."
    "\n\nQuestion: {question}\nAnswer:"
)

REWRITE = (
    "Rewrite the question as one short, complete search query. Give the query alone.\n\n"
    "Question: {query}\nQuery:"
)

PASSAGE = (
    "Write a short passage that could stand in a reference work and answers the question.\n\n"
    "Question: {query}\nPassage:"
)

PSEUDO_QUERIES = (
    "Write {count} questions that people would ask and that the passage below answers. Ask each "
    "in words of your own, on a line of its own, without numbers.\n\nPassage:\n{passage}\n\n"
    "Questions:"
)
"""Asks for pseudo-queries; ``{count}`` and ``{passage}`` are filled in."""

_NUMBERING = re.compile(r"^\s*(?:\d{1,2}\s*[-.):](?!\d)|[-*•])\s*")
_BEFORE, _AFTER = "\ninput is ", "\n"


def _check_once(prompt: str, name: str, placeholder: str) -> None:
    if (count := prompt.count(placeholder)) != 1:
        raise ValueError(f"{name} must hold {placeholder} once, got it {count} times")


@dataclass(frozen=True, kw_only=True)
class GatedPrompts:
    """The prompts with context and without.

    Attributes
    ----------
    context
        The prompt with retrieved passages.
    direct
        The prompt without: `CHAIN_OF_THOUGHT` or a custom one, with examples in it for few-shot.
        Must contain ``{question}`` once; all other braces are text.

    Raises
    ------
    ValueError
        If the placeholder is missing or repeated.
    """

    context: PromptTemplate = ANSWER
    direct: str = CHAIN_OF_THOUGHT

    def __post_init__(self) -> None:
        _check_once(self.direct, "direct", "{question}")

    def render(self, question: str, passages: Sequence[str] | None) -> str:
        """Return the prompt.

        Parameters
        ----------
        question
            The question.
        passages
            The retrieved passages; None or empty: the direct prompt is used.
        """
        if passages:
            return self.context.render(passages, question)
        return self.direct.replace("{question}", question)


def rewriting(model: object, *, prompt: str = REWRITE) -> Transform:
    """Return a transform that lets a model rewrite the query.

    Parameters
    ----------
    model
        See `shared_core.generation.as_generator`.
    prompt
        Must contain ``{query}`` once; all other braces are text.

    Raises
    ------
    ValueError
        If `prompt` does not contain ``{query}`` once. The transform raises `GenerationError` if
        the model gives an empty answer.
    """
    _check_once(prompt, "prompt", "{query}")
    generator = as_generator(model)

    def transform(query: str) -> str:
        (answer,) = generator.generate([prompt.replace("{query}", query)])
        if not answer.strip():
            raise GenerationError(f"model {generator.name!r} made nothing of the query {query!r}")
        return answer.strip()

    return transform


def hyde(model: object, *, prompt: str = PASSAGE) -> Transform:
    """Return a transform that lets a model write a passage that answers the query (HyDE).

    The text resembles a passage, whatever the query is about, so all similarities are higher; a
    gate that is fitted with the transform allows for it. Parameters and errors are those of
    `rewriting`.
    """
    return rewriting(model, prompt=prompt)


def unwrapped(query: str) -> str:
    r"""Return the query that LlamaIndex's RetrieverTool has wrapped as ``"\\ninput is <q>\\n"``.

    Returns a query that is not wrapped unchanged.
    """
    if query.startswith(_BEFORE) and query.endswith(_AFTER):
        return query[len(_BEFORE) : -len(_AFTER)]
    return query


def generate_pseudo_queries(
    texts: Iterable[str],
    model: object,
    *,
    count: int = QUESTIONS,
    prompt: str = PSEUDO_QUERIES,
    journal: Journal | None = None,
    on_answer: Callable[[int], None] | None = None,
) -> list[list[str]]:
    """Let a model write questions that each passage answers.

    Parameters
    ----------
    texts
        The passages.
    model
        See `shared_core.generation.as_generator`.
    count
        Questions per passage, >= 1. A passage may get fewer.
    prompt
        Must contain ``{passage}`` once, and may contain ``{count}``; all other braces are text.
    journal
        Keeps the answers, so that nothing is asked twice.
    on_answer
        Called with the number of passages done since the last call.

    Raises
    ------
    ValueError
        If `count` or `prompt` is invalid.
    GenerationError
        If the model fails, or writes no questions at all.
    """
    check_count(count, "count")
    _check_once(prompt, "prompt", "{passage}")
    head, tail = prompt.replace("{count}", str(count)).split("{passage}")
    generator = as_generator(model)
    client = ModelClient.of(generator, journal=journal)
    answers = client.answers([(head + text + tail,) for text in texts], on_answer=on_answer)
    questions = [_questions(str(answer), count) for answer in answers]
    if questions and not any(questions):
        raise GenerationError(
            f"model {generator.name!r} wrote no question, but: {answers[0]!r:.200}"
        )
    return questions


def _questions(answer: str, count: int) -> list[str]:
    lines = (_NUMBERING.sub("", line, count=1).strip() for line in answer.splitlines())
    return [line for line in lines if line][:count]

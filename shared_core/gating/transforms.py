"""Transforms of a query before the gate compares it, by a language model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from shared_core.errors import GenerationError
from shared_core.generation import as_generator

Transform: TypeAlias = Callable[[str], str]
"""Query -> text to embed."""

REWRITE = (
    "Rewrite the question as one short, complete search query. Give the query alone.\n\n"
    "Question: {query}\nQuery:"
)

PASSAGE = (
    "Write a short passage that could stand in a reference work and answers the question.\n\n"
    "Question: {query}\nPassage:"
)

_BEFORE, _AFTER = "\ninput is ", "\n"


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
    if prompt.count("{query}") != 1:
        raise ValueError(f"prompt must hold {{query}} once, got {prompt!r}")
    generator = as_generator(model)

    def transform(query: str) -> str:
        (answer,) = generator.generate([prompt.replace("{query}", query)])
        if not answer.strip():
            raise GenerationError(f"model {generator.name!r} made nothing of the query {query!r}")
        return answer.strip()

    return transform


def hyde(model: object, *, prompt: str = PASSAGE) -> Transform:
    """Return a transform that lets a model write a passage that answers the query (HyDE).

    The text resembles a passage, whatever the query is about, so all similarities are higher: the
    gate must be fitted on queries transformed in the same way. Parameters and errors are those of
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

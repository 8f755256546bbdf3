"""What happens to a query before the gate compares it: nothing, or a model's rewriting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from shared_core.errors import GenerationError
from shared_core.generation import as_generator

Transform: TypeAlias = Callable[[str], str]
"""Query in, text to embed out."""

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
    """Return a transform that has a model rewrite the query.

    Parameters
    ----------
    model
        See `shared_core.generation.as_generator`.
    prompt
        Holds ``{query}`` once; every other brace is text.

    Raises
    ------
    ValueError
        If `prompt` does not hold ``{query}`` once. When applied, `GenerationError` if the model
        answers with nothing.
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
    """Return a transform that has a model write the passage it would like to find (HyDE).

    The text resembles a passage, not a question, and a model writes one about anything: the
    similarities lie higher throughout, and the gate must be fitted on queries that went the
    same way. Parameters and errors are those of `rewriting`.
    """
    return rewriting(model, prompt=prompt)


def unwrapped(query: str) -> str:
    r"""Return the query that LlamaIndex's RetrieverTool has wrapped as ``"\\ninput is <q>\\n"``.

    A query that is not wrapped comes back as it is.
    """
    if query.startswith(_BEFORE) and query.endswith(_AFTER):
        return query[len(_BEFORE) : -len(_AFTER)]
    return query

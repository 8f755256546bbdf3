"""Models that answer the questions of the CAUS benchmark, named as module:attribute."""

from __future__ import annotations

from collections.abc import Sequence

from shared_core.corpora import torch_queries
from tests.cli.interrupting import count

_BY_QUERY = {query.query: query for query in torch_queries()}


def reader(prompts: Sequence[str]) -> list[str]:
    """Write the required call if its documentation is in the prompt, else the keywords alone."""
    answers = []
    for prompt in prompts:
        context, _, rest = prompt.partition("\n\nQuestion: ")
        query = _BY_QUERY[rest.removesuffix("\nCall:")]
        found = f"\n{query.api}(" in context
        answers.append(
            f"```python\ny = {query.required}\n```" if found else " ".join(query.keywords)
        )
    return answers


def interrupted(prompts: Sequence[str]) -> list[str]:
    """Answer like `reader`, count the prompts in a file, and be interrupted after some."""
    count(prompts)
    return reader(prompts)


def picky(prompts: Sequence[str]) -> list[str]:
    """Answer like `reader`, but refuse every prompt of the third query."""
    third = torch_queries()[2].query
    if any(f"\n\nQuestion: {third}\n" in prompt for prompt in prompts):
        raise RuntimeError("refused")
    return reader(prompts)


def refusing(prompts: Sequence[str]) -> list[str]:
    """Answer nothing."""
    raise RuntimeError("refused")

"""Models that answer the questions of the CAUS benchmark, named as module:attribute."""

from __future__ import annotations

from collections.abc import Sequence

from shared_core.corpora import torch_queries

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

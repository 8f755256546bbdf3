"""The CAUS benchmark: 52 developers' questions, each answered by one call of the PyTorch API.

CAUS (section IV-A) was measured on 52 such questions in three levels, which were not published.
These are our own; `torch_api_passages` is the corpus that answers them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, TypeAlias

Level: TypeAlias = Literal["basic", "intermediate", "signature"]


@dataclass(frozen=True, kw_only=True)
class TorchQuery:
    """A task in a developer's words, and the call that does it.

    Attributes
    ----------
    id
        Level and number, as ``basic-01``.
    level
        ``"basic"``; ``"intermediate"``; or ``"signature"``, where the order or names of the
        arguments are easily wrong, mostly because they have changed between versions.
    query
        The question. It names every variable of the call, and never the API.
    api
        Id of the gold passage: the API's qualified name.
    required
        The call that the answer must contain: required arguments by position, others by name in the
        order of the signature, without those that have their default. The name is cut to a suffix
        that no other entry has, so that each customary way to import it matches.
    keywords
        What the answer must contain, all of it, for the keyword match.
    changed
        What has changed, or is easily confused, at the level ``"signature"``; else None.
    """

    id: str
    level: Level
    query: str
    api: str
    required: str
    keywords: tuple[str, ...]
    changed: str | None = None

    @property
    def answers(self) -> tuple[str, ...]:
        """The required call with either kind of quotes, for the grader ``"em"``."""
        return tuple(dict.fromkeys([self.required, self.required.replace('"', "'")]))


def torch_queries() -> list[TorchQuery]:
    """Return the 52 questions: 18 basic, 17 intermediate, 17 signature-sensitive, in this order.

    They need no torch; the calls are those of torch 2.6 and later.
    """
    text = files("shared_core.corpora").joinpath("torch_queries.jsonl").read_text("utf-8")
    return [_query(json.loads(line)) for line in text.splitlines()]


def _query(fields: dict[str, Any]) -> TorchQuery:
    return TorchQuery(**{**fields, "keywords": tuple(fields["keywords"])})

"""Rerankers named on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from shared_core import PosragError
from shared_core._extras import require
from shared_core.cli.console import quiet_transformers
from shared_core.cli.models import import_named
from shared_core.cli.options import RERANKER_HELP
from shared_core.comparison.retrieval import RERANKED, Pipeline, Reranker
from shared_core.generation.loading import first_line


class CrossEncoder:
    """A cross-encoder of sentence-transformers that remembers what it has scored.

    Parameters
    ----------
    name
        Folder or hub name; it is loaded at the first use.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._known: dict[tuple[str, str], float] = {}

    def __call__(self, question: str, texts: Sequence[str]) -> list[float]:
        """Return how relevant each text is to the question; higher is better."""
        pairs = [(question, text) for text in texts]
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        if new:
            scores = self._loaded.predict(new, show_progress_bar=False)
            self._known.update(zip(new, map(float, scores), strict=True))
        return [self._known[pair] for pair in pairs]

    @cached_property
    def _loaded(self) -> Any:
        quiet_transformers()
        package: Any = require("sentence_transformers", extra="models")
        try:
            return package.CrossEncoder(self._name)
        except Exception as error:  # what a missing model raises differs with the cause
            raise PosragError(
                f"cannot load the reranker {self._name!r} ({first_line(error)}); give the "
                "folder or hub name of a cross-encoder"
            ) from error


def open_reranker(name: str | None, pipelines: Sequence[str]) -> Reranker | None:
    """Return the reranker of ``--reranker``, if there is one.

    Raises
    ------
    ValueError
        If it has nothing to do, as none of the pipelines is reranked, or is no function.
    """
    if name is None:
        return None
    if not any(Pipeline(each).reranked for each in pipelines):
        raise ValueError(
            f"--reranker {name} is for pipelines with {RERANKED}, and none is given; use "
            f"--pipelines given{RERANKED}, hybrid{RERANKED} or another"
        )
    module, colon, attribute = name.partition(":")
    if colon and not Path(name).exists():
        found = import_named(module, attribute, "reranker", f"give a {RERANKER_HELP}")
        return cast(Reranker, found)
    return CrossEncoder(name)

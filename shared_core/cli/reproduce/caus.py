"""The experiments of CAUS (section IV) on our 52 questions: Tables I, II and III."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from shared_core import CAUS, Arrangement
from shared_core.arrays import Scores
from shared_core.corpora import TorchQuery
from shared_core.corpora.docstrings import whole_words
from shared_core.evaluation import GRADERS, grade, retrieval_measures
from shared_core.generation.templates import PromptTemplate
from shared_core.sensitivity import Psi

LONGEST_PASSAGE = 1200
"""Characters of a passage in the prompt: the signature, and what the first arguments mean."""

CALL = PromptTemplate(
    "Use the documentation to answer the question with a single call. Write out the name of the "
    "function or class; call a method on the variable that the question names. Give required "
    "arguments by position and others by name, in the order of the signature, and leave out those "
    "that keep their default. Give the call alone."
    "\n\nDocumentation:\n{context}\n\nQuestion: {question}\nCall:"
)

MODELS = ("Phi-3", "Mistral", "Qwen-2.5")
"""The models of the paper's Table I, in its order; Tables II and III are of the last one."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """One row of a table.

    Attributes
    ----------
    table
        Number of the table.
    name
        Name of the row.
    caus
        How passages are scored and placed.
    published
        Exact match and keyword match of the paper, in percent, model by model; either may be
        empty.
    """

    table: str
    name: str
    caus: CAUS
    published: Mapping[str, tuple[float, ...]]


def configurations(psi: Psi) -> Iterator[Configuration]:
    """Yield the rows of the tables, top down.

    Parameters
    ----------
    psi
        What the gate of CAUS knows of the model. Base RAG never places, Static U-RAG always.
    """
    base = CAUS(alpha=1.0, psi="never"), {"em": (11.5, 15.4, 17.3), "kw": (21.2, 44.2, 73.1)}
    static = CAUS(alpha=1.0, psi="always"), {"em": (13.5, 17.3, 21.2), "kw": (25.0, 53.8, 78.8)}
    full = CAUS(psi=psi), {"em": (71.2, 78.8, 86.5), "kw": (75.0, 80.8, 90.4)}
    methods = {"Base RAG": base, "Static U-RAG": static, "CAUS U-RAG": full}
    for name, (caus, published) in methods.items():
        yield Configuration(table="I", name=name, caus=caus, published=published)
    for alpha, em in ((0.9, 82.7), (0.5, 86.5), (0.3, 88.5)):
        yield Configuration(
            table="II",
            name=f"alpha {alpha}",
            caus=CAUS(alpha=alpha, psi=psi),
            published={"em": (em,)},
        )
    yield Configuration(
        table="II", name="alpha auto", caus=CAUS(alpha="auto", psi=psi), published={}
    )
    for k, em in ((3, 84.6), (5, 84.6), (7, 88.5), (10, 84.6), (12, 90.4), (15, 86.5)):
        yield Configuration(
            table="III", name=f"k {k}", caus=CAUS(k=k, psi=psi), published={"em": (em,)}
        )


@dataclass(frozen=True)
class Measured:
    """What a configuration retrieved and, where a model was asked, what came of it.

    Attributes
    ----------
    configuration
        The row.
    queries
        The questions.
    arrangements
        The passages in the prompt of each question, in order.
    answers
        The model's answer to each; None without a model.
    """

    configuration: Configuration
    queries: Sequence[TorchQuery]
    arrangements: Sequence[Arrangement]
    answers: Sequence[str] | None = field(default=None)

    @property
    def prompts(self) -> list[str]:
        """What a model is asked, question by question."""
        return [
            CALL.render(
                [whole_words(passage.text, LONGEST_PASSAGE) for passage in arrangement.passages],
                query.query,
            )
            for query, arrangement in zip(self.queries, self.arrangements, strict=True)
        ]

    @cached_property
    def ranks(self) -> list[int | None]:
        """Rank of the gold passage from 0, None where it was not retrieved."""
        return [
            _position(query.api, [passage.id for passage in arrangement.ranking.passages])
            for query, arrangement in zip(self.queries, self.arrangements, strict=True)
        ]

    @cached_property
    def slots(self) -> list[int | None]:
        """Slot of the gold passage from 0, None where it was not retrieved."""
        return [
            None if rank is None else arrangement.slots.index(rank)
            for rank, arrangement in zip(self.ranks, self.arrangements, strict=True)
        ]

    @cached_property
    def values(self) -> dict[str, Scores]:
        """Outcome of each question by measure, shape (n,), in [0, 1].

        ``hit`` and ``ndcg`` at the configuration's k; ``edge``: 1 if the gold passage is in
        the first or the last slot; ``em`` and ``kw`` if a model was asked.
        """
        k = self.configuration.caus.k
        found = retrieval_measures(
            {
                query.id: [passage.id for passage in arrangement.ranking.passages]
                for query, arrangement in zip(self.queries, self.arrangements, strict=True)
            },
            {query.id: {query.api: 1} for query in self.queries},
            [f"hit@{k}", f"nDCG@{k}"],
        )
        values = {
            "hit": found[f"hit@{k}"],
            "ndcg": found[f"nDCG@{k}"],
            "edge": np.array([float(slot in (0, k - 1)) for slot in self.slots]),
        }
        if self.answers is not None:
            both = [*zip(self.queries, self.answers, strict=True)]
            values["em"] = np.array([grade(GRADERS["em"], text, q.answers) for q, text in both])
            values["kw"] = np.array([grade(GRADERS["kw"], text, q.keywords) for q, text in both])
        return values


def _position(wanted: str, ids: Sequence[str]) -> int | None:
    return ids.index(wanted) if wanted in ids else None

"""The gate behind a query transformation: rewriting and HyDE, by a model or by stand-ins for one.

No stand-in measures a language model. Rewriting by rule keeps a query's five most telling words;
the oracle is what HyDE could do at best, see `benchmarks.gating_oracle`. ``--llm`` adds both
transformations by a model of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.gating_collections import (
    OTHERS,
    SEED,
    Embed,
    Split,
    balanced,
    best_edge,
    fit,
    highest,
    measured,
)
from benchmarks.gating_oracle import oracle
from shared_core.cli.console import Console
from shared_core.gating import (
    EVERYDAY_QUESTIONS,
    ContextGate,
    Transform,
    VectorCandidates,
    WordCoverage,
    hyde,
    key_phrases,
    rewriting,
)
from shared_core.gating.words import telling_words
from shared_core.generation import Generator, Journal, ModelClient, as_generator


@dataclass(frozen=True)
class Model:
    """A language model to transform by.

    Attributes
    ----------
    generator
        The model.
    questions
        How many of each kind it is asked about, drawn by chance.
    cache
        Keeps its answers, so that a run that was interrupted goes on.
    """

    generator: Generator
    questions: int
    cache: Path


def transforms(splits: list[Split], embed: Embed, model: Model | None) -> None:
    """Print how the gate does behind each transformation, and what labels could make of it."""
    print("\nQuery transformations before a gate on key phrases; 'best': the edge by labels")
    print("The rule stands in for a model, the oracle is a bound; neither measures a model")
    by_model, most = ({}, None) if model is None else (_by_model(model), model.questions)
    for each in splits:
        print(f"\n{each.collection.name}")
        print(f"  {'always retrieve':27}recall / specificity 1.00/0.00 -> 0.500")
        _show("none", *_through(each, None, embed))
        _show("rewriting (key words only)", *_through(each, _by_rule(each), embed))
        if OTHERS in each.negatives:
            _show("HyDE, oracle", *oracle(each, [one.collection for one in splits], embed))
        for name, transform in by_model.items():
            _show(name, *_through(each, transform, embed, most))


def _show(
    name: str, gate: VectorCandidates, positives: np.ndarray, negatives: dict[str, np.ndarray]
) -> None:
    edge = gate.levels.edge
    cells = []
    for side, found in negatives.items():
        best = balanced(positives, found, best_edge(positives, found))
        cells.append(f"{side}: {measured(positives >= edge, found < edge)}, best {best:.3f}")
    print(f"  {name:27}edge {edge:.3f}  " + "   ".join(cells))


def _through(
    each: Split, transform: Transform | None, embed: Embed, most: int | None = None
) -> tuple[VectorCandidates, np.ndarray, dict[str, np.ndarray]]:
    """Return the gate, and the highest similarities of positives and of negatives."""
    # Only the hook that every host calls is used of it.
    hook = ContextGate(candidates=VectorCandidates(policy="density"), transform=transform)
    rng = np.random.default_rng(SEED)

    def drawn(count: int) -> np.ndarray:
        return np.sort(rng.permutation(count)[:most])

    def prepared(texts: Sequence[str]) -> np.ndarray:
        with Console().progress() as bar:
            return embed([hook.prepare(text) for text in bar.track(texts)])

    def nearest(texts: Sequence[str]) -> np.ndarray:
        return highest(prepared([texts[row] for row in drawn(len(texts))]), each.vectors)

    owners, phrases = drawn(len(each.rows)), key_phrases(each.texts)
    pseudo = prepared([phrases[row] for row in owners])
    gate = fit(each.vectors, owners, pseudo, prepared(EVERYDAY_QUESTIONS))
    negatives = {
        side: nearest([text for part in asked for text in part.texts])
        for side, asked in each.negatives.items()
    }
    return gate, nearest(each.positives.texts), negatives


def _by_rule(each: Split) -> Transform:
    words = WordCoverage()
    words.add(each.texts)

    def rewritten(queries: Sequence[str]) -> list[str]:
        return [telling_words(query, words) for query in queries]

    return rewriting(as_generator(rewritten), prompt="{query}")


def _by_model(model: Model) -> dict[str, Transform]:
    client = ModelClient.of(model.generator, journal=Journal(model.cache / "answers.jsonl"))

    def kept(prompts: Sequence[str]) -> list[str]:
        return [str(answer) for answer in client.answers([(prompt,) for prompt in prompts])]

    by: dict[str, Callable[..., Transform]] = {"rewriting": rewriting, "HyDE": hyde}
    answers = as_generator(kept, name=model.generator.name)
    return {f"{how} ({model.generator.name})": make(answers) for how, make in by.items()}

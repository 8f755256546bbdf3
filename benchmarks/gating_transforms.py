"""The gate behind a query transformation: rewriting and HyDE, by a model or by stand-ins for one.

No stand-in measures a language model. Rewriting by rule keeps a query's five most telling words;
the oracle is what HyDE could do at best, see `benchmarks.gating_oracle`. ``--llm`` adds both
transformations by a model of one's own, and a gate that is fitted on questions it wrote; these and
the plain question are put to the same draw of questions, and the differences are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gating_collections import (
    OTHERS,
    SEED,
    Asked,
    Embed,
    Split,
    balanced,
    best_edge,
    fit,
    highest,
    key_phrases,
    measured,
)
from benchmarks.gating_oracle import oracle
from shared_core.evaluation import paired_difference_interval
from shared_core.gating import (
    EVERYDAY_QUESTIONS,
    Transform,
    VectorCandidates,
    WordCoverage,
    generate_pseudo_queries,
    rewriting,
)
from shared_core.gating.prompts import PASSAGE, REWRITE
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


Found = tuple[VectorCandidates, np.ndarray, dict[str, np.ndarray]]
"""A gate, and the highest similarities of positives and of negatives."""

Figures = dict[str, Any]
"""What is shown, for JSON."""

Pseudo = tuple[np.ndarray, list[str]]
"""Rows of a split's passages, and the pseudo-queries about them."""


def transforms(splits: list[Split], embed: Embed, model: Model | None) -> list[Figures]:
    """Print how the gate does behind each transformation, and what labels could make of it."""
    shown: list[Figures] = []
    print("\nQuery transformations before a gate on key phrases; 'best': the edge by labels")
    print("The rule stands in for a model, the oracle is a bound; neither measures a model")
    for each in splits:
        print(f"\n{each.collection.name}")
        print("  always retrieve: recall / specificity 1.00 / 0.00 -> 0.500")
        phrases = np.arange(len(each.rows)), key_phrases(each.texts)
        rows = [
            _show("none", _through(each, None, embed, phrases)),
            _show("rewriting (key words only)", _through(each, _by_rule(each), embed, phrases)),
        ]
        if OTHERS in each.negatives:
            asked = [one.collection for one in splits]
            rows.append(_show("HyDE, oracle", oracle(each, asked, embed)))
        if model is not None:
            rows += _by_model(each, model, embed, phrases)
        shown += [{"collection": each.collection.name, **row} for row in rows]
    return shown


def _show(name: str, found: Found, plain: Found | None = None) -> Figures:
    gate, positives, negatives = found
    print(f"  {name}: edge {gate.edge:.3f}")
    sides: Figures = {}
    for side, refused in negatives.items():
        yes, no = positives >= gate.edge, refused < gate.edge
        best = balanced(positives, refused, best_edge(positives, refused))
        print(f"    {side}: {measured(yes, no)}, best {best:.3f}")
        sides[side] = {
            "positives": len(yes),
            "negatives": len(no),
            "recall": float(yes.mean()),
            "specificity": float(no.mean()),
            "best_balanced": float(best),
        }
        if plain is not None:
            edge = plain[0].edge
            gains = _gain(yes, plain[1] >= edge), _gain(no, plain[2][side] < edge)
            print(
                f"    less the plain question: recall {_said(gains[0])}, "
                f"specificity {_said(gains[1])}"
            )
            sides[side] |= {"recall_gain": gains[0], "specificity_gain": gains[1]}
    return {"transformation": name, "edge": float(gate.edge), "against": sides}


def _gain(values: np.ndarray, plain: np.ndarray) -> tuple[float, float, float]:
    """Return the mean difference and its interval."""
    low, high = paired_difference_interval(values, plain)
    return float(values.mean() - plain.mean()), float(low), float(high)


def _said(gain: tuple[float, float, float]) -> str:
    mean, low, high = gain
    return f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]"


def _through(
    each: Split,
    transform: Transform | None,
    embed: Embed,
    pseudo: Pseudo,
    most: int | None = None,
    ahead: Callable[[Sequence[str]], object] = len,
) -> Found:
    """Return the gate, and the highest similarities of at most `most` positives and negatives.

    `ahead` is called with queries before they are transformed one by one.
    """

    def prepared(texts: Sequence[str]) -> np.ndarray:
        ahead(texts)
        return embed(texts if transform is None else [*map(transform, texts)])

    def nearest(asked: Sequence[Asked]) -> np.ndarray:
        texts = [text for part in asked for text in part.texts]
        return highest(prepared([texts[row] for row in _drawn(len(texts), most)]), each.vectors)

    gate = fit(each.vectors, pseudo[0], prepared(pseudo[1]), prepared(EVERYDAY_QUESTIONS))
    negatives = {side: nearest(asked) for side, asked in each.negatives.items()}
    return gate, nearest([each.positives]), negatives


def _drawn(count: int, most: int | None) -> np.ndarray:
    """Return places of at most `most`; a larger draw holds a smaller one."""
    return np.sort(np.random.default_rng(SEED).permutation(count)[:most])


def _by_rule(each: Split) -> Transform:
    words = WordCoverage.of(each.texts)

    def rewritten(queries: Sequence[str]) -> list[str]:
        return [telling_words(query, words) for query in queries]

    return rewriting(as_generator(rewritten), prompt="{query}")


def _by_model(each: Split, model: Model, embed: Embed, phrases: Pseudo) -> list[Figures]:
    """Show the plain question, a fit on the model's questions, and both transformations by it."""
    name, most = model.generator.name, model.questions
    journal = Journal(model.cache / "answers.jsonl")
    client = ModelClient.of(model.generator, journal=journal)

    def answered(prompts: Sequence[str]) -> list[str]:
        return [str(answer) for answer in client.answers([(prompt,) for prompt in prompts])]

    rows = _drawn(len(each.rows), most)
    some = rows, [phrases[1][row] for row in rows]
    plain = _through(each, None, embed, some, most)
    shown = [_show(f"none, at most {most} of each kind", plain)]
    texts = [each.texts[row] for row in rows]
    asked = generate_pseudo_queries(texts, model.generator, journal=journal)
    questions = np.repeat(rows, [*map(len, asked)]), [*chain.from_iterable(asked)]
    fitted = _through(each, None, embed, questions, most)
    shown.append(_show(f"fitted on questions ({name})", fitted, plain))
    for how, prompt in {"rewriting": REWRITE, "HyDE": PASSAGE}.items():

        def in_batches(queries: Sequence[str]) -> object:
            return answered([prompt.replace("{query}", query) for query in queries])

        transform = rewriting(as_generator(answered, name=name), prompt=prompt)
        found = _through(each, transform, embed, some, most, in_batches)
        shown.append(_show(f"{how} ({name})", found, plain))
    return shown

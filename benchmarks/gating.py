"""The retrieval gate on labelled collections: recall on what the corpus answers, and specificity.

::

    python -m benchmarks.gating --data FOLDER [FOLDER ...]

A folder holds the layout of BEIR; other names are those of `benchmarks.quality`. A third of each
collection's topics (titles, modules) is held out: questions about the rest are positives; questions
about the held-out part, and those of every other collection, are negatives. Embeddings, by the
model of ``--embedding``, are kept under ``--cache``, and a run that was interrupted goes on. The
parts: ``separation``, ``passages`` (a third of them is held out, whatever their topics),
``policies``, ``transfer``, ``constants`` (those of the default, each chosen on other collections),
``transforms`` (rewriting and HyDE; ``--llm`` measures them by a model of one's own), ``speed``.
One folder alone has no foreign questions, so ``transfer`` and ``constants`` want several.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path

import numpy as np

from benchmarks.embedding import add_options, chosen
from benchmarks.gating_collections import read, split
from benchmarks.gating_constants import constants
from benchmarks.gating_hosts import hosts
from benchmarks.gating_policies import passages, policies, separations, transfer
from benchmarks.gating_speed import growth
from benchmarks.gating_transforms import Model, transforms
from shared_core.cli.embedding import EmbeddingCache
from shared_core.cli.models import HELP, open_model
from shared_core.errors import PosragError
from shared_core.gating import EVERYDAY_QUESTIONS

LONGEST = 64
"""Tokens of an answer of ``--llm``, where it can be told."""

PARTS = ("separation", "passages", "policies", "transfer", "constants", "transforms", "speed")


def main() -> None:
    options = _options()
    # Into a file, too, line by line: the whole takes a while.
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    warnings.simplefilter("ignore")
    embed = chosen(options)
    everyday = embed(EVERYDAY_QUESTIONS)
    if {*options.parts} - {"speed"}:
        _accuracy(options, embed, everyday)
    if "speed" in options.parts:
        print("\nSpeed, vectors given")
        growth(everyday, options.contexts)
        hosts()


def _accuracy(options: argparse.Namespace, embed: EmbeddingCache, everyday: np.ndarray) -> None:
    collections = [read(source, embed) for source in options.data]
    splits = [split(collection, collections) for collection in collections]
    several = len(collections) > 1
    if "separation" in options.parts:
        separations(collections)
    if "passages" in options.parts:
        passages(collections, everyday, embed)
    if "policies" in options.parts:
        policies(splits, everyday, embed)
    if "transfer" in options.parts and several:
        transfer(splits, everyday)
    if "constants" in options.parts and several:
        constants(splits, embed)
    if "transforms" in options.parts:
        shown = transforms(splits, embed, options.model)
        if options.output:
            options.output.write_text(json.dumps(shown, indent=1) + "\n", "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", required=True)
    add_options(parser, "gating")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--llm", metavar="MODEL", help=f"rewrites, and writes passages: {HELP}")
    parser.add_argument("--llm-questions", type=int, default=200, help="of each kind, for --llm")
    parser.add_argument("--output", type=Path, help="keeps the figures of transforms, as JSON")
    parser.add_argument("--contexts", type=int, default=1_000_000, help="growth is shown up to")
    options = parser.parse_args()
    options.model = None
    if options.llm is not None:
        try:
            generator = open_model(options.llm, max_new_tokens=LONGEST, batch_size=32)
        except (ValueError, PosragError) as error:
            parser.error(str(error))
        options.model = Model(generator, options.llm_questions, options.cache)
    return options


if __name__ == "__main__":
    main()

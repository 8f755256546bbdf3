"""The embedding model of a benchmark: all-MiniLM-L6-v2, or the one that ``--embedding`` names."""

from __future__ import annotations

import argparse
import hashlib
import importlib
from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shared_core.arrays import Vectors
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingCache, EmbeddingModel, default_model
from shared_core.vectors import l2_normalized

WORDLLAMA = "wordllama"
CACHE = Path.home() / ".cache" / "posrag"


def add_options(parser: argparse.ArgumentParser, folder: str) -> None:
    """Add ``--embedding``, and ``--cache``, by default a folder of that name."""
    parser.add_argument(
        "--embedding",
        default=default_model(),
        help=f"folder or hub name, or {WORDLLAMA}: what that package brings (pip install it)",
    )
    parser.add_argument("--cache", type=Path, default=CACHE / folder)


def chosen(options: argparse.Namespace) -> EmbeddingCache:
    """Return the model of the options of `add_options`, behind its cache."""
    kind = WordLlama if options.embedding == WORDLLAMA else EmbeddingModel
    return EmbeddingCache(kind(options.embedding), options.cache, Console())


def embed(texts: Sequence[str], cache: Path = CACHE / "quality") -> Vectors:
    """Embed with all-MiniLM-L6-v2, or take from `cache` what an earlier run left there."""
    return EmbeddingCache(EmbeddingModel(default_model()), cache, Console())(texts)


class WordLlama(EmbeddingModel):
    """The mean of static token embeddings, 256 dimensions: a model much weaker than all-MiniLM."""

    @cached_property
    def fingerprint(self) -> str:
        return hashlib.sha256(version(WORDLLAMA).encode()).hexdigest()

    def embed(self, texts: Sequence[str]) -> Vectors:
        return l2_normalized(self._loaded.embed([*texts]))

    @cached_property
    def _loaded(self) -> Any:
        package = importlib.import_module(WORDLLAMA)
        # It looks for its tokenizer in the cache alone, and has it in the folder of the package.
        folder = Path(str(package.__file__)).parent
        return package.WordLlama.load(cache_dir=folder, disable_download=True)

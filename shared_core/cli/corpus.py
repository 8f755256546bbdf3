"""The indexed API of PyTorch, kept in a cache folder from one run to the next."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from shared_core import (
    EmbeddingMismatchError,
    HybridIndex,
    IndexFormatError,
    Passage,
    PosragError,
)
from shared_core.arrays import Vectors
from shared_core.cli.console import Console
from shared_core.cli.embedding import EmbeddingJournal, EmbeddingModel
from shared_core.cli.files import ensure_writable
from shared_core.wording import counted

_FORMAT = 2


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages, one vector each, and the index over both."""

    passages: Sequence[Passage]
    vectors: Vectors
    index: HybridIndex


def open_corpus(
    passages: Sequence[Passage],
    model: EmbeddingModel,
    cache: Path,
    *,
    version: str,
    rebuild: bool,
    console: Console,
) -> Corpus:
    """Return the corpus, from the cache as far as possible.

    Parameters
    ----------
    passages
        What is indexed.
    model
        What embeds it.
    cache
        Folder of all cached corpora. The folder of this one is named after the version, the model
        and a digest of both and of every text, so no other torch or model uses it.
    version
        Version of torch, for the folder's name.
    rebuild
        Embed and index again.
    console
        Where progress is reported.

    Raises
    ------
    PosragError
        If the cache cannot be written, or not in full, or the model cannot be loaded.
    """
    folder = cache / _key(passages, model, version)
    model.load()  # before anything is made for it
    ensure_writable(folder, cache)
    journal = EmbeddingJournal(folder / "vectors")
    if rebuild:
        journal.clear()
    index = None if rebuild else _load(folder / "index", model, journal, console)
    vectors = _vectors(journal, model, [passage.text for passage in passages], console)
    if index is None:
        index = _build(folder / "index", passages, vectors, console)
    return Corpus(passages, vectors, index)


def _key(passages: Sequence[Passage], model: EmbeddingModel, version: str) -> str:
    digest = hashlib.sha256(f"{_FORMAT} {model.fingerprint}".encode())
    for passage in passages:
        digest.update(f"\0{passage.id}\0{passage.text}".encode())
    name = re.sub(r"[^\w.+-]", "-", f"torch-{version}_{model.label}")
    return f"{name}_{digest.hexdigest()[:12]}"


def _load(
    path: Path, model: EmbeddingModel, journal: EmbeddingJournal, console: Console
) -> HybridIndex | None:
    if not path.exists():
        return None
    started = perf_counter()
    try:
        index = HybridIndex.load(path)
        loaded = f"Index of {counted(len(index), 'passage')} from the cache{_seconds(started)}."
        index.verify_embeddings(lambda text: model.embed([text])[0].tolist())
    except EmbeddingMismatchError as error:
        console.say(f"The model has changed since the index was cached ({error}): starting afresh.")
        journal.clear()
        return None
    except IndexFormatError as error:
        cause = error.__cause__ or error  # without its advice, which is followed here
        console.say(f"The cached index cannot be read ({cause}): building it again.")
        return None
    console.say(loaded)
    return index


def _vectors(
    journal: EmbeddingJournal, model: EmbeddingModel, texts: Sequence[str], console: Console
) -> Vectors:
    count, kept = len({*texts}), len(journal.kept(texts))
    if kept == count:
        return journal.embed(texts, model.embed, console)
    resumed = f", {kept:,} of them already done" if kept else "; this happens once"
    console.say(f"Embedding {counted(count, 'passage')} with {model.label}{resumed} ...")
    started = perf_counter()
    vectors = journal.embed(texts, model.embed, console)
    console.say(f"Embedded {counted(count - kept, 'passage')}{_seconds(started)}.")
    return vectors


def _build(
    path: Path, passages: Sequence[Passage], vectors: Vectors, console: Console
) -> HybridIndex:
    started = perf_counter()
    index = HybridIndex()
    index.add(passages, vectors)
    try:
        _save(index, path)
    except OSError as error:
        raise PosragError(
            f"the index cannot be kept ({error}); make room and run again, which embeds nothing "
            "twice, or choose another folder with --cache"
        ) from error
    console.say(f"Indexed {counted(len(index), 'passage')} with FAISS and BM25{_seconds(started)}.")
    return index


def _save(index: HybridIndex, path: Path) -> None:
    try:
        index.save(path)  # over another process's index, too
    except IndexFormatError:  # what is there is damaged, and saving overwrites only an index
        shutil.rmtree(path, ignore_errors=True)
        index.save(path)


def _seconds(started: float) -> str:
    return f" in {perf_counter() - started:.1f} s"

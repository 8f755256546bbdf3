"""Reading a saved index back, file by file.

The checksums reveal damage, but not who wrote the files. Therefore everything a search relies on is
checked first, from the length of an array to the order of the postings.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shared_core.index.persistence.files import PASSAGES, TERMS, Coder
from shared_core.index.persistence.loading_legs import read_dense, read_sparse
from shared_core.index.persistence.manifest import corrupt_if_unreadable
from shared_core.index.sparse.lexicon import Lexicon
from shared_core.index.state import State
from shared_core.types import Passage, Tokenizer


def _read_lexicon(data: Path, tokenizer: Tokenizer | None) -> Lexicon:
    with corrupt_if_unreadable(data / TERMS):
        terms = json.loads((data / TERMS).read_text(encoding="utf-8"))
        if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms):
            raise ValueError("it is not a list of words")
        for term, count in Counter(terms).items():
            if count > 1:
                raise ValueError(f"the word {term!r} occurs {count} times")
    return Lexicon.of(terms, tokenizer)


def read_state(
    data: Path, manifest: Mapping[str, Any], tokenizer: Tokenizer | None, decode: Coder | None
) -> State:
    """Read the state that `write_files` wrote.

    Parameters
    ----------
    data
        The folder.
    manifest
        From `read_manifest`; its list of files is that of an index.
    tokenizer
        The tokenizer of the index, if it is a custom one.
    decode
        The inverse of `encode` for sources; what it raises comes through.

    Raises
    ------
    CorruptIndexError
        If a file does not hold what the manifest and the other files say.
    """
    lexicon = _read_lexicon(data, tokenizer)
    dense, sparse = read_dense(data, manifest), read_sparse(data, manifest, lexicon)
    state = State.of(dense, sparse, list(_read_passages(data / PASSAGES, decode)))
    passages, ids = len(state.passages), len(state.rows)
    with corrupt_if_unreadable(data / PASSAGES):
        if not passages == ids == state.size:
            raise ValueError(f"it holds {passages} passages with {ids} ids, not {state.size}")
    return state


def _read_passages(path: Path, decode: Coder | None) -> Iterator[Passage]:
    for record in _read_records(path):
        source = record.get("source")
        yield Passage(
            record["id"],
            record["text"],
            record["metadata"],
            decode(source) if decode is not None and source is not None else None,
        )


def _read_records(path: Path) -> Iterator[dict[str, Any]]:
    with corrupt_if_unreadable(path), path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            record = json.loads(line)
            if not isinstance(record, dict) or not _is_passage(record):
                raise ValueError(f"line {number} is not a passage")
            yield record


def _is_passage(record: Mapping[str, Any]) -> bool:
    id = record.get("id")
    return (
        isinstance(id, str)
        and id != ""
        and isinstance(record.get("text"), str)
        and isinstance(record.get("metadata"), dict)
    )

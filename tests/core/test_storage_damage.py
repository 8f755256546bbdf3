"""Folders that are no index, or no longer the one that was saved."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared_core import CorruptIndexError, HybridIndex, IndexFormatError, Passage

from .making import data_of


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, empty, lengthen, flip_a_bit, Path.unlink])
def test_damage_to_any_file_is_found_and_named(
    damage: Callable[[Path], None], folder: Path
) -> None:
    """Every file of the index, one after the other."""
    names = sorted(path.name for path in data_of(folder).iterdir())
    kinds = {"approximate.faiss", "passages.jsonl", "postings-01-rows.npy", "terms.json"}
    assert kinds <= {*names}
    for name in names:
        path = data_of(folder) / name
        whole = path.read_bytes()
        damage(path)
        with pytest.raises(CorruptIndexError, match=name.replace(".", r"\.")):
            HybridIndex.load(folder)
        path.write_bytes(whole)
    assert len(HybridIndex.load(folder)) == 201


def test_a_missing_data_folder_is_found(folder: Path) -> None:
    """The manifest alone is no index."""
    shutil.rmtree(data_of(folder))
    with pytest.raises(CorruptIndexError, match="missing"):
        HybridIndex.load(folder)


@pytest.mark.parametrize("damage", [truncate, empty, lambda path: path.write_bytes(b"\xff\xfe{")])
def test_a_broken_manifest_is_named(damage: Callable[[Path], None], folder: Path) -> None:
    """Half a JSON, none, or bytes that are no text."""
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().rstrip())
    damage(manifest)
    with pytest.raises(CorruptIndexError, match=r"manifest\.json"):
        HybridIndex.load(folder)


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "another k1": lambda m: m["bm25"].update(k1=9.0),
    "k1 out of range": lambda m: m["bm25"].update(k1=-1),
    "unknown bm25 option": lambda m: m["bm25"].update(boost=1),
    "another variant": lambda m: m["bm25"].update(variant="okapi"),
    "no bm25 options": lambda m: m.update(bm25=None),
    "another metric": lambda m: m["dense"].update(metric="inner_product"),
    "no dense options": lambda m: m.update(dense={}),
    "dense options of another type": lambda m: m.update(dense=[]),
    "another scale": lambda m: m["dense"]["approximate"].update(scale=1.0),
    "no checksums": lambda m: m.update(files={}),
    "checksums of another type": lambda m: m.update(files=[]),
    "a checksum missing": lambda m: m["files"].pop("df.npy"),
    "a checksum without its size": lambda m: m["files"].update({"df.npy": {}}),
    "data folder of another type": lambda m: m.update(data=5),
    "another data folder": lambda m: m.update(data="data-0000000000000000"),
    "no data folder": lambda m: m.pop("data"),
    "no files": lambda m: m.pop("files"),
    "no tokenizer": lambda m: m.pop("tokenizer"),
    "other extra values": lambda m: m.update(extra={"adapter": "forged"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_altered_manifest_is_found(
    change: Callable[[dict[str, Any]], object], folder: Path
) -> None:
    """Valid JSON with other values: never another index in silence, never another error."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(CorruptIndexError):
        HybridIndex.load(folder)


def test_a_damaged_index_can_be_saved_over(folder: Path) -> None:
    """A truncated file is a reason to write the index again, not to refuse."""
    truncate(data_of(folder) / "vectors.npy")
    index = HybridIndex()
    index.add([Passage("a", "x")], [[1.0]])
    index.save(folder)
    assert HybridIndex.load(folder).ids == ["a"]


@pytest.mark.parametrize("damage", [truncate, empty])
def test_an_index_is_saved_over_one_whose_manifest_is_damaged(
    damage: Callable[[Path], None], folder: Path
) -> None:
    """The rest shows that it was one; a damaged manifest alone may be another program's file."""
    index = HybridIndex.load(folder)
    data, manifest = data_of(folder), folder / "manifest.json"
    damage(manifest)
    with pytest.raises(CorruptIndexError, match=r"manifest\.json"):
        HybridIndex.load(folder)
    index.save(folder)
    assert len(HybridIndex.load(folder)) == 201
    assert not data.exists()
    shutil.rmtree(data_of(folder))
    damage(manifest)
    with pytest.raises(IndexFormatError, match="give a new or empty folder"):
        index.save(folder)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: None, Path.touch])
def test_what_is_no_index_is_not_loaded(make: Callable[[Path], None], tmp_path: Path) -> None:
    """An empty folder, no folder, a file: an IndexFormatError that names it."""
    make(tmp_path / "nothing")
    with pytest.raises(IndexFormatError, match="nothing"):
        HybridIndex.load(tmp_path / "nothing")


def test_a_folder_of_other_things_is_not_loaded(tmp_path: Path) -> None:
    """Nor a manifest of another program, of any JSON type."""
    (tmp_path / "index.faiss").write_bytes(b"x")
    with pytest.raises(IndexFormatError, match=r"manifest\.json"):
        HybridIndex.load(tmp_path)
    for text in ("{}", "[]", "5", '{"kind": "web-app"}'):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(IndexFormatError, match="does not describe a posrag index"):
            HybridIndex.load(tmp_path)


def test_a_format_of_the_future_is_not_loaded(folder: Path) -> None:
    """The message names both formats; it is not called corrupt."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**manifest, "format": 99}), encoding="utf-8")
    with pytest.raises(IndexFormatError, match=r"format 99.*format 1") as caught:
        HybridIndex.load(folder)
    assert not isinstance(caught.value, CorruptIndexError)

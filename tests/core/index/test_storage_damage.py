"""Folders that are not what was saved, or not what an index needs: refused, by the file's name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt
import pytest

from shared_core import CorruptIndexError, HybridIndex, IndexFormatError, Passage
from shared_core.index.storage import fsync_and_hash, write_manifest
from tests.core.making import data_of

Array = npt.NDArray[Any]
ROWS, DIM = 201, 16


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, lengthen, flip_a_bit, Path.unlink])
def test_damage_to_any_file_is_found_and_named(
    damage: Callable[[Path], None], folder: Path
) -> None:
    """Every file of the index, one after the other; the way out is told."""
    names = sorted(path.name for path in data_of(folder).iterdir())
    kinds = {"ann.faiss", "passages.jsonl", "postings-01-rows.npy", "terms.json", "vectors.npy"}
    assert kinds <= {*names}
    for name in names:
        path = data_of(folder) / name
        whole = path.read_bytes()
        damage(path)
        told = name.replace(".", r"\.") + " cannot .*restore the folder from a copy, or rebuild"
        with pytest.raises(CorruptIndexError, match=told):
            HybridIndex.load(folder)
        path.write_bytes(whole)
    assert len(HybridIndex.load(folder)) == ROWS


def manifest_of(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def test_an_altered_manifest_is_found(folder: Path) -> None:
    """Valid JSON with other values; one too deep, or bytes that are no text."""
    altered = manifest_of(folder)
    altered["bm25"].update(k1=9.0)
    for changed in (json.dumps(altered).encode(), b"\xff\xfe{", b"[" * 200_000):
        (folder / "manifest.json").write_bytes(changed)
        with pytest.raises(CorruptIndexError, match=r"manifest\.json .*(checksum|cannot be read)"):
            HybridIndex.load(folder)


@pytest.mark.parametrize("broken", ["vectors.npy", "../manifest.json"])
def test_a_damaged_index_can_be_saved_over(broken: str, folder: Path) -> None:
    """Its data folder shows what it was; a damaged manifest alone may be another program's file."""
    data = data_of(folder)
    truncate(data / broken)
    index = HybridIndex()
    index.add([Passage("a", "x")], [[1.0]])
    index.save(folder)
    assert HybridIndex.load(folder).ids == ["a"]
    assert not data.exists()
    shutil.rmtree(data_of(folder))
    truncate(folder / "manifest.json")
    with pytest.raises(IndexFormatError, match="give a new or empty folder"):
        index.save(folder)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, r"is not an index.* manifest\.json"),
        ('{"kind": "web-app"}', "does not describe a posrag index"),
        ('{"kind": "posrag-hybrid-index", "format": 99}', "format 99, .* build .* anew"),
    ],
)
def test_what_is_no_index_is_not_loaded(text: str | None, told: str, tmp_path: Path) -> None:
    """Another program's, or of another format, with what to do; none is called corrupt."""
    if text:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(IndexFormatError, match=told) as caught:
        HybridIndex.load(tmp_path)
    assert not isinstance(caught.value, CorruptIndexError)


def sign(folder: Path, **changes: object) -> None:
    """Write a manifest with `changes`, and the right checksums of all files as they are now."""
    manifest = manifest_of(folder)
    manifest["files"] = {each.name: fsync_and_hash(each) for each in data_of(folder).iterdir()}
    write_manifest(folder / "manifest.json", manifest | changes)


@pytest.mark.parametrize("where", ["../elsewhere", "data-x", 5])
def test_data_in_another_folder_is_not_read(where: object, folder: Path) -> None:
    """Only one that `save` could have made, beside the manifest; elsewhere there is a whole one."""
    shutil.copytree(data_of(folder), folder.parent / "elsewhere")
    shutil.copytree(data_of(folder), folder / "data-x")
    sign(folder, data=where)
    with pytest.raises(CorruptIndexError, match=r"manifest\.json cannot be read"):
        HybridIndex.load(folder)


def array(change: Callable[[Array], Array]) -> Callable[[Path], None]:
    return lambda path: np.save(path, change(np.load(path)))


def text(content: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(content) and None


def faiss_index(kind: str, dim: int, rows: int) -> Callable[[Path], None]:
    index = faiss.index_factory(dim, kind, faiss.METRIC_INNER_PRODUCT)
    index.add(np.zeros((rows, dim), np.float32))
    return lambda path: faiss.write_index(index, str(path))


UNFIT: dict[str, tuple[str, Callable[[Path], None]]] = {
    "another type": ("vectors.npy", array(lambda a: a.astype(np.float64))),
    "terms unknown": ("postings-00-terms.npy", array(lambda a: a + 1)),
    "starts to elsewhere": ("postings-00-starts.npy", array(lambda a: a * 2)),
    "rows beyond the last": ("postings-00-rows.npy", array(lambda a: a + ROWS)),
    "rows not ascending": ("postings-00-rows.npy", array(np.zeros_like)),
    "counts of none": ("postings-00-counts.npy", array(np.zeros_like)),
    "no JSON": ("passages.jsonl", text("{")),
    "another FAISS index": ("ann.faiss", faiss_index("Flat", DIM, 10)),
    "more vectors": ("ann.faiss", faiss_index("HNSW8,SQbf16", DIM, ROWS + 1)),
}


@pytest.mark.parametrize(("name", "change"), UNFIT.values(), ids=UNFIT)
def test_a_file_that_fits_no_index_is_refused(
    name: str, change: Callable[[Path], None], folder: Path
) -> None:
    """Type, shape, range and order; the file is named."""
    change(data_of(folder) / name)
    sign(folder)
    with pytest.raises(CorruptIndexError, match=name.replace(".", r"\.") + " cannot be read"):
        HybridIndex.load(folder)


def test_postings_of_other_texts_are_refused(folder: Path) -> None:
    """Counts that the texts do not have would give other scores in silence."""
    path = data_of(folder) / "postings-00-counts.npy"
    np.save(path, np.load(path) + np.uint16(1))
    sign(folder)
    with pytest.raises(ValueError, match="does not split passage"):
        HybridIndex.load(folder)

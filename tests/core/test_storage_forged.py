"""Folders whose checksums are right, but whose files are not those of an index."""

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

from shared_core import CorruptIndexError, HybridIndex, Passage
from shared_core.index.persistence.manifest import seal, write_manifest

from .making import data_of, make_index, preselect_from

Manifest = dict[str, Any]
ROWS, DIM = 201, 16
"""Of `saved_index`."""


def manifest_of(folder: Path) -> Manifest:
    manifest: Manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def sign(folder: Path, manifest: Manifest) -> None:
    """Write a manifest with the right checksum."""
    write_manifest(folder / "manifest.json", manifest)


def sign_files(folder: Path) -> None:
    """Write the right checksums of all files as they are now."""
    manifest = manifest_of(folder)
    files = {name: seal(data_of(folder) / name) for name in manifest["files"]}
    sign(folder, manifest | {"files": files})


def test_what_is_signed_as_it_was_loads(folder: Path) -> None:
    """The other tests are about what they change."""
    sign_files(folder)
    assert len(HybridIndex.load(folder)) == ROWS


@pytest.mark.parametrize("where", ["../elsewhere", "{tmp}/elsewhere", "data-x", ".", "\0", 5, None])
def test_data_in_another_folder_is_not_read(where: object, folder: Path) -> None:
    """Only one that `save` could have made, beside the manifest; elsewhere there is a whole one."""
    shutil.copytree(data_of(folder), folder.parent / "elsewhere")
    shutil.copytree(data_of(folder), folder / "data-x")
    if isinstance(where, str):
        where = where.format(tmp=folder.parent)
    sign(folder, manifest_of(folder) | {"data": where})
    with pytest.raises(CorruptIndexError, match=r"manifest\.json cannot be read"):
        HybridIndex.load(folder)


def rename_a_file(name: str) -> Callable[[Manifest], object]:
    return lambda m: m["files"].update({name: m["files"].pop("df.npy")})


FORGED: dict[str, Callable[[Manifest], object]] = {
    "a file elsewhere": rename_a_file("../df.npy"),
    "a file of another name": rename_a_file("df2.npy"),
    "a file too few": lambda m: m["files"].pop("df.npy"),
    "a segment too few": lambda m: m["files"].pop("postings-00-terms.npy"),
    "a file too many": lambda m: m["files"].update({"other.npy": m["files"]["df.npy"]}),
    "no checksum of a file": lambda m: m["files"].update({"df.npy": None}),
    "an empty checksum of a file": lambda m: m["files"].update({"df.npy": {}}),
    "passages below zero": lambda m: m.update(passages=-1),
    "more passages": lambda m: m.update(passages=ROWS + 1),
    "more passages than can be": lambda m: m.update(passages=2**40),
    "no dimension": lambda m: m.update(dim=None),
    "dimension 0": lambda m: m.update(dim=0),
    "dimension of another type": lambda m: m.update(dim="16"),
    "unknown bm25 option": lambda m: m["bm25"].update(boost=1),
    "bm25 option out of range": lambda m: m["bm25"].update(k1=-1),
    "bm25 option of another type": lambda m: m["bm25"].update(k1="1"),
    "no metric": lambda m: m["dense"].pop("metric"),
    "unknown metric": lambda m: m["dense"].update(metric="l2"),
    "kind of another type": lambda m: m["dense"].update(kind=[]),
    "another kind": lambda m: m["dense"].update(kind="hnsw"),
    "no longest": lambda m: m["dense"].pop("longest"),
    "longest is infinite": lambda m: m["dense"].update(longest=float("inf")),
    "longest of another type": lambda m: m["dense"].update(longest=10**400),
    "approximate index left out": lambda m: m["dense"].pop("approximate"),
    "approximate of another type": lambda m: m["dense"].update(approximate=5),
    "approximate without scale": lambda m: m["dense"]["approximate"].pop("scale"),
    "scale 0": lambda m: m["dense"]["approximate"].update(scale=0.0),
    "margin is NaN": lambda m: m["dense"]["approximate"].update(margin=float("nan")),
    "trained on nothing": lambda m: m["dense"]["approximate"].update(trained=0),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_signed_manifest_of_another_form_is_refused(
    change: Callable[[Manifest], object], folder: Path
) -> None:
    """Before it misleads a search, and never by another error."""
    manifest = manifest_of(folder)
    change(manifest)
    sign(folder, manifest)
    with pytest.raises(CorruptIndexError, match=str(folder)):
        HybridIndex.load(folder)


@pytest.mark.parametrize(
    "key", ["data", "files", "passages", "dim", "tokenizer", "dense", "bm25", "extra"]
)
def test_a_signed_manifest_must_tell_everything(key: str, folder: Path) -> None:
    """The message names what is missing, or of another type."""
    whole = manifest_of(folder)
    for manifest in (
        {name: value for name, value in whole.items() if name != key},
        whole | {key: [1.5]},
    ):
        sign(folder, manifest)
        with pytest.raises(CorruptIndexError, match=rf"manifest\.json.*{key}"):
            HybridIndex.load(folder)


@pytest.mark.parametrize("name", ["manifest.json", "terms.json", "passages.jsonl"])
def test_json_too_deep_to_read_is_refused(name: str, folder: Path) -> None:
    """By the file's name, not by a RecursionError."""
    path = folder / name if name == "manifest.json" else data_of(folder) / name
    path.write_text("[" * 200_000)
    if path.parent != folder:
        sign_files(folder)
    with pytest.raises(CorruptIndexError, match=name.replace(".", r"\.")):
        HybridIndex.load(folder)


Array = npt.NDArray[Any]
ARRAYS: list[tuple[str, str, Callable[[Array], Array]]] = [
    ("vectors", "double", lambda a: a.astype(np.float64)),
    ("vectors", "texts", lambda a: a.astype(str)),
    ("vectors", "one dimension", lambda a: a.ravel()),
    ("vectors", "three dimensions", lambda a: a[:, :, None]),
    ("vectors", "by column", np.asfortranarray),
    ("vectors", "too few", lambda a: a[:-1]),
    ("vectors", "too many", lambda a: np.vstack([a, a])),
    ("vectors", "other dimension", lambda a: a[:, :-1]),
    ("vectors", "NaN", lambda a: np.where(a == a.max(), np.nan, a)),
    ("vectors", "infinite", lambda a: np.where(a == a.max(), np.inf, a)),
    ("lengths", "too few", lambda a: a[:-1]),
    ("lengths", "negative", lambda a: -a),
    ("lengths", "others", lambda a: a + 1),
    ("lengths", "fractions", lambda a: a + 0.5),
    ("df", "too many", lambda a: np.append(a, 1)),
    ("df", "others", lambda a: a + 1),
    ("df", "negative", lambda a: -a),
    ("df", "matrix", lambda a: a[None]),
    ("postings-00-terms", "not ascending", lambda a: a[::-1]),
    ("postings-00-terms", "negative", lambda a: a - 1),
    ("postings-00-terms", "unknown", lambda a: a + 1),
    ("postings-00-starts", "too few", lambda a: a[:-1]),
    ("postings-00-starts", "not from 0", lambda a: a.clip(1)),
    ("postings-00-starts", "to elsewhere", lambda a: a * 2),
    ("postings-00-starts", "not ascending", lambda a: np.append(a[:-1].clip(0, 3), a[-1])),
    (
        "postings-00-starts",
        "once around",
        lambda a: np.concatenate([[0, 2**63 - 1, -(2**63), -1], a[4:]]),
    ),
    ("postings-00-rows", "negative", lambda a: a - 1),
    ("postings-00-rows", "beyond the last", lambda a: a + ROWS),
    ("postings-00-rows", "not ascending", lambda a: np.zeros_like(a)),
    ("postings-01-rows", "of the segment before", lambda a: np.zeros_like(a)),
    ("postings-00-counts", "too few", lambda a: a[:-1]),
    ("postings-00-counts", "none", lambda a: np.zeros_like(a)),
    ("postings-00-counts", "fractions", lambda a: a + 0.5),
]


@pytest.mark.parametrize(
    ("name", "change"),
    [(name, change) for name, _, change in ARRAYS],
    ids=[f"{name} {what}" for name, what, _ in ARRAYS],
)
def test_an_array_that_fits_no_index_is_refused(
    name: str, change: Callable[[Array], Array], folder: Path
) -> None:
    """Type, shape, range and order; the file is named."""
    path = data_of(folder) / f"{name}.npy"
    np.save(path, change(np.load(path)))
    sign_files(folder)
    with pytest.raises(CorruptIndexError, match=f"{name}\\.npy cannot be read"):
        HybridIndex.load(folder)


def test_pickled_objects_are_not_read(folder: Path) -> None:
    """Not even their header is believed."""
    objects = np.empty(ROWS, object)
    np.save(data_of(folder) / "lengths.npy", objects, allow_pickle=True)
    sign_files(folder)
    with pytest.raises(CorruptIndexError, match=r"lengths\.npy cannot be read: .* type object"):
        HybridIndex.load(folder)


@pytest.mark.parametrize("rows", [10**12, ROWS + 1, ROWS - 1, -ROWS])
def test_a_header_that_promises_more_or_less_than_the_file_holds_is_refused(
    rows: int, folder: Path
) -> None:
    """Before memory is asked for: there is none for 10**12 rows."""
    path = data_of(folder) / "vectors.npy"
    start, numbers = path.read_bytes()[:10], path.read_bytes()[128:]
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {DIM}), }}"
    path.write_bytes(start + header.ljust(117).encode() + b"\n" + numbers)
    sign_files(folder)
    with pytest.raises(CorruptIndexError, match=r"vectors\.npy .* bytes, it holds"):
        HybridIndex.load(folder)


@pytest.mark.parametrize("header", ["(" * 9000, "-" * 9000 + "1", "{1: 2, 'a': 3}", "", "\0" * 9])
def test_a_header_that_is_none_is_refused(header: str, folder: Path) -> None:
    """Whatever parsing it raises."""
    path = data_of(folder) / "df.npy"
    size = len(header).to_bytes(2, "little")
    path.write_bytes(b"\x93NUMPY\x01\x00" + size + header.encode())
    sign_files(folder)
    with pytest.raises(CorruptIndexError, match=r"df\.npy .* no array header"):
        HybridIndex.load(folder)


def small(index: faiss.Index, rows: int = 10) -> faiss.Index:
    vectors = np.zeros((rows, index.d), np.float32)
    index.train(vectors)
    index.add(vectors)
    return index


CODEC = faiss.ScalarQuantizer.QT_8bit_direct_signed
PRODUCT = faiss.METRIC_INNER_PRODUCT
OTHERS: dict[str, Callable[[], faiss.Index]] = {
    "another kind": lambda: small(faiss.IndexFlatIP(DIM)),
    "another dimension": lambda: small(faiss.IndexScalarQuantizer(DIM + 1, CODEC, PRODUCT)),
    "another metric": lambda: small(faiss.IndexScalarQuantizer(DIM, CODEC, faiss.METRIC_L2)),
    "another codec": lambda: small(
        faiss.IndexScalarQuantizer(DIM, faiss.ScalarQuantizer.QT_fp16, PRODUCT)
    ),
    "too many rows": lambda: small(faiss.IndexScalarQuantizer(DIM, CODEC, PRODUCT), ROWS + 1),
    "no rows": lambda: faiss.IndexScalarQuantizer(DIM, CODEC, PRODUCT),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_another_faiss_index_is_refused(make: Callable[[], faiss.Index], folder: Path) -> None:
    """By kind, dimension, metric and rows."""
    faiss.write_index(make(), str(data_of(folder) / "approximate.faiss"))
    sign_files(folder)
    with pytest.raises(CorruptIndexError, match=r"approximate\.faiss cannot be read"):
        HybridIndex.load(folder)


@pytest.mark.parametrize("row", [-1, ROWS, 2**40, None])
def test_an_inverted_file_of_other_rows_is_refused(
    row: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search would look for them beyond the vectors; one that stands twice hides another."""
    preselect_from(100, monkeypatch)
    make_index(ROWS, dense="ivf").save(tmp_path)
    path = str(data_of(tmp_path) / "approximate.faiss")
    index = faiss.read_index(path)
    lists = index.invlists
    number = next(each for each in range(lists.nlist) if lists.list_size(each) > 1)
    rows = faiss.rev_swig_ptr(lists.get_ids(number), lists.list_size(number))
    rows[0] = rows[1] if row is None else row
    faiss.write_index(index, path)
    sign_files(tmp_path)
    with pytest.raises(CorruptIndexError, match=r"approximate\.faiss .* each row once"):
        HybridIndex.load(tmp_path)


def test_a_file_that_faiss_cannot_read_is_refused(folder: Path) -> None:
    """FAISS's own error is told with the file's name."""
    (data_of(folder) / "approximate.faiss").write_bytes(b"no index")
    sign_files(folder)
    with pytest.raises(CorruptIndexError, match=r"approximate\.faiss cannot be read"):
        HybridIndex.load(folder)


TEXTS: list[tuple[str, str, str]] = [
    ("terms.json", "mapping", '{"w1": 0}'),
    ("terms.json", "numbers", json.dumps([*range(61)])),
    ("terms.json", "twice", json.dumps(["w1"] * 61)),
    ("passages.jsonl", "no JSON", "{"),
    ("passages.jsonl", "no mapping", "[]\n" * ROWS),
    ("passages.jsonl", "no text", '{"id": "a", "metadata": {}}\n' * ROWS),
    ("passages.jsonl", "no id", '{"id": "", "text": "", "metadata": {}}\n' * ROWS),
    ("passages.jsonl", "number as id", '{"id": 1, "text": "", "metadata": {}}\n' * ROWS),
    ("passages.jsonl", "no metadata", '{"id": "a", "text": "", "metadata": null}\n' * ROWS),
    ("passages.jsonl", "one id", '{"id": "a", "text": "", "metadata": {}}\n' * ROWS),
    ("passages.jsonl", "too few", '{"id": "a", "text": "", "metadata": {}}\n'),
]


@pytest.mark.parametrize(
    ("name", "text"),
    [(name, text) for name, _, text in TEXTS],
    ids=[f"{name} {what}" for name, what, _ in TEXTS],
)
def test_other_words_and_passages_are_refused(name: str, text: str, folder: Path) -> None:
    """As many as there are rows, each under an id of its own; words once each."""
    (data_of(folder) / name).write_text(text)
    sign_files(folder)
    with pytest.raises(CorruptIndexError, match=name.replace(".", r"\.") + " cannot be read"):
        HybridIndex.load(folder)


def test_fewer_words_than_the_postings_count_are_refused(folder: Path) -> None:
    """A word more does no harm: a text that could not be added may have brought it."""
    path = data_of(folder) / "terms.json"
    terms = json.loads(path.read_text())
    path.write_text(json.dumps([*terms, "more"]))
    sign_files(folder)
    assert len(HybridIndex.load(folder)) == ROWS
    path.write_text(json.dumps(terms[:-1]))
    sign_files(folder)
    with pytest.raises(CorruptIndexError, match=r"df\.npy cannot be read"):
        HybridIndex.load(folder)


def test_what_the_callers_decoder_raises_comes_through(folder: Path) -> None:
    """The file is as it was saved; what to do about the source is the caller's to know."""
    index = HybridIndex()
    index.add([Passage("a", "x", source=1)], [[1.0]])
    index.save(folder, encode_source=str)

    def broken(source: object) -> object:
        raise ValueError("decoder broke")

    with pytest.raises(ValueError, match=r"^decoder broke$"):
        HybridIndex.load(folder, decode_source=broken)

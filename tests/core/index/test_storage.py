"""Saving and loading: the same results, and whatever cannot be kept is refused at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from datetime import date
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import HybridIndex, IndexFormatError, Passage
from shared_core.index import hybrid
from tests.core.making import content, data_of, make_index, passages, random_vectors

QUERY = random_vectors(1, seed=99)[0]


def results(index: HybridIndex) -> list[object]:
    return [
        content(index.search(text, QUERY, alpha=alpha, where=where))
        for text in ("w0 w1", "w5 w5 w40", "")
        for alpha in (0.0, 0.3)
        for where in (None, {"lang": "en"})
    ]


def test_a_loaded_index_gives_identical_results(tmp_path: Path) -> None:
    """Bit for bit, with deleted rows, several segments, wide counts; and it goes on living."""
    bm25: dict[str, Any] = {"variant": "okapi", "k1": 1.1, "b": 0.3, "epsilon": 0.1}
    index = make_index(600, metric="inner_product", mean_length=3.5, **bm25)
    for n in range(5):
        index.add([Passage(f"late{n}", f"w{n} late", {"lang": "en"})], random_vectors(1, seed=n))
    index.add([Passage("long", "w0 " * 70_000 + "w1 w40")], 1e6 * random_vectors(1))
    index.delete(["p3", "p9", "late1"])
    index.save(str(tmp_path / "index"), extra={"adapter": "x", "nested": {"k": [1, 2]}})
    loaded = HybridIndex.load(str(tmp_path / "index"))
    assert results(loaded) == results(index)
    assert (loaded.ids, loaded.dim, len(loaded)) == (index.ids, 8, 603)
    assert loaded.extra == {"adapter": "x", "nested": {"k": [1, 2]}}
    manifest = json.loads((tmp_path / "index" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["format"], manifest["tokenizer"], manifest["passages"]) == (2, "default", 603)
    for each in (index, loaded):
        each.add([Passage("p3", "back w1"), Passage("new", "w1")], random_vectors(2, seed=50))
        each.delete(["p0"])
        each.compact()
    assert results(loaded) == results(index)
    loaded.save(tmp_path / "index", extra={"adapter": "y"})
    again = HybridIndex.load(tmp_path / "index")
    assert again.extra == {"adapter": "y", "nested": {"k": [1, 2]}}
    assert again.ids == loaded.ids


JSON = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


@given(
    st.dictionaries(st.text(max_size=8), JSON | st.lists(st.dictionaries(st.text(), JSON))),
    st.text(),
    st.text(min_size=1),
)
@settings(max_examples=40)
def test_ids_texts_and_metadata_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, metadata: dict[str, Any], text: str, id: str
) -> None:
    """Any unicode, line breaks and all; any JSON value."""
    folder = tmp_path_factory.mktemp("index")
    index = HybridIndex()
    index.add([Passage(id, text, metadata)], [[1.0]])
    index.save(folder)
    assert HybridIndex.load(folder).passages == [Passage(id, text, metadata)]


TELLING = {"first": 0, "middle": 20, "last": 39, "longest": 7}


def test_nothing_in_the_folder_is_pickled(tmp_path: Path) -> None:
    """Every array loads with pickling forbidden; the rest is JSON."""
    make_index().save(tmp_path / "index")
    files = [*data_of(tmp_path / "index").iterdir()]
    assert {file.suffix for file in files} == {".json", ".jsonl", ".npy"}
    arrays = [np.load(file, allow_pickle=False) for file in files if file.suffix == ".npy"]
    assert len(arrays) >= 5


@pytest.mark.parametrize("row", TELLING.values(), ids=TELLING)
def test_a_tokenizer_that_splits_otherwise_is_refused(row: int, tmp_path: Path) -> None:
    """Under the name of the one that was saved: every query would score 0 without a word."""
    texts = ["1 2 3"] * 40
    texts[row] = "4 5 gamma 5" if row == TELLING["longest"] else "gamma"
    index = HybridIndex(tokenizer=lambda text: text.lower().split())
    index.add(passages(texts[:30]), random_vectors(30))
    index.add(passages(texts[30:], prefix="q"), random_vectors(10))
    index.save(tmp_path)
    for other in (lambda text: text.upper().split(), lambda text: [*text.split(), "more"]):
        with pytest.raises(ValueError, match=r"passage '.\d+' .* give the tokenizer .* anew"):
            HybridIndex.load(tmp_path, tokenizer=other)
    with pytest.raises(ValueError, match="tokenizer, not with the default one"):
        HybridIndex.load(tmp_path)
    loaded = HybridIndex.load(tmp_path, tokenizer=lambda text: text.lower().split())
    assert loaded.search("GAMMA", QUERY).sparse == index.search("GAMMA", QUERY).sparse


BAD_METADATA: dict[str, tuple[dict[Any, Any], str]] = {
    "date": (
        {"n": 1, "day": date(2024, 5, 1)},
        r"metadata\['day'\] is datetime.date\(2024, 5, 1\)",
    ),
    "deep": ({"deep": [0, {"x": {1}}]}, r"metadata\['deep'\]\[1\]\['x'\] is \{1\} of type set"),
    "number as key": ({"slots": {9: "x"}}, r"the key 9 of metadata\['slots'\] is not a string"),
}


@pytest.mark.parametrize(("metadata", "told"), BAD_METADATA.values(), ids=BAD_METADATA)
def test_metadata_that_is_not_json_is_refused_by_name(
    metadata: dict[Any, Any], told: str, tmp_path: Path
) -> None:
    """A tuple would come back as a list. Passage and key are named; the old index is whole."""
    make_index(5).save(tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    index = make_index(5)
    index.add([Passage("4f2a", "Once upon a time " * 9, metadata)], random_vectors(1))
    with pytest.raises(
        ValueError, match=r"passage '4f2a' \('Once upon .*\.\.\.'\) .* JSON: .*" + told
    ):
        index.save(tmp_path)
    with pytest.raises(ValueError, match="extra cannot be saved as JSON"):
        make_index(3).save(tmp_path, extra=metadata)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert HybridIndex.load(tmp_path).ids == make_index(5).ids


def test_nothing_of_deleted_passages_is_written(tmp_path: Path) -> None:
    """Nor can they keep the rest from being saved; their words are new if they come again."""
    index = make_index(5)
    index.add([Passage("secret", "w0 hunter2", {"x": object()})], random_vectors(1))
    index.add([Passage("later", "w1 kept")], random_vectors(1))
    index.delete(["secret"])
    index.save(tmp_path)
    assert not any(b"hunter2" in file.read_bytes() for file in data_of(tmp_path).iterdir())
    for each in (index, HybridIndex.load(tmp_path)):
        assert each.best("kept", 1)[0][0].id == "later"
        assert each.best("hunter2", 1) == []
        each.add([Passage("again", "hunter2")], random_vectors(1))
        assert each.best("hunter2", 1)[0][0].id == "again"


def test_an_index_changes_while_it_is_saved(tmp_path: Path) -> None:
    """Nobody waits; what is saved is the index as it was."""
    index = make_index(20)
    with ThreadPoolExecutor(1) as pool:

        def meanwhile(_: object) -> None:
            if len(index) == 20:
                new = [Passage("new", "news"), Passage("p3", "replaced")]
                pool.submit(index.add, new, random_vectors(2)).result(timeout=60)
                pool.submit(index.delete, ["p4"]).result(timeout=60)
                assert pool.submit(copy, index).result(timeout=60).ids == index.ids

        expected = results(index)
        index.save(tmp_path / "index", encode_source=meanwhile)
    loaded = HybridIndex.load(tmp_path / "index")
    assert loaded.ids == [f"p{n}" for n in range(20)]
    assert results(loaded) == expected
    index.save(tmp_path / "index")
    assert HybridIndex.load(tmp_path / "index").ids == index.ids


def test_of_two_saves_at_once_the_later_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the one under way, which is of an earlier index."""
    index, save_state = make_index(5), hybrid.save_state

    def add_and_save() -> None:
        index.add([Passage("new", "news")], random_vectors(1))
        index.save(tmp_path)

    other = Thread(target=add_and_save)

    def save_slowly(*args: Any) -> None:
        if not other.ident:
            other.start()
            other.join(0.3)
        save_state(*args)

    monkeypatch.setattr(hybrid, "save_state", save_slowly)
    index.save(tmp_path)
    other.join()
    assert "new" in HybridIndex.load(tmp_path)


def test_every_file_is_flushed_to_disk_through_a_writable_handle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows refuses to flush what was opened for reading. The folder is flushed last.

    All are closed, or a service that saves often could open no more.
    """
    fcntl, flushed = pytest.importorskip("fcntl"), []

    def fsync(descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not path.is_dir():
            assert fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        flushed.append(path.name)

    monkeypatch.setattr(os, "fsync", fsync)
    opened = len(os.listdir("/proc/self/fd"))
    make_index(3).save(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == opened
    files = {path.name for path in data_of(tmp_path).iterdir()} | {"manifest.json"}
    assert ({*flushed[:-1]}, flushed[-1]) == (files, tmp_path.name)


REFUSED: dict[str, tuple[str, Callable[[Path], object]]] = {
    "other things": ("thesis.txt", lambda path: path.write_text("mine")),
    "another program's manifest": ("manifest.json", lambda path: path.write_text("[]")),
    "a folder like ours": ("data-raw", Path.mkdir),
}


@pytest.mark.parametrize(("name", "make"), REFUSED.values(), ids=REFUSED)
def test_saving_into_a_folder_of_other_things_is_refused(
    name: str, make: Callable[[Path], object], tmp_path: Path
) -> None:
    """They stay as they were. Beside an index they are left alone."""
    make(tmp_path / name)
    with pytest.raises(IndexFormatError, match=rf"{name}.* give a new or empty folder"):
        make_index(3).save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    if name != "manifest.json":
        make_index(3).save(tmp_path / "index")
        make(tmp_path / "index" / name)
        make_index(4).save(tmp_path / "index")
        assert (tmp_path / "index" / name).exists()

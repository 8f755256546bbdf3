"""Saving and loading: the same results, and whatever cannot be kept is refused at once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import HybridIndex, IndexFormatError, Passage
from shared_core.index import hybrid

from .making import content, data_of, make_index, passages, random_vectors, zipf_texts

QUERY = random_vectors(1, seed=99)[0]


def results(index: HybridIndex) -> list[object]:
    return [
        content(index.search(text, QUERY, alpha=alpha, where=where))
        for text in ("w0 w1", "w5 w5 w40", "")
        for alpha in (0.0, 0.3)
        for where in (None, {"lang": "en"})
    ]


@pytest.mark.parametrize("metric", ["cosine", "inner_product"])
@pytest.mark.parametrize("variant", ["lucene", "okapi"])
def test_a_loaded_index_gives_identical_results(metric: str, variant: str, tmp_path: Path) -> None:
    """Bit for bit, with deleted rows and several segments; and it goes on living."""
    options = {"metric": metric, "variant": variant, "k1": 1.1, "b": 0.3, "epsilon": 0.1}
    index = make_index(60, **options)
    for n in range(5):
        index.add([Passage(f"late{n}", f"w{n} late", {"lang": "en"})], random_vectors(1, seed=n))
    index.delete(["p3", "p9", "late1"])
    index.save(tmp_path / "index")
    loaded = HybridIndex.load(tmp_path / "index")
    assert results(loaded) == results(index)
    assert (loaded.ids, loaded.dim, len(loaded)) == (index.ids, 8, 62)
    for each in (index, loaded):
        each.add([Passage("p3", "back w1"), Passage("new", "w1")], random_vectors(2, seed=50))
        each.delete(["p0"])
        each.compact()
    assert results(loaded) == results(index)


@pytest.mark.parametrize("words", ["w0 " * 70_000, " ".join(f"t{n}" for n in range(70_000))])
def test_a_text_of_more_words_than_two_bytes_count_comes_back(words: str, tmp_path: Path) -> None:
    """Its length weighs on its score, and it is longer than any of its counts need be."""
    index = make_index(20)
    index.add([Passage("long", words + "w0 w1 w40")], random_vectors(1))
    index.save(tmp_path / "index")
    assert results(HybridIndex.load(tmp_path / "index")) == results(index)
    index.delete(["long"])
    index.compact()
    assert results(index) == results(make_index(20))


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
            max_leaves=5,
        ),
        max_size=4,
    ),
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


@pytest.mark.parametrize(("first", "later"), [(1e-20, 1.0), (1e-3, 1e17), (1e17, 1e-3)])
def test_vectors_of_very_different_lengths_come_back(
    first: float, later: float, tmp_path: Path
) -> None:
    """Whichever were there first, and set the scale of the 8-bit copies."""
    index = HybridIndex(metric="inner_product")
    for size, name in ((first, "a"), (later, "b")):
        passages = [Passage(f"{name}{n}", f"w{n % 7}") for n in range(600)]
        index.add(passages, size * random_vectors(600, seed=len(index)))
    index.save(tmp_path / "index")
    assert results(HybridIndex.load(tmp_path / "index")) == results(index)


def test_an_empty_index_comes_back_empty(tmp_path: Path) -> None:
    """Never filled, or emptied; and it can be filled afterwards."""
    emptied = make_index(3, k1=2.0)
    emptied.delete(emptied.ids)
    for name, index in {"new": HybridIndex(k1=2.0), "emptied": emptied}.items():
        index.save(tmp_path / name)
        loaded = HybridIndex.load(tmp_path / name)
        assert (len(loaded), loaded.ids) == (0, [])
        assert loaded.dim == index.dim
        loaded.add([Passage("a", "x")], [[1.0] * 8])
        assert loaded.search("x", [1.0] * 8).indices


def test_saving_again_replaces_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """One manifest, one data folder."""
    index = make_index(10)
    for n in range(3):
        index.delete([f"p{n}"])
        index.save(tmp_path)
    assert HybridIndex.load(tmp_path).ids == index.ids
    assert len([*tmp_path.iterdir()]) == 2


def test_a_folder_is_made_with_its_parents(tmp_path: Path) -> None:
    """And a str names it as well as a Path."""
    make_index(3).save(str(tmp_path / "a" / "b"))
    assert len(HybridIndex.load(str(tmp_path / "a" / "b"))) == 3


def test_extra_values_come_back_and_are_kept(tmp_path: Path) -> None:
    """An adapter's options live beside the index, also through a save that names none."""
    index = make_index(3)
    index.save(tmp_path, extra={"adapter": "x", "nested": {"k": [1, 2]}})
    loaded = HybridIndex.load(tmp_path)
    assert loaded.extra == {"adapter": "x", "nested": {"k": [1, 2]}}
    loaded.save(tmp_path, extra={"adapter": "y"})
    assert HybridIndex.load(tmp_path).extra == {"adapter": "y", "nested": {"k": [1, 2]}}


def test_sources_are_saved_by_the_callers_own_code(tmp_path: Path) -> None:
    """Without it they are left out, with it they come back."""
    index = HybridIndex()
    index.add([Passage("a", "x", source={1, 2}), Passage("b", "y")], np.eye(2))
    index.save(tmp_path / "without")
    assert HybridIndex.load(tmp_path / "without").passages[0].source is None
    index.save(tmp_path / "with", encode_source=lambda source: source and sorted(source))
    loaded = HybridIndex.load(tmp_path / "with", decode_source=set)
    assert [passage.source for passage in loaded.passages] == [{1, 2}, None]


def shouting(text: str) -> list[str]:
    return text.upper().split()


def test_a_tokenizer_of_ones_own_is_asked_for_on_load(tmp_path: Path) -> None:
    """It cannot be saved, and another one would give other scores in silence."""
    index = HybridIndex(tokenizer=shouting)
    index.add([Passage("a", "one two"), Passage("b", "two")], np.eye(2))
    index.save(tmp_path)
    with pytest.raises(ValueError, match="shouting"):
        HybridIndex.load(tmp_path)
    loaded = HybridIndex.load(tmp_path, tokenizer=shouting)
    assert loaded.search("One", [1.0, 0.0]) == index.search("One", [1.0, 0.0])
    loaded.add([Passage("c", "Three")], [[1.0, 1.0]])
    assert loaded.search("three", [1.0, 1.0]).passages[0].id == "c"


def test_a_tokenizer_where_none_was_used_is_refused(tmp_path: Path) -> None:
    """Its tokens would not be those of the index."""
    make_index(3).save(tmp_path)
    with pytest.raises(ValueError, match="default tokenizer"):
        HybridIndex.load(tmp_path, tokenizer=shouting)


CYCLE: dict[str, Any] = {}
CYCLE["itself"] = CYCLE
BAD_METADATA = {
    "tuple": {"x": (1, 2)},
    "read-only mapping": {"x": MappingProxyType({"y": 1})},
    "cycle": CYCLE,
    "object": {"x": object()},
    "bytes": {"x": b"raw"},
    "numpy": {"x": np.float32(1)},
    "set": {"deep": [{"x": {1, 2}}]},
}


@pytest.mark.parametrize("metadata", BAD_METADATA.values(), ids=BAD_METADATA)
def test_metadata_that_is_not_json_is_refused_by_name(
    metadata: dict[str, Any], tmp_path: Path
) -> None:
    """A tuple would come back as a list. The error names the passage; the old index is whole."""
    make_index(5).save(tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    index = make_index(5)
    index.add([Passage("culprit", "x", metadata)], random_vectors(1))
    with pytest.raises(ValueError, match="passage 'culprit' cannot be saved as JSON"):
        index.save(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert HybridIndex.load(tmp_path).ids == make_index(5).ids


def test_halves_of_a_character_that_json_would_join_are_refused(tmp_path: Path) -> None:
    """Two words, ids or keys would become one. A half alone comes back as it is."""
    halves = "\ud842\udfb7"
    whole = halves.encode("utf-16", "surrogatepass").decode("utf-16")
    index = HybridIndex()
    index.add([Passage("high", "\ud842"), Passage("low", f"\udfb7 {whole}")], random_vectors(2))
    index.save(tmp_path)
    loaded = HybridIndex.load(tmp_path)
    texts = [passage.text for passage in loaded.get(["high", "low"])]
    assert texts == ["\ud842", f"\udfb7 {whole}"]
    for passage in (
        Passage("culprit", f"x {halves}"),
        Passage(f"culprit {halves}", "x"),
        Passage("culprit", "x", {"a": [halves]}),
        Passage("culprit", "x", {halves: 1}),
    ):
        index = HybridIndex.load(tmp_path)
        index.add([passage], random_vectors(1))
        with pytest.raises(ValueError, match=r"culprit.* one character in halves; join them"):
            index.save(tmp_path)
    assert HybridIndex.load(tmp_path).ids == ["high", "low"]


@pytest.mark.parametrize("key", [1, 2.5, None, True])
def test_metadata_keys_that_json_would_turn_into_text_are_refused(
    key: object, tmp_path: Path
) -> None:
    """``{1: "x"}`` would come back as ``{"1": "x"}``, and filters would no longer find it."""
    index = HybridIndex()
    index.add([Passage("culprit", "x", {key: "x"})], [[1.0]])  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="culprit"):
        index.save(tmp_path)


@pytest.mark.parametrize(
    "extra",
    [*BAD_METADATA.values(), {"slots": {9: "x", 10: "y"}}, {1: "x", "y": "z"}],
    ids=[*BAD_METADATA, "numbers as keys", "keys of two kinds"],
)
def test_extra_values_that_are_not_json_are_refused(extra: dict[str, Any], tmp_path: Path) -> None:
    """A ValueError as for metadata; the index that was there before is whole."""
    index = make_index(3)
    index.save(tmp_path)
    with pytest.raises(ValueError, match="extra cannot be saved as JSON"):
        index.save(tmp_path, extra=extra)
    assert len(HybridIndex.load(tmp_path)) == 3
    assert len([*tmp_path.iterdir()]) == 2


def test_an_encoder_that_raises_leaves_the_old_index(tmp_path: Path) -> None:
    """Its own error comes through."""

    def broken(source: object) -> object:
        raise RuntimeError("encoder broke")

    index = make_index(3)
    index.save(tmp_path)
    with pytest.raises(RuntimeError, match="encoder broke"):
        index.save(tmp_path, encode_source=broken)
    assert len(HybridIndex.load(tmp_path)) == 3
    assert len([*tmp_path.iterdir()]) == 2


def test_words_of_deleted_passages_are_not_written(tmp_path: Path) -> None:
    """Nor are they kept by an index whose passages are replaced over and over."""
    index = make_index(5)
    index.add([Passage("secret", "w0 hunter2 alice@example.com")], random_vectors(1))
    index.add([Passage("later", "w1 kept")], random_vectors(1))
    index.delete(["secret"])
    index.save(tmp_path / "index")
    (terms,) = (tmp_path / "index").glob("data-*/terms.json")
    assert {"hunter2", "alice", "example.com"} & {*json.loads(terms.read_text())} == set()
    assert "kept" in json.loads(terms.read_text())
    for each in (index, HybridIndex.load(tmp_path / "index")):
        assert each.search("kept", QUERY, k=1, alpha=0.0).passages[0].id == "later"
        assert each.search("hunter2", QUERY, k=1, alpha=0.0).sparse == [0.0]
        each.add([Passage("again", "hunter2")], random_vectors(1))
        assert each.search("hunter2", QUERY, k=1, alpha=0.0).passages[0].id == "again"


@pytest.mark.parametrize("later", [False, True])
def test_words_of_passages_that_could_not_be_added_are_not_written(
    later: bool, tmp_path: Path
) -> None:
    """Whether others were added since or not; the results do not change."""

    def split(text: str) -> list[str]:
        if text == "unreadable":
            raise OSError("cannot be read")
        return text.split()

    index = HybridIndex(tokenizer=split)
    index.add(passages(zipf_texts(20)), random_vectors(20))
    with pytest.raises(OSError, match="cannot be read"):
        index.add([Passage("a", "secret w1"), Passage("b", "unreadable")], random_vectors(2))
    if later:
        index.add([Passage("c", "public w1")], random_vectors(1, seed=1))
    before = results(index)
    index.save(tmp_path)
    assert not any(b"secret" in file.read_bytes() for file in data_of(tmp_path).iterdir())
    assert results(index) == results(HybridIndex.load(tmp_path, tokenizer=split)) == before


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
    terms = (data_of(tmp_path / "index") / "terms.json").read_text(encoding="utf-8")
    assert "news" not in terms
    index.save(tmp_path / "index")
    assert HybridIndex.load(tmp_path / "index").ids == index.ids
    assert "p4" not in index


def test_of_two_saves_at_once_the_later_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for the one under way, which is of an earlier index."""
    index = make_index(5)

    def add_and_save() -> None:
        index.add([Passage("new", "news")], random_vectors(1))
        index.save(tmp_path)

    other = Thread(target=add_and_save)
    save_state = hybrid.save_state

    def save_slowly(*args: Any) -> None:
        if not other.ident:
            other.start()
            other.join(0.3)
        save_state(*args)

    monkeypatch.setattr(hybrid, "save_state", save_slowly)
    index.save(tmp_path)
    other.join()
    assert "new" in HybridIndex.load(tmp_path)


def test_deleted_passages_are_not_written(tmp_path: Path) -> None:
    """What was deleted must not live on in a file, and cannot keep the rest from being saved."""
    index = make_index(5)
    index.add([Passage("gone", "top secret", {"x": object()})], random_vectors(1))
    index.delete(["gone"])
    index.save(tmp_path)
    assert HybridIndex.load(tmp_path).ids == index.ids
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"top secret" not in path.read_bytes(), path.name


def test_saving_into_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    """They stay as they were; so does a file of that name."""
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(IndexFormatError, match=r"thesis\.txt"):
        make_index(3).save(tmp_path)
    with pytest.raises(IndexFormatError, match="is a file"):
        make_index(3).save(tmp_path / "thesis.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("text", ['{"name": "my web app"}', "[]", '"x"'])
def test_another_programs_manifest_is_not_overwritten(text: str, tmp_path: Path) -> None:
    """Web apps have a manifest.json too."""
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(IndexFormatError):
        make_index(3).save(tmp_path)
    assert (tmp_path / "manifest.json").read_text() == text


@pytest.mark.parametrize("over_an_index", [False, True])
def test_folders_that_only_look_like_ours_are_left_alone(
    over_an_index: bool, tmp_path: Path
) -> None:
    """A folder ``data-raw`` of the user's survives every save."""
    if over_an_index:
        make_index(3).save(tmp_path)
    (tmp_path / "data-raw").mkdir()
    (tmp_path / "data-raw" / "measured.csv").write_text("1,2")
    if over_an_index:
        make_index(4).save(tmp_path)
    else:
        with pytest.raises(IndexFormatError, match="data-raw"):
            make_index(4).save(tmp_path)
    assert (tmp_path / "data-raw" / "measured.csv").read_text() == "1,2"


def test_nothing_in_the_folder_is_pickled(tmp_path: Path) -> None:
    """Every array loads with pickling forbidden; the rest is JSON and FAISS."""
    index = make_index(30)
    index.delete(["p0"])
    index.save(tmp_path, encode_source=repr)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".jsonl", ".npy", ".faiss"}
    for path in files:
        if path.suffix == ".npy":
            np.load(path, allow_pickle=False)
        if path.suffix == ".json":
            json.loads(path.read_text(encoding="utf-8"))


def test_the_manifest_says_what_wrote_it(tmp_path: Path) -> None:
    """Format version, library versions and a checksum of every file."""
    make_index(3).save(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["format"] == 1
    assert {"numpy", "faiss"} <= manifest["versions"].keys()
    (data,) = (path for path in tmp_path.iterdir() if path.is_dir())
    assert manifest["files"].keys() == {path.name for path in data.iterdir()}
    assert all(len(sealed["sha256"]) == 64 for sealed in manifest["files"].values())


def test_saving_and_loading_a_corpus_of_unicode_words(tmp_path: Path) -> None:
    """The vocabulary comes back in its order, whatever the script."""
    texts = ["Größe 東京", "привет мир", *zipf_texts(10)]
    index = HybridIndex()
    index.add([Passage(str(n), text) for n, text in enumerate(texts)], random_vectors(12))
    index.save(tmp_path)
    loaded = HybridIndex.load(tmp_path)
    for text in ("東京", "МИР", "größe w1"):
        assert loaded.search(text, QUERY) == index.search(text, QUERY)


def test_another_tokenizer_is_warned_of_where_the_index_is_loaded(tmp_path: Path) -> None:
    """Its name differs; whether it splits alike, nobody knows."""

    def other(text: str) -> list[str]:
        return text.split()

    HybridIndex(tokenizer=str.split).save(tmp_path)
    with pytest.warns(UserWarning, match="both must split text alike") as warned:
        HybridIndex.load(tmp_path, tokenizer=other)
    assert [warning.filename for warning in warned] == [__file__]

"""A process that is forked while a thread searches or writes has all it needs to do the same."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import faiss
import pytest

from shared_core import BM25Index, HybridIndex, Journal, Passage
from shared_core.attention import interface
from shared_core.gating import DriftMonitor, VectorCandidates
from shared_core.generation.hugging_face import HuggingFaceModel
from shared_core.generation.local_model import LocalModel
from shared_core.index import metadata
from shared_core.index.dense import approximate
from shared_core.index.neighbours.place_table import PlaceTable
from shared_core.index.sparse.bm25 import BM25Options
from shared_core.lazy import cached_property
from tests.forking import Stop, in_a_fork, needs_fork

from .making import make_index, preselect_from, random_vectors

pytestmark = needs_fork


@pytest.fixture
def stop() -> Stop:
    return Stop()


def test_while_a_search_weighs_words(stop: Stop, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another index: what is computed at the first search is so without a lock for all."""
    busy, index = make_index(30), make_index(30)
    vector = random_vectors(1)[0]
    expected = make_index(30).search("w1", vector)
    monkeypatch.setattr(BM25Options, "length_norm", stop.before(BM25Options.length_norm))

    def search() -> None:
        assert index.search("w1", vector) == expected

    with stop.during(lambda: busy.search("w1", vector)):
        assert in_a_fork(search) == "done"


def test_while_attention_is_listened_to(stop: Stop) -> None:
    """The forked process listens to its own."""

    def hold() -> None:
        with interface._lock:
            stop()

    def take() -> None:
        with interface._lock:
            pass

    with stop.during(hold):
        assert in_a_fork(take) == "done"


def test_while_a_search_reads_metadata(stop: Stop, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the same index: the forked process reads it too."""
    index = make_index(30)
    vector = random_vectors(1)[0]
    expected = make_index(30).search("w1", vector, where={"lang": "en"})
    monkeypatch.setattr(metadata, "_Column", stop.after(metadata._Column))

    def search() -> None:
        assert index.search("w1", vector, where={"lang": "en"}) == expected

    with stop.during(search):
        assert in_a_fork(search) == "done"


def test_while_passages_are_added(stop: Stop) -> None:
    """What was added only in part is not there, and both processes add their own."""
    index = HybridIndex(tokenizer=stop.after(str.split))
    index.add([Passage("a", "x")], [[1.0, 0.0]])

    def add(id: str) -> None:
        index.add([Passage(id, f"x {id}"), Passage("a", f"y {id}")], [[0.0, 1.0], [1.0, 1.0]])

    def look_and_add() -> None:
        assert index.ids == ["a"]
        add("child")
        assert index.ids == ["child", "a"]
        assert index.search("child", [0.0, 1.0], k=1, alpha=0.0).passages[0].id == "child"

    with stop.during(lambda: add("parent")):
        assert in_a_fork(look_and_add) == "done"
    assert index.ids == ["parent", "a"]


def test_while_faiss_adds_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fork waits: a lock of FAISS's own would stay locked in the forked process."""
    preselect_from(100, monkeypatch)
    under_way: list[None] = []
    begun = threading.Event()
    add = faiss.IndexHNSWSQ.add

    def add_slowly(index: faiss.Index, rows: object) -> None:
        under_way.append(None)
        begun.set()
        time.sleep(0.3)
        add(index, rows)
        under_way.pop()

    def look_and_add() -> None:
        assert not under_way
        assert len(make_index(200, dense="hnsw")) == 200

    monkeypatch.setattr(faiss.IndexHNSWSQ, "add", add_slowly)
    with ThreadPoolExecutor(1) as pool:
        parent = pool.submit(make_index, 200, dense="hnsw")
        assert begun.wait(60)
        assert in_a_fork(look_and_add) == "done"
        assert len(parent.result()) == 200


def test_a_thread_that_makes_forks_wait_can_fork() -> None:
    """As a signal handler may, for which FAISS pauses; in a process of its own, should it hang."""

    def take() -> None:
        with approximate._adding:
            pass

    def fork() -> None:
        with approximate._adding:
            assert in_a_fork(take) == "done"

    assert in_a_fork(fork) == "done"


def test_while_texts_are_added(stop: Stop) -> None:
    index = BM25Index(tokenizer=stop.after(str.split))

    def add() -> None:
        assert index.add(["x y", "x z"]) == range(2)
        assert index.search("z", 1)[0].tolist() == [1]

    with stop.during(add):
        assert in_a_fork(add) == "done"


def test_while_places_are_read(stop: Stop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first passage stands in the table already, but nothing stands there twice."""
    index = HybridIndex()
    passages = [Passage(f"p{n}", "x", {"doc_id": "d", "chunk_id": n}) for n in range(10)]
    index.add(passages, random_vectors(10))
    monkeypatch.setattr(PlaceTable, "_put", stop.after(PlaceTable._put))

    def read() -> None:
        (section,) = index.neighbours()._table._sections.values()
        assert [*section] == [*range(10)]

    with stop.during(read):
        assert in_a_fork(read) == "done"


def test_while_a_gate_is_fitted(stop: Stop) -> None:
    """It decides by the old fit until it is told of the new contexts."""
    gate = VectorCandidates(policy="density")

    def add() -> None:
        vectors = random_vectors(40)
        ids = [f"c{n}" for n in range(40)]
        gate.add(ids, vectors, ids, vectors + 0.01, on_contexts=stop)
        assert len(gate) == 40

    with stop.during(add):
        assert in_a_fork(add) == "done"


def test_while_drift_is_observed(stop: Stop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids, vectors = [f"c{n}" for n in range(40)], random_vectors(40)
    gate = VectorCandidates(policy="density")
    gate.add(ids, vectors, ids, vectors + 0.01)
    monitor = DriftMonitor(gate, window=20)
    monkeypatch.setattr(DriftMonitor, "_reason", stop.before(DriftMonitor._reason))
    for _ in range(19):
        monitor.observe(gate.levels.edge)
    with stop.during(lambda: monitor.observe(gate.levels.edge)):
        assert in_a_fork(lambda: monitor.observe(gate.levels.edge)) == "done"


def test_while_an_answer_is_kept(
    stop: Stop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both processes write into one file, each its own answer."""
    journal = Journal(tmp_path / "answers.jsonl")
    monkeypatch.setattr(Journal, "_append", stop.before(Journal._append))
    with stop.during(lambda: journal.add("model", ("generate", "one"), "1")):
        assert in_a_fork(lambda: journal.add("model", ("generate", "two"), "2")) == "done"
    assert len(Journal(journal.path)) == 2


def test_while_a_model_is_loaded_or_lent(stop: Stop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The forked process loads its own; what it loads is not ours to test here."""

    class Loaded:
        @property
        def model(self) -> Loaded:
            return self

    monkeypatch.setattr(HuggingFaceModel, "from_pretrained", stop.after(lambda _: Loaded()))
    model = LocalModel("some/model")

    def lend() -> None:
        with model.alone():
            stop()

    with stop.during(lend):
        assert in_a_fork(lend) == "done"

    lending = Stop()

    def lend_and_stop() -> None:
        with model.alone():
            lending()

    with lending.during(lend_and_stop):
        assert in_a_fork(lend) == "done"


def test_a_lazy_attribute_is_computed_once_and_documented() -> None:
    """As functools has it; a copy of the object's values takes it along."""

    class Once:
        times = 0

        @cached_property
        def value(self) -> int:
            """What it is."""
            self.times += 1
            return 7

    once = Once()
    assert (once.value, once.value, once.times) == (7, 7, 1)
    assert vars(once)["value"] == 7
    assert Once.value.__doc__ == "What it is."

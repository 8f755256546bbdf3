"""A process that is forked while a thread uses or changes a sparse leg finds it whole."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document

from langchain_posrag.sparse_leg import SparseLeg
from shared_core import BM25Index
from shared_core.index.sparse import view as sparse_view
from tests.forking import Stop, in_a_fork, needs_fork

pytestmark = needs_fork


def documents(version: int) -> list[Document]:
    return [Document(f"mark v{version}", id=f"q{n}", metadata={"v": version}) for n in range(5)]


def check(leg: SparseLeg, version: int) -> None:
    """Check that the leg holds one version, and everywhere the same."""
    found = leg.search("mark", 100, None)
    assert sorted(passage.id for passage in found) == [f"q{n}" for n in range(5)]
    assert [leg.get(passage.id) for passage in found] == found
    assert {passage.metadata["v"] for passage in leg.search("mark", 100, {"v": version})} == {
        version
    }
    assert {passage.metadata["v"] for passage in found} == {version}
    assert (leg.scores("mark", found) > 0).all()


@pytest.mark.parametrize("step", ["delete", "append", "compact"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_amid_a_replacement_the_old_documents_are_there(
    when: str, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each step of it; the forked process then replaces them itself."""
    monkeypatch.setattr(sparse_view, "COMPACT", 1)
    stop = Stop()
    leg = SparseLeg.from_documents([Document("other", id="p"), *documents(0)])
    leg.delete([Document("other", id="p")])
    monkeypatch.setattr(BM25Index, step, getattr(stop, when)(getattr(BM25Index, step)))

    def look_and_replace() -> None:
        check(leg, 0)
        leg.add(documents(2))
        check(leg, 2)

    with stop.during(lambda: leg.add(documents(1))):
        assert in_a_fork(look_and_replace) == "done"
    check(leg, 1)


def test_while_it_is_searched() -> None:
    stop = Stop()
    leg = SparseLeg.from_documents(documents(0))

    def visible(metadata: Any) -> bool:
        stop()
        return True

    def search() -> None:
        assert len(leg.search("mark", 3, visible)) == 3

    with stop.during(search):
        assert in_a_fork(search) == "done"


def test_while_texts_are_split() -> None:
    stop = Stop()
    leg = SparseLeg.from_documents(documents(0), tokenizer=stop.after(str.split))

    def add() -> None:
        leg.add(documents(1))
        check(leg, 1)

    with stop.during(add):
        assert in_a_fork(add) == "done"


def test_a_replacement_that_has_ended_stays() -> None:
    """In a process that is forked later there is nothing to take back."""
    leg = SparseLeg.from_documents(documents(0))
    leg.add(documents(1))
    assert in_a_fork(lambda: check(leg, 1)) == "done"

"""A save that is killed, interrupted, or not alone: some whole index is always there."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from shared_core import HybridIndex, IndexFormatError, Passage

from .making import check_saves_and_loads_at_once, make_index

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def killed_at(event: int, work: Callable[[], object]) -> bool:
    """Do `work` in a child that is killed before its n-th touch of the file system.

    Returns False if `work` touches it less often, and ended by itself.
    """
    child = os.fork()
    if child == 0:
        touches = itertools.count()

        def hook(name: str, _: object) -> None:
            touched = name == "open" or name.startswith(("os.", "shutil."))
            if touched and next(touches) == event:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            work()
        except BaseException:
            os._exit(9)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status != 0


def other_index() -> HybridIndex:
    index = HybridIndex()
    index.add([Passage("a", "x"), Passage("b", "y")], [[1.0, 0], [0, 1]])
    return index


def test_a_save_killed_anywhere_leaves_the_old_index_or_the_new_one(tmp_path: Path) -> None:
    """Before every single touch of the file system; a later save works and cleans up."""
    old, new = make_index(5), other_index()
    old.delete(["p0"])
    old.save(tmp_path / "pristine")
    seen = []
    for event in itertools.count():
        folder = Path(shutil.copytree(tmp_path / "pristine", tmp_path / str(event)))
        killed = killed_at(event, lambda folder=folder: new.save(folder))  # type: ignore[misc]
        seen.append(HybridIndex.load(folder).ids)
        assert seen[-1] in (old.ids, new.ids), f"killed at touch {event}"
        old.save(folder)
        assert HybridIndex.load(folder).ids == old.ids
        assert len([*folder.iterdir()]) == 2, f"left behind by a kill at touch {event}"
        shutil.rmtree(folder)
        if not killed:
            break
    assert len(seen) > 20
    assert seen == sorted(seen, key=lambda ids: ids == new.ids)
    assert (seen[0], seen[-1]) == (old.ids, new.ids)


def test_a_first_save_killed_anywhere_can_be_repeated(tmp_path: Path) -> None:
    """What it left is no index, but no obstacle either."""
    index = other_index()
    for event in itertools.count():
        folder = tmp_path / str(event)
        killed = killed_at(event, lambda folder=folder: index.save(folder))  # type: ignore[misc]
        try:
            assert HybridIndex.load(folder).ids == index.ids
        except IndexFormatError:
            assert killed
        index.save(folder)
        assert HybridIndex.load(folder).ids == index.ids
        assert len([*folder.iterdir()]) == 2, f"left behind by a kill at touch {event}"
        if not killed:
            break
    assert event > 20


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_interrupt_around_the_last_step_loses_nothing(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C before or right after the manifest is replaced: the old index or the new one."""
    make_index(5).save(tmp_path)
    replace = Path.replace

    def interrupted(path: Path, target: Path) -> Path:
        if when == "before":
            raise KeyboardInterrupt
        replace(path, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            other_index().save(tmp_path)
    ids = HybridIndex.load(tmp_path).ids
    assert ids == (make_index(5).ids if when == "before" else ["a", "b"])
    other_index().save(tmp_path)
    assert len([*tmp_path.iterdir()]) == 2


def test_saves_and_loads_of_one_folder_at_once(tmp_path: Path) -> None:
    """Three savers and two loaders: every load finds one whole index, and so does the last."""
    check_saves_and_loads_at_once(tmp_path, seconds=1.0)
    make_index(3).save(tmp_path)
    assert len([*tmp_path.iterdir()]) == 2


def test_a_save_under_way_takes_one_whole_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passages added while the files are written are in the next save, not half in this one."""
    index = make_index(5)
    replace, writers = Path.replace, []

    def add_meanwhile(path: Path, target: Path) -> Path:
        writer = threading.Thread(target=index.add, args=([Passage("late", "x")], [[1.0] * 8]))
        writer.start()
        writer.join(0.2)
        writers.append(writer)
        return replace(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", add_meanwhile)
        index.save(tmp_path)
    for writer in writers:
        writer.join()
    assert writers
    assert "late" in index
    assert HybridIndex.load(tmp_path).ids == make_index(5).ids

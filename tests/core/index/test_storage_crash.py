"""A save that is killed, interrupted, or not alone: some whole index is always there."""

from __future__ import annotations

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest

from shared_core import HybridIndex, IndexFormatError, Passage
from tests.core.making import make_index

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


@pytest.mark.parametrize("first", [False, True])
def test_a_save_killed_anywhere_leaves_the_old_index_or_the_new_one(
    first: bool, tmp_path: Path
) -> None:
    """Before every single touch of the file system; a later save works and cleans up.

    What a first save left is no index, but no obstacle either.
    """
    old, new, seen = make_index(5), other_index(), []
    old.delete(["p0"])
    for event in itertools.count():
        folder = tmp_path / str(event)
        if not first:
            old.save(folder)
        killed = killed_at(event, lambda folder=folder: new.save(folder))  # type: ignore[misc]
        with suppress(IndexFormatError) if first and killed else nullcontext():
            seen.append(HybridIndex.load(folder).ids)
        old.save(folder)
        assert HybridIndex.load(folder).ids == old.ids
        assert len([*folder.iterdir()]) == 2, f"left behind by a kill at touch {event}"
        if not killed:
            break
    assert event > 20
    until = 0 if first else seen.index(new.ids)
    assert seen == [old.ids] * until + [new.ids] * (len(seen) - until)
    assert first or until > 0


@pytest.mark.parametrize("replaced", [False, True])
def test_an_interrupt_around_the_last_step_loses_nothing(
    replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C before or right after the manifest is replaced: the old index or the new one."""
    make_index(5).save(tmp_path)
    replace = Path.replace

    def interrupted(path: Path, target: Path) -> Path:
        if replaced:
            replace(path, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            other_index().save(tmp_path)
    assert HybridIndex.load(tmp_path).ids == (other_index() if replaced else make_index(5)).ids
    other_index().save(tmp_path)
    assert len([*tmp_path.iterdir()]) == 2


def test_saves_and_loads_of_one_folder_at_once(tmp_path: Path) -> None:
    """Three savers and two loaders: every load finds one whole index, and so does the last."""
    indexes = [make_index(n) for n in (3, 5, 7)]
    indexes[0].save(tmp_path)
    until, loads = time.monotonic() + 0.7, []

    def save(index: HybridIndex) -> None:
        while time.monotonic() < until:
            index.save(tmp_path)

    def load(_: int) -> None:
        while time.monotonic() < until:
            loads.append(len(HybridIndex.load(tmp_path)))

    with ThreadPoolExecutor(5) as pool:
        running = [*(pool.submit(save, each) for each in indexes)]
        running += [pool.submit(load, n) for n in range(2)]
        for done in running:
            done.result()
    assert {*loads} <= {3, 5, 7}
    assert len(HybridIndex.load(tmp_path)) in (3, 5, 7)
    indexes[0].save(tmp_path)
    assert len([*tmp_path.iterdir()]) == 2

"""Calls in other threads, and in the waiting one where none has begun."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from shared_core.index import beside
from shared_core.index.beside import THREADS, BackgroundCall, map_ahead


@pytest.fixture
def busy() -> Iterator[threading.Event]:
    """All threads wait for an event."""
    going, begun = threading.Event(), threading.Semaphore(0)

    def wait() -> None:
        begun.release()
        assert going.wait(60)

    calls = [BackgroundCall(wait) for _ in range(THREADS)]
    for _ in calls:
        assert begun.acquire(timeout=60)
    yield going
    going.set()
    for call in calls:
        call.result()


def test_a_call_is_made_in_another_thread() -> None:
    """Which has begun before anybody waits for it."""
    begun = threading.Event()

    def name() -> str:
        begun.set()
        return threading.current_thread().name

    call = BackgroundCall(name)
    assert begun.wait(60)
    assert call.result().startswith("posrag")
    assert call.result() == call.result()
    assert call.done
    assert not call.here()


def test_nobody_waits_for_threads_that_are_busy_with_the_work_of_others(
    busy: threading.Event,
) -> None:
    """It is called once, by who asks for the result."""
    callers: list[threading.Thread] = []
    call = BackgroundCall(lambda: callers.append(threading.current_thread()))
    assert not call.done
    call.result()
    busy.set()
    call.result()
    assert callers == [threading.current_thread()]


def test_where_no_thread_can_be_started_it_is_called_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though Python's pool tells so only once others of its threads may have made the call."""

    class Full:
        def submit(self, call: Callable[[list[Any]], object], functions: list[Any]) -> None:
            call(functions)
            raise RuntimeError("can't start new thread")

    monkeypatch.setattr(beside, "_threads", Full())
    assert BackgroundCall(threading.current_thread).result() is threading.current_thread()


@pytest.mark.parametrize("here", [False, True])
def test_an_error_reaches_who_asks(here: bool, busy: threading.Event) -> None:
    """From another thread, and from one's own; again, without another call."""
    calls: list[threading.Thread] = []
    begun = threading.Event()

    def fail() -> None:
        calls.append(threading.current_thread())
        begun.set()
        raise ZeroDivisionError

    call = BackgroundCall(fail)
    if not here:
        busy.set()
        assert begun.wait(60)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            call.result()
    assert call.done
    assert [thread is threading.current_thread() for thread in calls] == [here]


def test_an_error_waits_for_its_turn(busy: threading.Event) -> None:
    """Results before it are not lost, though a later call is made while one waits for them."""
    halves = map_ahead(lambda n: 1 / (2 - n), range(5))
    assert [next(halves), next(halves)] == [0.5, 1.0]
    with pytest.raises(ZeroDivisionError):
        next(halves)


def test_what_nobody_will_ask_for_is_not_called(busy: threading.Event) -> None:
    """It would hold up what is asked next."""
    called: list[int] = []
    numbers = map_ahead(called.append, range(100))
    next(numbers)
    assert called == [0]
    numbers.close()  # type: ignore[attr-defined]
    busy.set()
    drained = threading.Event()
    BackgroundCall(drained.set)
    assert drained.wait(60)
    assert called == [0]


def test_results_come_in_order(busy: threading.Event) -> None:
    """Whoever makes the calls."""
    squares = map_ahead(lambda n: n * n, range(100))
    assert [next(squares) for _ in range(50)] == [n * n for n in range(50)]
    busy.set()
    assert list(squares) == [n * n for n in range(50, 100)]


def test_who_waits_for_one_result_makes_the_calls_after_it() -> None:
    """So that its core is not idle meanwhile."""
    main, taken_over, begun = threading.current_thread(), threading.Event(), threading.Event()

    def call(number: int) -> int:
        begun.set()
        if threading.current_thread() is main:
            taken_over.set()
        assert taken_over.wait(60), "nobody called a later one meanwhile"
        return number

    numbers = (n for n in range(THREADS + 1) if n == 0 or begun.wait(60))
    assert list(map_ahead(call, numbers)) == [*range(THREADS + 1)]


def test_only_a_few_arguments_are_taken_ahead() -> None:
    """Others may never be asked for, or take much memory."""
    taken: list[int] = []
    numbers = map_ahead(lambda n: n, (taken.append(n) or n for n in range(1000)))  # type: ignore[func-returns-value]
    assert next(numbers) == 0
    assert len(taken) <= 2 * THREADS + 2

"""Many prompts to one model: order, checks, threads, failures and interrupts."""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from shared_core import PosragError
from shared_core.errors import GenerationError, MissingExtraError
from shared_core.generation import CallableModel, ask, threads
from shared_core.generation.ask import ModelClient, Request, Response
from shared_core.generation.journal import Journal, NotKeptError
from shared_core.generation.responses import Failed

PROMPTS: list[Request] = [(f"prompt {n}",) for n in range(10)]


class Model:
    """Answers in capitals, and keeps what it was asked."""

    def __init__(self) -> None:
        self.batches: list[list[Request]] = []
        self.threads: set[int] = set()

    def __call__(self, requests: Sequence[Request]) -> list[Any]:
        self.batches.append([*requests])
        self.threads.add(threading.get_ident())
        return [request[0].upper() for request in requests]

    @property
    def asked(self) -> list[Request]:
        return [request for batch in self.batches for request in batch]


class FailingAt(Model):
    """Fails whenever a certain prompt is asked."""

    def __init__(self, prompt: str, error: BaseException) -> None:
        super().__init__()
        self.prompt = prompt
        self.error = error

    def __call__(self, requests: Sequence[Request]) -> list[Any]:
        answers = super().__call__(requests)
        if (self.prompt,) in requests:
            raise self.error
        return answers


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "answers.jsonl")


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits are kept here instead of being slept."""
    seconds: list[float] = []

    def pause(wait: float, stop: threading.Event) -> bool:
        seconds.append(wait)
        return True

    monkeypatch.setattr(ask, "pause", pause)
    return seconds


def client_of(call: Any, journal: Journal | None = None, **options: Any) -> ModelClient:
    model = CallableModel(lambda prompts: call([(each,) for each in prompts]), name="m")
    return ModelClient(model=model, journal=journal, **options)


def capitals(requests: Sequence[Request]) -> list[str]:
    return [request[0].upper() for request in requests]


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("batch_size", [1, 3, 99])
def test_answers_come_in_the_order_of_the_requests(batch_size: int, concurrency: int) -> None:
    """However they are batched."""
    model = Model()
    client = client_of(model, batch_size=batch_size, concurrency=concurrency)
    assert client.answers(PROMPTS) == capitals(PROMPTS)
    assert sorted(model.asked) == PROMPTS
    assert max(map(len, model.batches)) == min(batch_size, 10)
    assert len(model.batches) == math.ceil(10 / batch_size)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_what_the_journal_holds_is_not_asked_again(journal: Journal, concurrency: int) -> None:
    """Within a run, and in another one; by the same model only."""
    first, second, other = Model(), Model(), Model()
    client_of(first, journal).answers(PROMPTS[:4])
    counts: list[int] = []
    client = client_of(second, Journal(journal.path), batch_size=3, concurrency=concurrency)
    twice = [*PROMPTS, *PROMPTS[4:6]]
    assert client.answers(twice, on_answer=counts.append) == capitals(twice)
    assert sorted(second.asked) == PROMPTS[4:], "equal ones are asked once"
    assert (counts[0], sum(counts)) == (4, 12)
    assert client.answers(PROMPTS) == capitals(PROMPTS)
    assert len(second.asked) == 6
    client_of(other, Journal(journal.path), fingerprint="n").answers(PROMPTS)
    assert len(other.asked) == 10


def test_calls_are_made_at_once(journal: Journal) -> None:
    """Four of them: a barrier opens for no less. All is told in the calling thread.

    They are made in the context of the caller: a tracer or a request's user is found by it.
    """
    barrier, tenant = threading.Barrier(4), ContextVar("tenant", default="nobody")
    model, heard, seen = Model(), set[int](), set[str]()

    def call(requests: Sequence[Request]) -> list[Response]:
        barrier.wait(60)
        seen.add(tenant.get())
        return model(requests)

    client = client_of(call, journal, batch_size=2, concurrency=4)
    requests = [(f"p{n}",) for n in range(16)]
    token = tenant.set("acme")
    answers = client.answers(requests, on_answer=lambda _: heard.add(threading.get_ident()))
    tenant.reset(token)
    assert answers == capitals(requests)
    assert len(model.threads) == 4
    assert threading.get_ident() not in model.threads
    assert heard == {threading.get_ident()}
    assert seen == {"acme"}
    assert len(Journal(journal.path)) == 16


class Overloaded(Exception):
    """What the client of a busy server raises."""

    status_code = 529
    headers = {"retry-after": "120"}  # noqa: RUF012


def test_waits_are_told_in_the_calling_thread(waits: list[float]) -> None:
    """With what happened, whichever thread waits; for as long as the server asks at least."""
    failed, told = set[Request](), list[tuple[int, str]]()

    def call(requests: Sequence[Request]) -> list[Response]:
        if requests[0] not in failed:
            failed.add(requests[0])
            raise Overloaded if requests[0] == PROMPTS[0] else TimeoutError("slow")
        return ["x"]

    client_of(call, concurrency=2, attempts=3).answers(
        PROMPTS, on_wait=lambda message: told.append((threading.get_ident(), message))
    )
    assert len(told) == len(waits) == len({*waits}) == 10, "calls must not come back at once"
    assert {thread for thread, _ in told} == {threading.get_ident()}
    messages = [message for _, message in told]
    assert "Overloaded; waiting 120 s before attempt 2 of 3" in messages
    assert sum(each.startswith("TimeoutError: slow; waiting ") for each in messages) == 9


def test_a_wait_that_nobody_calls_off_lasts() -> None:
    begin = time.monotonic()
    assert threads.pause(0.25, stop=threading.Event())
    assert time.monotonic() - begin >= 0.25


@pytest.mark.parametrize(
    ("returned", "told", "kept"),
    [
        (["x"], r"returned 1 answers, a list \(\['x'\]\), for 3 prompts, .* 'prompt 0", [None] * 3),
        ("xyz", r"returned a str \('xyz'\) instead of a list", [None] * 3),
        (
            ["x", {"text": "x" * 5000}, "z"],
            r"returned a dict \(\{'text': 'xxx.* instead of a str for .* 'prompt 1'",
            ["x", None, "z"],
        ),
    ],
)
def test_what_is_not_one_text_a_prompt_is_an_error(
    returned: Any, told: str, kept: list[str | None], journal: Journal
) -> None:
    """It names the model, what came, and what was asked; what is good is kept, nothing repeated."""
    calls: list[int] = []

    def call(requests: Sequence[Request]) -> Any:
        calls.append(len(requests))
        return returned

    with pytest.raises(GenerationError, match=rf"model 'm' {told}") as caught:
        client_of(call, journal, batch_size=3).answers(PROMPTS[:3])
    assert len(str(caught.value)) < 500
    assert [journal.get("m", prompt) for prompt in PROMPTS[:3]] == kept
    assert calls == [3]


def test_a_prompt_before_the_answer_is_no_part_of_it(journal: Journal) -> None:
    """Its passages would be graded: a template of a chat around it is a failure."""
    prompt = "C7 is the code. Which is it?\n"
    assert client_of(lambda _: [f"{prompt}C8"], journal).answers([(prompt,)]) == ["C8"]
    chat = client_of(lambda _: [f"<user>{prompt.strip()}<assistant>C8"])
    with pytest.raises(GenerationError, match=r"'<user>C7 .* instead of .*return_full_text=False"):
        chat.answers([(prompt,)])


def test_a_model_is_asked_as_it_suits_it(waits: list[float]) -> None:
    """One by one, unless it says otherwise; not for scores that it does not have.

    The error names it, with the way out; it would never come to have them, so that nobody waits.
    """
    batches: list[int] = []

    class AnswersOnly:
        name = "answers only"

        def generate(self, prompts: Sequence[str]) -> list[str]:
            batches.append(len(prompts))
            return [*prompts]

    model = AnswersOnly()
    ModelClient.of(model).answers(PROMPTS[:3])
    model.batch_size = 2  # type: ignore[attr-defined]
    ModelClient.of(model).answers(PROMPTS[:3])
    assert batches == [1, 1, 1, 2, 1]
    with pytest.raises(GenerationError, match=r"'answers only' has no log_probabilities.* give a"):
        ModelClient.of(AnswersOnly()).answers([("p", "c")])
    assert waits == []


def test_a_failure_of_the_models_own_is_not_repeated_and_keeps_its_words(
    waits: list[float],
) -> None:
    """A GenerationError of its own, and a missing extra."""
    model = FailingAt("prompt 7", ValueError("too long"))
    with pytest.raises(GenerationError, match=r"^model 'm' failed: ValueError: too long$"):
        client_of(model).answers(PROMPTS)
    assert model.asked == PROMPTS[:8]
    for own in (GenerationError("model 'm' was cut off"), MissingExtraError("pip install")):
        with pytest.raises(PosragError, match=f"^{own}$"):
            client_of(FailingAt("prompt 7", own)).answers(PROMPTS)
    assert waits == []


def test_what_is_under_way_when_a_call_fails_is_kept(journal: Journal) -> None:
    """It is waited for, those that wait for a failure to pass are not, and no other is begun."""
    failed, waiting = threading.Event(), threading.Event()
    calls: list[Request] = []

    def call(requests: Sequence[Request]) -> list[Response]:
        calls.append(requests[0])
        match requests[0][0]:
            case "fails":
                assert waiting.wait(60)
                failed.set()
                raise ValueError("too long")
            case "waits":
                # Its backoff would take two minutes.
                raise Overloaded
        assert failed.wait(60)
        threading.Event().wait(0.1)
        return ["at last"]

    requests: list[Request] = [("fails",), ("waits",), ("late",), ("never",), ("nor this",)]
    client = client_of(call, journal, concurrency=3)
    with pytest.raises(GenerationError, match=r"ValueError: too long$"):
        client.answers(requests, on_wait=lambda _: waiting.set())
    assert Journal(journal.path).get("m", ("late",)) == "at last"
    assert sorted(calls) == [("fails",), ("late",), ("waits",)]


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_disk_that_gets_full_is_named_and_no_prompt_is_blamed(
    journal: Journal, concurrency: int
) -> None:
    client = client_of(Model(), journal, concurrency=concurrency)
    client.answers(PROMPTS[:4])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.path.stat().st_size, before[1]))
    try:
        with pytest.raises(NotKeptError) as caught:
            client.answers(PROMPTS)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert str(caught.value) == f"{journal.path} cannot be written (File too large)"
    assert len(Journal(journal.path)) == 4
    assert client.answers(PROMPTS) == capitals(PROMPTS)
    assert len(Journal(journal.path)) == 10


@pytest.mark.parametrize("concurrency", [1, 2])
def test_what_is_no_failure_of_the_model_is_raised_as_it_is(
    journal: Journal, concurrency: int
) -> None:
    """A callback's error, and an exit, which would end its thread alone; answers are kept."""
    client = client_of(Model(), journal, concurrency=concurrency)
    with pytest.raises(ZeroDivisionError):
        client.answers(PROMPTS, on_answer=lambda count: count / 0)
    assert 1 <= len(Journal(journal.path)) <= 10
    with pytest.raises(SystemExit):
        client_of(FailingAt("prompt 3", SystemExit(3)), concurrency=concurrency).answers(PROMPTS)


def collected(client: ModelClient, requests: Sequence[Request]) -> tuple[list[Any], list[Request]]:
    """Return the texts, or the reasons of failures, and the requests reported as failing."""
    failed: list[Request] = []
    found = client.answers_or_failures(requests, on_failure=lambda each, _: failed.append(each))
    answers = (found[each] for each in requests)
    return [each.reason if isinstance(each, Failed) else each for each in answers], failed


@pytest.mark.parametrize(
    ("concurrency", "batch_size", "sent"),
    [(1, 1, [1] * 10), (3, 1, [1] * 10), (1, 4, [4, 4, 1, 1, 1, 1, 2])],
)
def test_a_request_that_fails_costs_the_others_nothing(
    concurrency: int, batch_size: int, sent: list[int], journal: Journal
) -> None:
    """Only a batch that fails is sent again, one by one; the failure stands in its place."""
    model = FailingAt("prompt 7", ValueError("filtered"))
    client = client_of(model, journal, concurrency=concurrency, batch_size=batch_size)
    found, failed = collected(client, [*PROMPTS, PROMPTS[7]])
    assert found == [*capitals(PROMPTS[:7]), (why := "ValueError: filtered"),
                     *capitals(PROMPTS[8:]), why]  # fmt: skip
    assert failed == [PROMPTS[7]]
    assert [*map(len, model.batches)] == sent
    assert len(journal) == 9


@pytest.mark.parametrize("report", [True, False])
def test_what_is_answered_beside_a_prompt_that_times_out_is_paid_for_twice_at_most(
    report: bool, waits: list[float], journal: Journal
) -> None:
    """A server answers the prompts of a call one by one, and takes too long for one of them."""
    model = FailingAt("prompt 2", TimeoutError("slow"))
    client = client_of(model, journal, batch_size=8, attempts=5)
    if report:
        assert collected(client, PROMPTS)[1] == [PROMPTS[2]]
    else:
        told = "^model 'm' failed after 5 attempts: TimeoutError: slow$"
        with pytest.raises(GenerationError, match=told) as caught:
            client.answers(PROMPTS)
        assert caught.value.__cause__ is model.error
    sent = Counter(model.asked)
    assert sent.pop(PROMPTS[2]) == 5
    assert max(sent.values()) == 2
    assert len(waits) == 4


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_request_that_fails_for_a_passing_reason_for_ever_is_at_fault(
    concurrency: int, waits: list[float], journal: Journal
) -> None:
    """Others are answered, or have been before."""
    for _ in range(2):
        model = FailingAt("prompt 0", ConnectionError("reset"))
        client = client_of(model, journal, concurrency=concurrency, attempts=2)
        found, failed = collected(client, PROMPTS)
        assert found == ["ConnectionError: reset", *capitals(PROMPTS[1:])]
        assert failed == [PROMPTS[0]]
        sent = Counter(model.asked)
        assert sent.pop(PROMPTS[0]) == 2
        assert {*sent.values()} <= {1}
    assert len(model.asked) == 2
    assert concurrency > 1 or len(journal.path.read_text().splitlines()) == 9


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_service_that_is_down_is_given_up_soon(
    concurrency: int, waits: list[float], journal: Journal
) -> None:
    """When the first three requests fail for a passing reason, no request is blamed."""
    client_of(Model(), journal).answers(PROMPTS[:2])
    calls: list[Request] = []

    def call(requests: Sequence[Request]) -> list[Response]:
        calls.extend(requests)
        raise ConnectionError("refused")

    client = client_of(call, journal, concurrency=concurrency, attempts=2)
    with pytest.raises(GenerationError, match=r"after 2 attempts: ConnectionError"):
        collected(client, PROMPTS)
    assert len(calls) <= 6 * concurrency


# What follows happens to a process of its own.

CHILD = """
import json, sys, threading
from pathlib import Path
from shared_core.generation import CallableModel, Journal, ModelClient, threads

journal, scenario, concurrency = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
threads.GRACE = 0.1
lock, asked = threading.Lock(), 0

class Overloaded(Exception):
    status_code = 529
    headers = {"retry-after": "120"}

def call(prompts):
    global asked
    with lock:
        asked += 1
        number = asked
    if number > 4:
        if scenario == "waits":
            raise Overloaded("busy")
        with lock:
            print("calling", flush=True)
        threading.Event().wait(600)
    return [prompt.upper() for prompt in prompts]

client = ModelClient.of(CallableModel(call, name="m", concurrency=concurrency, batch_size=2),
                        journal=Journal(journal))
prompts = [(f"prompt {n}",) for n in range(30)]
try:
    client.answers(prompts, on_wait=lambda message: print(message, flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""


def child(journal: Path, scenario: str, concurrency: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(journal), scenario, str(concurrency)],
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize(
    ("scenario", "sign"), [("calls", "calling"), ("waits", "Overloaded: busy; waiting 120 s")]
)
def test_an_interrupted_run_ends_and_keeps_what_was_answered(
    tmp_path: Path, scenario: str, sign: str, concurrency: int
) -> None:
    """During a call of ten minutes, or a wait of two, it does not sit them out."""
    path = tmp_path / "answers.jsonl"
    process = child(path, scenario, concurrency)
    assert process.stdout is not None
    for _ in range(concurrency):  # the calls that hang; all that were answered are kept by then
        assert process.stdout.readline().startswith(sign)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert len(Journal(path)) == 8


SLOW: list[Request] = [("quick",), ("slow 1",), ("slow 2",), ("slow 3",), ("slow 4",)]


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_a_call_that_ends_soon_after_an_interrupt_is_kept(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer was paid for. No other is begun."""
    release, model = threading.Event(), Model()
    monkeypatch.setattr(threads, "GRACE", 30.0)

    def call(requests: Sequence[Request]) -> list[Response]:
        answers = model(requests)
        if len(model.batches) == 3:  # the quick one is answered, and both threads are in a slow one
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            threading.Timer(0.5, release.set).start()
        assert requests == [("quick",)] or release.wait(60)
        return answers

    with pytest.raises(KeyboardInterrupt):
        client_of(call, journal, concurrency=2).answers(SLOW)
    assert len(Journal(journal.path)) == 3
    assert sorted(model.asked) == SLOW[:3]

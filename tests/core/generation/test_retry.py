"""Which failures pass, how long they are waited for, and what ends the waiting."""

from __future__ import annotations

import io
import random
import ssl
import threading
import time
import urllib.error
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from shared_core.generation.retry import (
    WaitEndedError,
    Waits,
    call,
    describe,
    explain,
    is_refusal,
    is_transient,
    pause,
    retry_after,
)

openai = pytest.importorskip("openai")

REQUEST = httpx.Request("POST", "https://example.org/v1/chat/completions")


class Coded(Exception):
    """An error that carries what a client's error carries."""

    def __init__(self, message: str = "", **attributes: object) -> None:
        super().__init__(message)
        self.__dict__.update(attributes)


def named(name: str) -> Exception:
    """Return an error whose class has that name."""
    error: Exception = type(name, (Exception,), {})("something went wrong")
    return error


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


def of_openai(status: int, *, code: str | None = None, **headers: str) -> Exception:
    """Return what the client of openai raises for a response of that status."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    client = openai.OpenAI(api_key="none")
    body = {"error": {"message": "no", "code": code, "type": code}}
    with client:
        error: Exception = client._make_status_error(
            f"Error code: {status}",
            body=body,
            response=httpx.Response(status, request=REQUEST, json=body, headers=names),
        )
    return error


def of_botocore(code: str, status: int, **headers: str) -> Exception:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = {
        "Error": {"Code": code, "Message": "no"},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": names},
    }
    return Coded(response=response)


def of_urllib(status: int, **headers: str) -> Exception:
    message = Message()
    for name, value in headers.items():
        message[name.replace("_", "-").title()] = value
    return urllib.error.HTTPError("https://example.org", status, "no", message, io.BytesIO())


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_openai_errors_that_pass(status: int) -> None:
    """The real classes, as the real client makes them from a response."""
    assert is_transient(of_openai(status))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_openai_errors_that_do_not(status: int) -> None:
    """A wrong key or a prompt that is too long stays so."""
    assert not is_transient(of_openai(status))


def test_openai_connections_and_timeouts_pass() -> None:
    """They carry no status."""
    assert is_transient(openai.APIConnectionError(request=REQUEST))
    assert is_transient(openai.APITimeoutError(request=REQUEST))


def test_langchains_errors_of_openai_pass_too() -> None:
    """Subclasses, known by the names of their bases; its first versions have none."""
    classes = pytest.importorskip("langchain_openai.chat_models.base")
    timeout = getattr(classes, "OpenAITimeoutError", openai.APITimeoutError)
    assert is_transient(timeout(request=REQUEST))
    assert is_transient(caused(RuntimeError("the chain failed"), of_openai(429)))


def test_an_exhausted_quota_does_not_pass() -> None:
    """It has the status of a rate limit, but waiting for it would be in vain; wrapped or not."""
    exhausted = of_openai(429, code="insufficient_quota")
    assert isinstance(exhausted, openai.RateLimitError)
    assert not is_transient(exhausted)
    assert not is_transient(caused(of_openai(429), exhausted))
    assert not is_transient(Coded("429 - {'code': 'insufficient_quota'}", status_code=429))


@pytest.mark.parametrize(
    "cause",
    [
        httpx.UnsupportedProtocol("Request URL is missing an 'http://' or 'https://' protocol."),
        httpx.LocalProtocolError("Illegal header value b'Bearer '"),
        caused(httpx.ConnectError("no"), ssl.SSLCertVerificationError("expired")),
    ],
)
def test_a_connection_that_can_never_be_made_is_not_tried_again(cause: Exception) -> None:
    """The client calls a wrong URL or key a connection error, and says why in the cause."""
    assert not is_transient(caused(openai.APIConnectionError(request=REQUEST), cause))


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        ConnectionResetError(),
        httpx.ReadTimeout("slow"),
        httpx.ConnectTimeout("slow"),
        httpx.ConnectError("refused"),
        httpx.ReadError("gone"),
        httpx.RemoteProtocolError("gone"),
        httpx.HTTPStatusError("no", request=REQUEST, response=httpx.Response(503)),
        Coded(status_code=529),
        Coded(code=425),
        Coded(status=429),
        Coded(response=Coded(status_code=502)),
        of_urllib(503),
        urllib.error.URLError(ConnectionRefusedError()),
        of_botocore("ThrottlingException", 400),
        of_botocore("AnythingElse", 503),
        named("ResourceExhausted"),
        named("ServiceUnavailable"),
        named("ThrottlingException"),
        named("OverloadedError"),
    ],
)
def test_errors_of_other_clients_that_pass(error: Exception) -> None:
    """As themselves, and as the cause of an adapter's own error."""
    assert is_transient(error)
    assert is_transient(caused(RuntimeError("wrapped"), caused(ValueError("twice"), error)))


def test_errors_of_requests_pass() -> None:
    """Their ConnectionError is not Python's."""
    requests = pytest.importorskip("requests")
    for error in (requests.ConnectionError(), requests.ReadTimeout(), requests.ConnectTimeout()):
        assert is_transient(error)
    assert not is_transient(requests.exceptions.MissingSchema())


@pytest.mark.parametrize(
    "error",
    [
        ValueError("too long"),
        TypeError(),
        RuntimeError("429"),
        KeyError("status_code"),
        httpx.HTTPStatusError("no", request=REQUEST, response=httpx.Response(404)),
        httpx.InvalidURL("no"),
        Coded(status_code=200, code="429"),
        Coded(code=lambda: 429),
        Coded(status_code=None, response=None),
        Coded(response={"Error": "text", "ResponseMetadata": None}),
        of_urllib(404),
        of_botocore("AccessDeniedException", 403),
        MemoryError(),
        KeyboardInterrupt(),
        SystemExit(429),
    ],
)
def test_errors_that_do_not_pass(error: BaseException) -> None:
    """Above all what the model's own code gets wrong."""
    assert not is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        *map(of_openai, (401, 402, 403, 404)),
        of_openai(429, code="insufficient_quota"),
        of_urllib(404),
        of_botocore("AccessDeniedException", 403),
        httpx.UnsupportedProtocol("no"),
    ],
)
def test_what_no_other_call_would_change_is_a_refusal(error: Exception) -> None:
    """As itself, and as the cause of an adapter's own error."""
    assert is_refusal(error)
    assert is_refusal(caused(RuntimeError("wrapped"), error))


@pytest.mark.parametrize(
    "error",
    [
        *map(of_openai, (400, 413, 422, 429, 500)),
        ValueError("401"),
        httpx.ConnectError("refused"),
        SystemExit(404),
    ],
)
def test_what_is_one_calls_own_failure_is_none(error: BaseException) -> None:
    """A prompt that is too long, or what passes."""
    assert not is_refusal(error)


def test_causes_in_a_circle_come_to_an_end() -> None:
    a, b = ValueError("a"), ValueError("b")
    a.__cause__, b.__cause__ = b, a
    assert not is_transient(a)
    assert retry_after(a) is None


@pytest.mark.parametrize("make", [of_openai, of_urllib, lambda s, **h: of_botocore("x", s, **h)])
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "1500", "retry_after": "2"}, 1.5),
        ({"retry_after_ms": "soon", "retry_after": "2"}, 2.0),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after": "3600"}, 120.0),
        ({"retry_after": "inf"}, 120.0),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after": ""}, None),
        ({"retry_after": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0.0),
        ({"retry_after": "Fri, 31 Dec 2999 23:59:59 -0000"}, 120.0),
        ({}, None),
    ],
)
def test_what_the_server_asks_for_is_read(
    make: Callable[..., Exception], headers: dict[str, str], seconds: float | None
) -> None:
    """Within bounds, by the header of any client; from a cause, too."""
    error = make(429, **headers)
    assert retry_after(error) == seconds
    assert retry_after(caused(RuntimeError(), error)) == seconds


def test_a_date_to_retry_after_is_a_wait_from_now() -> None:
    at = datetime.now(UTC) + timedelta(seconds=60)
    seconds = retry_after(of_openai(503, retry_after=format_datetime(at, usegmt=True)))
    assert seconds is not None
    assert 0 < seconds <= 60


class Failing:
    """Fails so many times, then succeeds; keeps the waits instead of sleeping."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = [*errors]
        self.calls = 0
        self.waits: list[float] = []

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    def run(self, attempts: int = 6, **options: Any) -> str:
        return call(self, waits(attempts, self.waits.append, **options))


def waits(
    attempts: int,
    sleep: Callable[[float], object],
    on_wait: Callable[[str], None] = lambda message: None,
    seed: int = 0,
) -> Waits:
    return Waits(attempts=attempts, sleep=sleep, on_wait=on_wait, chance=random.Random(seed))


def test_a_failure_that_passes_is_waited_for() -> None:
    failing = Failing(of_openai(429), TimeoutError())
    assert failing.run() == "done"
    assert failing.calls == 3
    assert len(failing.waits) == 2


def test_the_last_error_is_raised_as_it_is() -> None:
    """After so many attempts, and no wait after the last."""
    errors = [ConnectionError(str(n)) for n in range(3)]
    failing = Failing(*errors)
    with pytest.raises(ConnectionError) as caught:
        failing.run(attempts=3)
    assert caught.value is errors[-1]
    assert (failing.calls, len(failing.waits)) == (3, 2)


@pytest.mark.parametrize("error", [ValueError("x"), of_openai(401), KeyboardInterrupt()])
def test_a_failure_that_stays_is_raised_at_once(error: BaseException) -> None:
    failing = Failing(error)
    with pytest.raises(type(error)) as caught:
        failing.run()
    assert caught.value is error
    assert (failing.calls, failing.waits) == (1, [])


def test_waits_grow_and_are_spread() -> None:
    """Within the bounds of the backoff, using all of them, and up to a minute."""
    runs = []
    for seed in range(200):
        failing = Failing(*[TimeoutError()] * 9)
        failing.run(attempts=10, seed=seed)
        runs.append(failing.waits)
    for at, waits in enumerate(zip(*runs, strict=True)):
        longest = min(60, 2 * 2**at)
        assert 0 <= min(waits) < 0.1 * longest
        assert 0.9 * longest < max(waits) <= longest


def test_the_seed_decides_the_waits() -> None:
    """Equal ones repeat a run, different ones keep calls from colliding again."""
    waits = []
    for seed in (1, 1, 2):
        failing = Failing(*[TimeoutError()] * 5)
        failing.run(seed=seed)
        waits.append(failing.waits)
    assert waits[0] == waits[1] != waits[2]


def test_a_thousand_failures_do_not_overflow() -> None:
    failing = Failing(*[TimeoutError()] * 1100)
    assert failing.run(attempts=1200) == "done"
    assert max(failing.waits) <= 60


def test_the_servers_wish_is_a_lower_bound() -> None:
    """A wish for no wait at all does not turn the backoff off."""
    failing = Failing(of_openai(429, retry_after="42"), *[of_openai(429, retry_after="0")] * 3)
    failing.run()
    assert failing.waits[0] == 42
    assert max(failing.waits[1:]) > 0


def test_each_wait_is_told_before_it_begins() -> None:
    """What failed, how long, and how often it may still."""
    told: list[str] = []
    failing = Failing(of_openai(429, retry_after="42"))
    failing.run(on_wait=told.append)
    assert told == ["RateLimitError: Error code: 429; waiting 42 s before attempt 2 of 6"]


def test_a_wait_ends_when_it_is_called_off() -> None:
    """At once, and no call follows."""
    stop, calls = threading.Event(), []

    def stopping() -> None:
        calls.append(1)
        stop.set()
        raise TimeoutError

    with pytest.raises(WaitEndedError):
        call(stopping, waits(6, lambda _: pause(3600, stop=stop)))
    assert len(calls) == 1


def test_a_wait_that_nobody_calls_off_lasts() -> None:
    begin = time.monotonic()
    pause(0.25, stop=threading.Event())
    assert time.monotonic() - begin >= 0.25


def test_an_error_is_described_in_one_short_line() -> None:
    assert describe(ValueError("a\n  b")) == "ValueError: a b"
    assert describe(TimeoutError()) == "TimeoutError"
    assert len(describe(ValueError("x" * 5000))) == 300


@pytest.mark.parametrize("error", [TimeoutError(), openai.APITimeoutError(request=REQUEST)])
def test_a_timeout_is_explained_by_the_way_out(error: Exception) -> None:
    """No other error is."""
    assert explain(error) == f"{describe(error)}; raise --timeout, or lower --concurrency"
    refused = openai.APIConnectionError(request=REQUEST)
    assert explain(refused) == describe(refused)


def test_an_error_is_described_with_its_innermost_cause() -> None:
    """Unless its message holds that already, as urllib's does."""
    cause = caused(httpx.ConnectError("no"), ConnectionRefusedError(111, "Connection\nrefused"))
    told = "RuntimeError: failed (ConnectionRefusedError: [Errno 111] Connection refused)"
    assert describe(caused(RuntimeError("failed"), cause)) == told
    passed_on = urllib.error.URLError(ConnectionRefusedError(111, "Connection refused"))
    assert describe(passed_on) == "URLError: <urlopen error [Errno 111] Connection refused>"


def test_a_server_that_is_not_reached_is_named_without_what_is_secret() -> None:
    """So is one that refuses every call; where others fail, it is no news."""
    request = httpx.Request("POST", "https://me:word@example.org:8000/v1/chat?key=secret")
    told = describe(openai.APIConnectionError(request=request))
    assert told == "APIConnectionError: Connection error. (https://example.org:8000/v1/chat)"
    assert describe(of_openai(404)).endswith(f" ({REQUEST.url})")
    assert describe(of_openai(400)) == "BadRequestError: Error code: 400"
    assert describe(httpx.ReadTimeout("slow")) == "ReadTimeout: slow"  # without a request

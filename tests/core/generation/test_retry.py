"""Which failures pass, how long they are waited for, and what ends the waiting."""

from __future__ import annotations

import io
import random
import ssl
import threading
import time
import urllib.error
from collections.abc import Callable
from email.message import Message
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


PASSING = [
    *map(of_openai, (408, 409, 429, 500, 502, 503, 504, 529)),
    openai.APIConnectionError(request=REQUEST),
    openai.APITimeoutError(request=REQUEST),
    TimeoutError(),
    ConnectionResetError(),
    httpx.ReadTimeout("slow"),
    httpx.ConnectError("refused"),
    httpx.RemoteProtocolError("gone"),
    httpx.HTTPStatusError("no", request=REQUEST, response=httpx.Response(503)),
    Coded(code=425),
    Coded(status=429),
    of_urllib(503),
    urllib.error.URLError(ConnectionRefusedError()),
    of_botocore("ThrottlingException", 400),
    of_botocore("AnythingElse", 503),
    named("ResourceExhausted"),
    named("OverloadedError"),
]
REFUSED = [
    *map(of_openai, (401, 402, 403, 404)),
    of_openai(429, code="insufficient_quota"),
    caused(of_openai(429), of_openai(429, code="insufficient_quota")),
    Coded("429 - {'code': 'insufficient_quota'}", status_code=429),
    of_urllib(404),
    of_botocore("AccessDeniedException", 403),
    # the client calls a wrong URL or key a connection error, and says why in the cause
    caused(openai.APIConnectionError(request=REQUEST), httpx.UnsupportedProtocol("no 'http://'")),
    caused(openai.APIConnectionError(request=REQUEST), httpx.LocalProtocolError("Illegal header")),
    caused(httpx.ConnectError("no"), ssl.SSLCertVerificationError("expired")),
]
OWN = [
    *map(of_openai, (400, 413, 422)),
    ValueError("401"),
    RuntimeError("429"),
    KeyError("status_code"),
    Coded(status_code=200, code="429"),
    Coded(code=lambda: 429),
    Coded(response={"Error": "text", "ResponseMetadata": None}),
    KeyboardInterrupt(),
    SystemExit(429),
    SystemExit(404),
]


@pytest.mark.parametrize("error", PASSING)
def test_errors_that_pass(error: Exception) -> None:
    """The real clients' own, as themselves and as the cause of an adapter's error."""
    for each in (error, caused(RuntimeError("wrapped"), caused(ValueError("twice"), error))):
        assert is_transient(each)
        assert not is_refusal(each)


@pytest.mark.parametrize("error", REFUSED)
def test_what_no_other_call_would_change_is_a_refusal(error: Exception) -> None:
    """An exhausted quota has the status of a rate limit, but waiting for it would be in vain."""
    for each in (error, caused(RuntimeError("wrapped"), error)):
        assert is_refusal(each)
        assert not is_transient(each)


@pytest.mark.parametrize("error", OWN)
def test_what_is_one_calls_own_failure_is_neither(error: BaseException) -> None:
    """A prompt that is too long, and what the model's own code gets wrong."""
    assert not is_transient(error)
    assert not is_refusal(error)


def test_errors_of_requests_pass() -> None:
    """Their ConnectionError is not Python's."""
    requests = pytest.importorskip("requests")
    for error in (requests.ConnectionError(), requests.ReadTimeout(), requests.ConnectTimeout()):
        assert is_transient(error)
    assert not is_transient(requests.exceptions.MissingSchema())


def test_causes_in_a_circle_come_to_an_end() -> None:
    a, b = ValueError("a"), ValueError("b")
    a.__cause__, b.__cause__ = b, a
    assert not is_transient(a)
    assert retry_after(a) is None


@pytest.mark.parametrize("make", [of_openai, of_urllib, lambda s, **h: of_botocore("x", s, **h)])
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after": "-3"}, 0.0),
        ({"retry_after": "3600"}, 120.0),
        ({"retry_after": "nan"}, None),
        ({"retry_after": "soon"}, None),
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


def test_a_failure_that_passes_is_waited_for_and_the_last_one_is_raised() -> None:
    """As it is, after so many attempts, and with no wait after the last."""
    errors = [of_openai(429), TimeoutError(), ConnectionError()]
    failing = Failing(*errors)
    assert failing.run(attempts=4) == "done"
    assert (failing.calls, len(failing.waits)) == (4, 3)
    failing = Failing(*errors)
    with pytest.raises(ConnectionError) as caught:
        failing.run(attempts=3)
    assert caught.value is errors[-1]
    assert (failing.calls, len(failing.waits)) == (3, 2)


def test_attempts_that_were_made_before_count() -> None:
    """One more is made in any case."""
    for tried, calls in ((0, 3), (1, 2), (2, 1), (5, 1)):
        failing = Failing(*[TimeoutError()] * 9)
        with pytest.raises(TimeoutError):
            call(failing, waits(3, failing.waits.append), tried)
        assert failing.calls == calls


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
    for seed in range(200):  # others keep calls from colliding again
        failing = Failing(*[TimeoutError()] * 9)
        failing.run(attempts=10, seed=seed)
        runs.append(failing.waits)
    for at, waits in enumerate(zip(*runs, strict=True)):
        longest = min(60, 2 * 2**at)
        assert 0 <= min(waits) < 0.1 * longest
        assert 0.9 * longest < max(waits) <= longest


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

"""Which failures pass, how long they are waited for, and how they are described."""

from __future__ import annotations

import io
import ssl
import urllib.error
from collections.abc import Callable, Sequence
from email.message import Message
from random import Random

import httpx
import pytest

from shared_core.generation.retry import (
    describe,
    is_refusal,
    is_transient,
    retry_after,
    seconds_before,
)

openai = pytest.importorskip("openai")
requests = pytest.importorskip("requests")

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


def of_botocore(status: int) -> Exception:
    return Coded(response={"ResponseMetadata": {"HTTPStatusCode": status}})


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
    httpx.RemoteProtocolError("gone"),
    httpx.HTTPStatusError("no", request=REQUEST, response=httpx.Response(503)),
    requests.ConnectionError(),  # is not Python's
    Coded(code=425),
    Coded(status=429),
    of_urllib(503),
    urllib.error.URLError(ConnectionRefusedError()),
    of_botocore(503),
    *map(named, ("ThrottlingException", "ResourceExhausted", "ModelNotReadyException")),
]
REFUSED = [
    *map(of_openai, (401, 402, 403, 404)),
    # an exhausted quota has the status of a rate limit, but waiting for it would be in vain
    of_openai(429, code="insufficient_quota"),
    Coded("429 - {'code': 'insufficient_quota'}", status_code=429),
    of_botocore(403),
    # the client calls a wrong URL or key a connection error, and says why in the cause
    caused(openai.APIConnectionError(request=REQUEST), httpx.UnsupportedProtocol("no 'http://'")),
    caused(httpx.ConnectError("no"), ssl.SSLCertVerificationError("expired")),
]
OWN = [
    *map(of_openai, (400, 413, 422)),
    requests.exceptions.MissingSchema(),
    RuntimeError("429"),
    type("BadTimeout", (Coded,), {})(status_code=400),
    Coded(response={"ResponseMetadata": {}}),
]


@pytest.mark.parametrize(
    ("errors", "passes", "refused"),
    [(PASSING, True, False), (REFUSED, False, True), (OWN, False, False)],
)
def test_errors_pass_or_refuse_every_call_or_are_one_calls_own(
    errors: Sequence[BaseException], passes: bool, refused: bool
) -> None:
    """The real clients' own, as themselves and as the cause of an adapter's error."""
    for error in errors:
        wrapped = caused(RuntimeError("wrapped"), caused(ValueError("twice"), error))
        for each in (error, wrapped):
            assert (is_transient(each), is_refusal(each)) == (passes, refused), repr(error)


@pytest.mark.parametrize("make", [of_openai, of_urllib])
@pytest.mark.parametrize(
    ("wish", "seconds"), [("0.5", 0.5), ("-3", None), ("3600", 120.0), ("Fri, 31 Dec", None)]
)
def test_what_the_server_asks_for_is_read(
    make: Callable[..., Exception], wish: str, seconds: float | None
) -> None:
    """Within bounds, by the header of any client; from a cause, too."""
    error = make(429, retry_after=wish)
    assert retry_after(error) == retry_after(caused(RuntimeError(), error)) == seconds
    assert retry_after(make(429)) is None


def test_waits_grow_and_are_spread() -> None:
    """Within the bounds of the backoff, using all of them, and up to a minute."""
    for attempt in range(2, 11):
        longest = min(60, 2 ** (attempt - 1))
        drawn = [seconds_before(attempt, TimeoutError(), Random(seed)) for seed in range(200)]
        assert 0 <= min(drawn) < 0.1 * longest
        assert 0.9 * longest < max(drawn) <= longest


def test_the_servers_wish_is_a_lower_bound() -> None:
    """A wish for no wait at all does not turn the backoff off."""
    assert seconds_before(2, of_openai(429, retry_after="42"), Random(0)) == 42
    assert seconds_before(2, of_openai(429, retry_after="0"), Random(0)) > 0


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
    assert len(describe(ValueError("x" * 5000))) == 300

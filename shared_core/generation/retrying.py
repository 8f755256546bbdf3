"""Which failures of a model pass by themselves, and how long to wait for that.

The clients of model servers share no base class, and none of them is imported here: an error is
known by its status code, by the names of its classes, and by the errors that caused it.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from shared_core._extras import require
from shared_core.generation.workers import POLL
from shared_core.wording import shortened

T = TypeVar("T")

FIRST_WAIT = 2.0
"""Upper bound of the first wait in seconds; each further one is twice the one before."""
LONGEST_WAIT = 60.0
"""Upper bound in seconds of a wait that the server did not ask for."""
LONGEST_RETRY_AFTER = 120.0
"""Upper bound in seconds of a wait that the server asked for."""

_REFUSED = {401, 402, 403, 404}
_STATUSES = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_NAMES = {
    # openai, anthropic, cohere and those who name their errors like them
    *("RateLimitError", "APITimeoutError", "APIConnectionError", "InternalServerError"),
    *("OverloadedError", "ServiceUnavailableError", "TooManyRequestsError"),
    # httpx, requests, aiohttp
    *("TimeoutException", "ConnectError", "ReadTimeout", "NetworkError", "RemoteProtocolError"),
    *("Timeout", "ConnectionError", "ChunkedEncodingError", "ClientConnectionError"),
    # google
    *("ResourceExhausted", "ServiceUnavailable", "TooManyRequests", "DeadlineExceeded"),
    # botocore, both as classes and as codes of its ClientError
    *("ThrottlingException", "TooManyRequestsException", "ServiceUnavailableException"),
    *("ModelTimeoutException", "ModelNotReadyException", "InternalServerException"),
    *("EndpointConnectionError", "ConnectTimeoutError", "ReadTimeoutError"),
    "ConnectionClosedError",
}
# Clients call these, too, a failed connection: a wrong URL, a key that no header can hold, a
# certificate that is not valid.
_HOPELESS_NAMES = {"UnsupportedProtocol", "LocalProtocolError", "SSLCertVerificationError"}
_HOPELESS_CODE = "insufficient_quota"  # openai; comes with the status of a rate limit


class WaitEndedError(Exception):
    """A wait was called off; the call is not made again."""


def is_transient(error: BaseException) -> bool:
    """Tell whether the same call may succeed a little later.

    So it is after a rate limit, an overload, a timeout or a lost connection, also as the cause
    of `error`; not after an exhausted quota, for which waiting does not help.
    """
    if not isinstance(error, Exception):  # an interrupt or an exit, whatever it carries
        return False
    chain = [*_chain(error)]
    return not any(map(_is_hopeless, chain)) and any(map(_passes, chain))


def is_refusal(error: BaseException) -> bool:
    """Tell whether any other call would fail in the same way, so that it need not be made.

    So it is where the server knows no such key, model or address, the key has no right or no
    quota left, or there can be no connection; also as the cause of `error`.
    """
    return isinstance(error, Exception) and any(
        _is_hopeless(link) or not _REFUSED.isdisjoint(_statuses(link)) for link in _chain(error)
    )


def retry_after(error: BaseException) -> float | None:
    """Return how many seconds the server asked to wait, in [0, 120], or None if it did not say.

    Read from the headers ``retry-after-ms`` and ``retry-after`` (seconds or an HTTP date) of
    the response that `error`, or one of its causes, carries (RFC 9110, section 10.2.3).
    """
    for link in _chain(error):
        headers = {str(key).lower(): str(value) for key, value in _headers(link)}
        for name, parse in _HEADERS.items():
            seconds = parse(headers[name]) if name in headers else math.nan
            if not math.isnan(seconds):
                return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)
    return None


def pause(seconds: float, *, stop: threading.Event) -> None:
    """Sleep, but no longer than until `stop` is set.

    Raises
    ------
    WaitEndedError
        If `stop` is set.
    """
    end = time.monotonic() + seconds
    while not stop.wait(min(POLL, max(0.0, end - time.monotonic()))):
        if time.monotonic() >= end:
            return
    raise WaitEndedError


def call_with_retries(
    function: Callable[[], T],
    *,
    attempts: int,
    sleep: Callable[[float], object] = time.sleep,
    on_wait: Callable[[str], None] | None = None,
    seed: int = 0,
) -> T:
    """Call `function`, again if it fails for a reason that passes (`is_transient`).

    The n-th wait is drawn from [0, min(60, 2 ** n)] seconds (exponential backoff with full
    jitter), but is no shorter than the server asked for (`retry_after`).

    Parameters
    ----------
    function
        What is called.
    attempts
        How often at most, >= 1.
    sleep
        What waits so many seconds. If it raises, that ends the call; see `pause`.
    on_wait
        Told before each wait what happened and how long the wait is.
    seed
        Of the waits; calls that run at once need different ones, or they collide again.

    Returns
    -------
    T
        What `function` returned.

    Raises
    ------
    Exception
        What `function` raised at its last attempt.
    MissingExtraError
        If tenacity is not installed.
    """
    tenacity = require("tenacity", extra="eval")
    chance = random.Random(seed)

    def wait(state: Any) -> float:
        longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(state.attempt_number - 1, 10))
        return max(chance.uniform(0, longest), retry_after(state.outcome.exception()) or 0.0)

    def tell(state: Any) -> None:
        if on_wait is not None:
            on_wait(
                f"{describe(state.outcome.exception())}; waiting {state.upcoming_sleep:.0f} s "
                f"before attempt {state.attempt_number + 1} of {attempts}"
            )

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_transient),
        stop=tenacity.stop_after_attempt(attempts),
        wait=wait,
        sleep=sleep,
        before_sleep=tell,
        reraise=True,
    )
    result: T = retrying(function)
    return result


def describe(error: BaseException) -> str:
    """Return the class and the message of an error in one line of at most 300 characters.

    In brackets follow its innermost cause, if the message does not hold that already, and the
    address of the server, if that was not reached or refuses every call.
    """
    *_, innermost = _chain(error)
    details = [_address(error)]
    if " ".join(str(innermost).split()) not in " ".join(str(error).split()):
        details.insert(0, _in_one_line(innermost))
    told = "; ".join(filter(None, details))
    return shortened(f"{_in_one_line(error)} ({told})" if told else _in_one_line(error), 300)


def _in_one_line(error: BaseException) -> str:
    message = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {message}" if message else name


def _address(error: BaseException) -> str:
    """Return the address that a client called, without what may be secret: user and query."""
    statuses = {*_statuses(error)}
    if statuses and statuses.isdisjoint(_REFUSED):
        return ""
    try:
        url = getattr(getattr(error, "request", None), "url", None)
    except RuntimeError:  # httpx, where no request has been made
        return ""
    parts = urlsplit("" if url is None else str(url))
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if host else ""


def _chain(error: BaseException) -> Iterator[BaseException]:
    link: object = error
    for _ in range(20):  # a chain may be a circle
        if not isinstance(link, BaseException):
            return
        yield link
        link = link.__cause__ or getattr(link, "reason", None)  # urllib's URLError has a reason


def _passes(error: BaseException) -> bool:
    return (
        isinstance(error, TimeoutError | ConnectionError)
        or not _STATUSES.isdisjoint(_statuses(error))
        or not _NAMES.isdisjoint(_names(error))
    )


def _is_hopeless(error: BaseException) -> bool:
    codes = (getattr(error, "code", None), getattr(error, "type", None))
    return (
        _HOPELESS_CODE in codes
        or _HOPELESS_CODE in str(error)  # where an adapter kept the message alone
        or not _HOPELESS_NAMES.isdisjoint(_names(error))
    )


def _statuses(error: BaseException) -> Iterator[int]:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "code", "status"):
            value = getattr(holder, name, None)
            if isinstance(value, int):
                yield value
    status = _of_botocore(error, "ResponseMetadata", "HTTPStatusCode")
    if isinstance(status, int):
        yield status


def _names(error: BaseException) -> Iterator[str]:
    yield from (kind.__name__ for kind in type(error).__mro__)
    yield str(_of_botocore(error, "Error", "Code"))


def _headers(error: BaseException) -> Iterator[tuple[object, object]]:
    for headers in (
        getattr(getattr(error, "response", None), "headers", None),
        getattr(error, "headers", None),  # urllib
        _of_botocore(error, "ResponseMetadata", "HTTPHeaders"),
    ):
        yield from getattr(headers, "items", tuple)()


def _of_botocore(error: BaseException, part: str, field: str) -> Any:
    # The response of its ClientError is a dict of dicts.
    response = getattr(error, "response", None)
    inner = response.get(part) if isinstance(response, Mapping) else None
    return inner.get(field) if isinstance(inner, Mapping) else None


def _milliseconds(text: str) -> float:
    return _seconds(text) / 1000


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _seconds_or_date(text: str) -> float:
    seconds = _seconds(text)
    if not math.isnan(seconds):
        return seconds
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return math.nan
    return (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


_HEADERS = {"retry-after-ms": _milliseconds, "retry-after": _seconds_or_date}

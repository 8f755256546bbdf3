"""Which failures of a model are transient, and how long to wait before the next attempt.

The clients of model servers share no base class, and none of them is imported here: an error is
recognised by its status code, by the names of its classes, and by the errors that caused it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from shared_core.wording import shortened

FIRST_WAIT = 2.0
"""Upper bound of the first wait in seconds; each further one is twice the one before."""
LONGEST_WAIT = 60.0
"""Upper bound in seconds of a wait that the server did not ask for."""
LONGEST_RETRY_AFTER = 120.0
"""Upper bound in seconds of a wait that the server asked for."""

_REFUSED = {401, 402, 403, 404}
_STATUSES = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_NAMES = re.compile(
    "Timeout|Connect(ion)?Error|ConnectionClosed|RateLimit|TooManyRequests|Throttl|Exhausted"
    "|Overloaded|Unavailable|Deadline|NotReady|InternalServer|NetworkError|RemoteProtocol|Chunked"
)
# Clients call these, too, a failed connection: a wrong URL, a key that no header can hold, a
# certificate that is not valid.
_HOPELESS_NAMES = {"UnsupportedProtocol", "LocalProtocolError", "SSLCertVerificationError"}
_HOPELESS_CODE = "insufficient_quota"  # openai; comes with the status of a rate limit


def is_transient(error: BaseException) -> bool:
    """Return whether the same call may succeed a little later.

    The first status that `error` or one of its causes carries decides; where there is none, the
    names of their classes: those of a rate limit, an overload, a timeout or a lost connection.
    False for an exhausted quota, where waiting does not help.
    """
    if not isinstance(error, Exception):  # an interrupt or an exit, whatever it carries
        return False
    chain = [*_chain(error)]
    if any(map(_is_hopeless, chain)):
        return False
    status = next((status for link in chain for status in _statuses(link)), None)
    if status is not None:
        return status in _STATUSES
    return any(_NAMES.search(name) for link in chain for name in _names(link))


def is_refusal(error: BaseException) -> bool:
    """Return whether every other call would fail in the same way, so that none need be made.

    True if the server does not know the key, model or address, if the key lacks permission or
    quota, or if no connection is possible; also as the cause of `error`.
    """
    return isinstance(error, Exception) and any(
        _is_hopeless(link) or not _REFUSED.isdisjoint(_statuses(link)) for link in _chain(error)
    )


def retry_after(error: BaseException) -> float | None:
    """Return how many seconds the server asked to wait, in [0, 120], or None if it did not say.

    Read from the header ``retry-after``, in seconds, of the response that `error`, or one of its
    causes, carries.
    """
    for link in _chain(error):
        for holder in (getattr(link, "response", None), link):
            headers: Any = getattr(holder, "headers", None)
            wish = str(headers.get("retry-after")) if hasattr(headers, "get") else ""
            if re.fullmatch(r"\d+(\.\d+)?", wish):
                return min(float(wish), LONGEST_RETRY_AFTER)
    return None


def seconds_before(attempt: int, error: BaseException, chance: random.Random) -> float:
    """Return how long to wait before the given attempt, from 2, after a failure.

    The n-th wait is drawn from [0, min(60, 2 ** n)] seconds (exponential backoff with full jitter),
    but is no shorter than the server asked for (`retry_after`). Calls at once need different
    seeds of `chance`, or they collide again.
    """
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempt - 2, 10))
    return max(chance.uniform(0, longest), retry_after(error) or 0.0)


def describe(error: BaseException) -> str:
    """Return the class and the message of an error in one line of at most 300 characters.

    Its innermost cause follows in brackets, unless the message contains that already, and so does
    the address of a server that was not reached or refuses every call.
    """
    *_, innermost = _chain(error)
    details = [_address(error)]
    if " ".join(str(innermost).split()) not in " ".join(str(error).split()):
        details.insert(0, _in_one_line(innermost))
    more = "; ".join(filter(None, details))
    return shortened(f"{_in_one_line(error)} ({more})" if more else _in_one_line(error), 300)


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


def _is_hopeless(error: BaseException) -> bool:
    codes = (getattr(error, "code", None), getattr(error, "type", None))
    return (
        _HOPELESS_CODE in codes
        or _HOPELESS_CODE in str(error)  # where an adapter kept the message alone
        or not _HOPELESS_NAMES.isdisjoint(_names(error))
    )


def _statuses(error: BaseException) -> Iterator[int]:
    response = getattr(error, "response", None)
    for holder in (error, response):
        for name in ("status_code", "code", "status"):
            value = getattr(holder, name, None)
            if isinstance(value, int) and 400 <= value < 600:
                yield value
    if isinstance(response, Mapping):  # botocore's
        status = (response.get("ResponseMetadata") or {}).get("HTTPStatusCode")
        if status is not None:
            yield status


def _names(error: BaseException) -> Iterator[str]:
    return (kind.__name__ for kind in type(error).__mro__)

"""What a model may return, what is an error instead, and how many questions may fail."""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from shared_core.errors import GenerationError
from shared_core.generation.retry import describe
from shared_core.wording import counted, shortened

Request: TypeAlias = tuple[str, ...]
"""What a model is asked: ``(prompt,)`` for a text, ``(prompt, continuation)`` for scores."""

Response: TypeAlias = str | list[float]
"""A text, or the natural log-probability of each token of the continuation."""

_FILTERED = {"content_filter", "content_filtered", "safety"}
_CUT_OFF = {"length", "max_tokens"}
"""Reasons for which servers end an answer, in lower case; OpenAI's first."""

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


MAX_FAILED = 0.1
"""Share of the questions that may fail by default."""


@dataclass(frozen=True)
class Failed:
    """Takes the place of an answer that the model failed to give."""

    error: GenerationError

    @property
    def reason(self) -> str:
        """Why, in one line."""
        cause = self.error.__cause__
        return str(self.error) if cause is None else describe(cause)


def check_ended(name: str, text: str, reason: object, *, refusal: object = None) -> str:
    """Return the text of an answer, unless the reason why it ended says that it is not one.

    An empty text without such a reason or refusal is an answer, and so is a text that was cut off.

    Parameters
    ----------
    name
        What the error calls the model.
    text
        What it wrote.
    reason
        Why it ended, in the words of the server; anything else where that is not known.
    refusal
        What the server sent in place of a text, where the model refuses to answer.

    Raises
    ------
    GenerationError
        If a filter withheld the answer or a part of it, the model refused to answer, or all tokens
        that were allowed were spent without a text, as by a model that thinks first.
    """
    ended = str(reason).lower()
    if ended in _FILTERED:
        raise GenerationError(f"a content filter withheld the answer of {name} ({reason})")
    if refusal and not text.strip():
        raise GenerationError(f"{name} refused to answer ({shortened(str(refusal), 200)})")
    if not text.strip() and ended in _CUT_OFF:
        raise GenerationError(
            f"{name} gave no text within its limit of tokens; raise that, as by --max-new-tokens"
        )
    return text


def checked(
    name: str, requests: Sequence[Request], returned: object
) -> dict[Request, Response | Failed]:
    """Return the response to each request as it is kept, or what is wrong with it.

    A text is kept without the prompt where it begins with that. It has failed if it is no text, or
    if the prompt is in it, whose passages would be graded with the answer. Scores are kept as they
    are.

    Raises
    ------
    GenerationError
        If `returned` is not a sequence of one response a request.
    """
    sequence = hasattr(returned, "__len__") and hasattr(returned, "__getitem__")
    if not sequence or isinstance(returned, str | bytes | Mapping):
        what = f"{_shown(returned)} instead of a list"
    elif len(returned) != len(requests):  # type: ignore[arg-type]
        what = f"{len(returned)} answers, {_shown(returned)},"  # type: ignore[arg-type]
    else:
        pairs = zip(requests, returned, strict=True)  # type: ignore[call-overload]
        return {request: _checked(name, request, response) for request, response in pairs}
    raise GenerationError(
        f"model {name!r} returned {what} for {counted(len(requests), 'prompt')}, of which the "
        f"first begins {shortened(requests[0][0], 60)!r}: it must return a list of one answer a "
        "prompt"
    )


def _checked(name: str, request: Request, response: Any) -> Response | Failed:
    if len(request) > 1:
        return [float(score) for score in response]
    must = "a str"
    if isinstance(response, str):
        answer = str(response).removeprefix(request[0])
        if request[0].strip() not in answer:
            return answer
        must = "the answer alone (of a pipeline of transformers: return_full_text=False)"
    return Failed(
        GenerationError(
            f"model {name!r} returned {_shown(response)} instead of {must} for the prompt that "
            f"begins {shortened(request[0], 60)!r}"
        )
    )


def _shown(value: object) -> str:
    if value is None:
        return "None"
    return f"a {type(value).__name__} ({_SHORT.repr(value)})"


def check_max_failed(share: float) -> None:
    """Raise ValueError if the share of questions that may fail does not lie in [0, 1)."""
    if not 0 <= share < 1:
        raise ValueError(f"max_failed must lie in [0, 1), got {share}")


def check_failed(reasons: Sequence[str], total: int, max_failed: float, where: str = "") -> None:
    """Check that not too many questions have failed.

    Parameters
    ----------
    reasons
        Why, one for each question that has failed.
    total
        How many questions there are, >= 1.
    max_failed
        Share of them that may fail, in [0, 1).
    where
        Which questions those are, or which model, for the error.

    Raises
    ------
    GenerationError
        If more have failed; the message ends with the last reason.
    """
    if len(reasons) / total > max_failed:
        have = "has" if len(reasons) == 1 else "have"
        raise GenerationError(
            f"{len(reasons)} of {counted(total, 'question')} {have} failed"
            f"{f' ({where})' if where else ''}, which is more than max_failed={max_failed:g} "
            f"(--max-failed) allows; the last one: {reasons[-1]}"
        )


def empty_lines(empty: int, total: int, *, graded: bool = True) -> Iterator[str]:
    """Say how many of all answers are empty, if any: a refusal can look like that, too."""
    if empty:
        verb, count = ("is", "counts") if empty == 1 else ("are", "count")
        wrong = f" and {count} as wrong" if graded else ""
        yield f"{empty:,} of {counted(total, 'answer')} {verb} empty{wrong}."

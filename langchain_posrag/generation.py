"""Language models of LangChain, asked for answers by the probe."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from shared_core._extras import require
from shared_core.attention.rounds import scores_of
from shared_core.checking import check_count
from shared_core.errors import GenerationError
from shared_core.generation.fingerprint import fingerprint_of, source_of, without_addresses
from shared_core.generation.responses import check_ended
from shared_core.generation.retry import describe

TIMEOUT = 60.0
"""Seconds that an answer of an endpoint may take by default."""

_NO_KEY = "none"  # a local server needs no key, but the client insists on one


class LangChainModel:
    """A model or chain of LangChain that answers prompts.

    It takes one prompt a call, and the caller runs up to `concurrency` calls at once. Errors of the
    model are passed on unchanged, so that the caller can retry.

    Parameters
    ----------
    model
        A chat model, a completion model, or any chain from a string to a string or a message.
        Of a message only the text counts, not the reasoning or the tool calls.
    name
        Name of the model; by default the one it was created with, or else its class.
    concurrency
        Most calls at once, >= 1.

    Raises
    ------
    TypeError
        If `model` cannot be invoked.
    ValueError
        If `concurrency` is not an integer >= 1.
    """

    batch_size = 1

    fingerprint: str
    """Name, and a hash of the model's settings and of the functions and classes that are not
    LangChain's, each with its module: with another prompt, address or function it is another model
    and is asked again. Changes in imported helper modules or a server's weights are not detected.
    See `shared_core.generation.fingerprint.source_of`."""

    def __init__(
        self, model: Runnable[str, Any], *, name: str | None = None, concurrency: int = 4
    ) -> None:
        if not isinstance(model, Runnable):
            raise TypeError(f"a LangChain model or chain is a Runnable, got {model!r}")
        self.model = model
        self.name = name if name is not None else _name_of(model)
        self.concurrency = check_count(concurrency, "concurrency")
        self.fingerprint = fingerprint_of(
            self.name,
            without_addresses(repr(model)),
            *sorted(map(source_of, _code_of(model))),
        )

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Return one answer a prompt, in order.

        Raises
        ------
        GenerationError
            If the model returns something other than text or a message, or the message says that
            a filter withheld the answer, that the model refused to give one, or that the tokens
            ran out before there was a text.
        """
        return [self._answer(prompt) for prompt in prompts]

    @staticmethod
    def reranker(found: object) -> Callable[[str, Sequence[str]], Sequence[float]] | None:
        """Return a compressor as a function from a question and texts to scores, else None.

        The scores follow the order that comes back. Texts that the compressor drops come last.
        """
        if not isinstance(found, BaseDocumentCompressor):
            return None

        def scores(question: str, texts: Sequence[str]) -> Sequence[float]:
            documents = [Document(text, metadata={"at": at}) for at, text in enumerate(texts)]
            kept = found.compress_documents(documents, question)
            order = [*(document.metadata["at"] for document in kept), *range(len(texts))]
            return scores_of([*dict.fromkeys(order)])

        return scores

    def _answer(self, prompt: str) -> str:
        answer = self.model.invoke(prompt)
        if isinstance(answer, BaseMessage):
            return check_ended(
                self.name,
                str(answer.text),
                _reason(answer),
                refusal=answer.additional_kwargs.get("refusal"),
            )
        if isinstance(answer, str):
            return answer
        raise GenerationError(
            f"{self.name} answered with {type(answer).__name__}, not with text or a message; "
            f"end the chain in a model or in StrOutputParser()"
        )


class _Endpoint(LangChainModel):
    """A model behind OpenAI's protocol; a server that speaks another one is reported as such.

    Answers that it gave with another timeout are its own.
    """

    def __init__(self, model: Any, *, name: str) -> None:
        super().__init__(model, name=name)
        usual = model.model_copy(update={"request_timeout": TIMEOUT})
        self.fingerprint = LangChainModel(usual, name=name).fingerprint

    def _answer(self, prompt: str) -> str:
        try:
            return super()._answer(prompt)
        except (IndexError, KeyError, TypeError, AttributeError, ValueError) as error:
            # What the client and LangChain raise if the parts that they look for are missing.
            address = getattr(self.model, "openai_api_base", None) or "its default address"
            raise GenerationError(
                f"the server at {address} answered with no chat completion ({describe(error)})"
            ) from error


def openai_endpoint(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = TIMEOUT,
    max_tokens: int | None = None,
) -> LangChainModel:
    """Return a model behind OpenAI's chat-completions protocol: OpenAI's own, or vLLM, Ollama.

    It answers at temperature 0 where the model allows it, and a failed call is not repeated.

    Parameters
    ----------
    name
        Name of the model on the server.
    base_url
        Address of the server, up to and with ``/v1``; by default ``$OPENAI_API_BASE`` or
        ``$OPENAI_BASE_URL``, else OpenAI's.
    api_key
        Key; by default ``$OPENAI_API_KEY``. With an address but no key a placeholder is sent.
    timeout
        Seconds that an answer may take, > 0.
    max_tokens
        Most tokens of an answer; by default what the server allows.

    Raises
    ------
    GenerationError
        If there is neither a key nor an address.
    MissingExtraError
        If langchain-openai is not installed.
    ValueError
        If `name` is empty, `timeout` is not positive, or `max_tokens` is below 1.
    """
    if not name:
        raise ValueError("an endpoint needs the name of a model, as in openai:gpt-4o-mini")
    if not timeout > 0:
        raise ValueError(f"timeout must be a positive number of seconds, got {timeout}")
    if max_tokens is not None:
        check_count(max_tokens, "max_tokens")
    package: Any = require("langchain_openai", extra="openai")
    address = base_url or os.environ.get("OPENAI_API_BASE") or os.environ.get("OPENAI_BASE_URL")
    key = api_key or os.environ.get("OPENAI_API_KEY") or (_NO_KEY if address else None)
    if key is None:
        raise GenerationError(
            f"no API key for {name!r}: set OPENAI_API_KEY, or give the address of a server that "
            "needs none, as base_url=, --base-url or OPENAI_BASE_URL"
        )
    return _Endpoint(
        package.ChatOpenAI(
            model=name,
            base_url=address,
            api_key=key,
            temperature=0,
            timeout=timeout,
            max_tokens=max_tokens,
            max_retries=0,  # the caller waits and retries, in one way for all models
        ),
        name=name,
    )


def _reason(message: BaseMessage) -> object:
    """Return why an answer ended; integrations name it as their servers do."""
    names = ("finish_reason", "stop_reason", "stopReason", "done_reason")
    reasons = (message.response_metadata.get(name) for name in names)
    return next((reason for reason in reasons if reason is not None), None)


def _name_of(model: Runnable[str, Any]) -> str:
    """Return the name that a model, or the first one of a chain, was made with."""
    return next(_names(model), type(model).__name__)


def _names(model: Any) -> Iterator[str]:
    candidates = [getattr(model, "model_name", None), getattr(model, "model", None)]
    if isinstance(model, BaseLanguageModel):
        candidates.append(_tracing_name(model))
    yield from (name for name in candidates if isinstance(name, str) and name)
    for part in (getattr(model, "bound", None), *getattr(model, "steps", ())):
        if part is not None:
            yield from _names(part)


def _tracing_name(model: Any) -> object:
    """Return the model's name in traces, which integrations set if their attribute is another."""
    return model._get_ls_params().get("ls_model_name")


def _code_of(chain: Runnable[Any, Any]) -> list[Callable[..., object]]:
    """Return the functions and classes of a chain that are not part of LangChain.

    `repr` shows only the name of a function, and of a class only the settings.
    """
    found: list[Callable[..., object]] = []
    seen: set[int] = set()
    # The runnables that a function of a chain refers to are its `deps`, and parts of it.
    parts: list[Any] = [chain]
    while parts:
        part = parts.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Runnable):
            parts += [type(part), *vars(part).values(), *getattr(part, "deps", ())]
        elif isinstance(part, Mapping):
            parts += part.values()
        elif isinstance(part, (list, tuple)):
            parts += part
        elif callable(part) and not _is_theirs(str(getattr(part, "__module__", "")).split(".")[0]):
            found.append(part)
    return found


@cache
def _is_theirs(package: str) -> bool:
    """Whether a package is an installed one of LangChain, not the user's of a similar name."""
    try:
        return package.startswith("langchain") and bool(distribution(package))
    except PackageNotFoundError:
        return False

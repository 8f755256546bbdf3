"""Language models and rerankers named on the command line."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, cast

from shared_core._extras import require
from shared_core.checking import check_count
from shared_core.cli.console import quiet_transformers
from shared_core.comparison.retrieval import Reranker
from shared_core.errors import PosragError
from shared_core.generation import Generator, HuggingFaceModel, as_generator
from shared_core.generation.loading import first_line
from shared_core.generation.models import wrapper_of
from shared_core.wording import counted, is_or_are

HELP = (
    "a folder or hub name of a Hugging Face causal language model, or a GGUF file; openai:NAME for "
    "an OpenAI-compatible endpoint; or module:attribute, which names a LangChain or LlamaIndex "
    "model, or a function from prompts to answers"
)
LOCAL_HELP = (
    "a folder or hub name of a Hugging Face causal language model, or a GGUF file; or "
    "module:attribute, which names a shared_core.HuggingFaceModel"
)
RERANKER_HELP = (
    "cross-encoder for +rerank: a folder or a hub name; or module:attribute, a LangChain "
    "compressor, a LlamaIndex postprocessor, or a function from a question and texts to scores"
)
UNNOTICED = (
    "what the model imports or asks (a helper in another module, the contents of a list, an object "
    "or the environment, a server's new weights)"
)


def open_model(
    spec: str,
    *,
    base_url: str | None = None,
    timeout: float = 60.0,
    max_new_tokens: int = 64,
    batch_size: int | None = None,
    name: str | None = None,
    asked: bool = True,
) -> Generator:
    """Return the model that `spec` names.

    Parameters
    ----------
    spec
        See `HELP`.
    base_url
        Address of the endpoint.
    timeout
        Seconds that an answer of the endpoint may take, > 0.
    max_new_tokens
        Longest answer of a Hugging Face model or an endpoint, in tokens.
    batch_size
        Prompts in one forward pass of a Hugging Face model; its own default if None.
    name
        Name to give the model instead of its own.
    asked
        Whether it is going to be asked. An endpoint that is not needs no API key.

    Raises
    ------
    ValueError
        If `spec` names nothing, `max_new_tokens` is below 1, or a `base_url` is given for something
        other than an endpoint.
    MissingExtraError
        If a package that the model needs is not installed.
    PosragError
        If the model cannot be loaded.
    """
    check_count(max_new_tokens, "--max-new-tokens")
    prefix, colon, rest = spec.partition(":")
    model: object
    endpoint = _endpoint(spec)
    if endpoint is not None:
        key = {} if asked else {"api_key": "none"}  # the key is no part of a model's fingerprint
        require("langchain_core", extra=prefix)  # its own extra brings the endpoint's package, too
        model = endpoint.load()(
            rest, base_url=base_url, timeout=timeout, max_tokens=max_new_tokens, **key
        )
    elif base_url is not None:
        raise ValueError(f"--base-url is for endpoints, and {spec!r} is not one; MODEL is {HELP}")
    elif not colon or Path(spec).exists():
        quiet_transformers()
        model = HuggingFaceModel.from_pretrained(
            spec, max_new_tokens=max_new_tokens, batch_size=8 if batch_size is None else batch_size
        )
    else:
        model = import_named(prefix, rest, "model", f"MODEL is {HELP}")
    try:
        return as_generator(model, name=name)
    except TypeError as error:
        raise ValueError(f"{spec}: {error}") from error


def open_named(arguments: argparse.Namespace) -> Generator:
    """Return the model of a command with the options that it has; see `open_model`."""
    return open_model(
        arguments.model,
        base_url=arguments.base_url,
        timeout=arguments.timeout,
        max_new_tokens=arguments.max_new_tokens,
        batch_size=getattr(arguments, "batch_size", None),
        name=arguments.name,
        asked=not getattr(arguments, "plan", False),
    )


def open_local_model(
    spec: str, *, max_new_tokens: int = 64, batch_size: int | None = None
) -> HuggingFaceModel:
    """Return the model on this machine that `spec` names.

    Parameters
    ----------
    spec, max_new_tokens, batch_size
        As of `open_model`.

    Raises
    ------
    ValueError
        If `spec` names nothing, or a model that is not on this machine.
    PosragError
        If the model cannot be loaded.
    """
    if not is_endpoint(spec):
        model = open_model(spec, max_new_tokens=max_new_tokens, batch_size=batch_size)
        if isinstance(model, HuggingFaceModel):
            return model
    raise ValueError(
        f"{spec!r} shows no attention: that is read off a model on this machine; give the folder "
        "or hub name of a Hugging Face causal language model (posrag probe measures any model)"
    )


def kept_line(kept: int, model: Generator) -> str:
    """Say how many answers are not asked for again, and when to use ``--fresh``."""
    line = f"{counted(kept, 'answer')} {is_or_are(kept)} kept from before and not asked again"
    if type(model) is HuggingFaceModel:  # told from another by all that it is
        return f"{line}: --fresh asks again."
    return f"{line}. A change in {UNNOTICED} is not noticed: --fresh asks again."


def is_endpoint(spec: str) -> bool:
    """Whether `spec` names a model behind an endpoint; it is not opened."""
    return _endpoint(spec) is not None


def _endpoint(spec: str) -> EntryPoint | None:
    prefix, colon, _ = spec.partition(":")
    found = entry_points(group="posrag.endpoints", name=prefix) if colon else ()
    return next(iter(found), None)


def import_named(module: str, attribute: str, what: str, way_out: str) -> object:
    """Return what ``module:attribute`` names: `what` it is to be, and the `way_out` if it is not.

    Raises
    ------
    ValueError
        If there is no such thing.
    PosragError
        If the module fails on import.
    """
    if not module or module.startswith("."):
        raise ValueError(
            f"'{module}:{attribute}' is not a {what}: the full name of a module goes before the "
            f"colon; {way_out}"
        )
    if (folder := os.getcwd()) not in sys.path:
        sys.path.insert(0, folder)
    try:
        value: object = importlib.import_module(module)
        for part in attribute.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{module}:{attribute} is not a {what} ({error}); {way_out}") from error
    except Exception as error:
        raise PosragError(f"{module} failed on import: {type(error).__name__}: {error}") from error
    return value


def open_reranker(name: str | None) -> Reranker | None:
    """Return the reranker of ``--reranker``, if there is one; see `RERANKER_HELP`."""
    if name is None:
        return None
    module, colon, attribute = name.partition(":")
    if colon and not Path(name).exists():
        found = import_named(module, attribute, "reranker", f"give a {RERANKER_HELP}")
        wrap = None if callable(found) else wrapper_of(type(found))
        reranker = found if wrap is None else wrap.reranker(found)
        if not callable(reranker):
            raise ValueError(f"{name} is not a reranker but {found!r}; give a {RERANKER_HELP}")
        return cast(Reranker, reranker)
    return cross_encoder(name)


def cross_encoder(name: str) -> Reranker:
    """Return a model of sentence-transformers, loaded at the first use, as a reranker.

    It remembers what it has scored.
    """
    known: dict[tuple[str, str], float] = {}
    loaded = cache(partial(_load_cross_encoder, name))

    def scores(question: str, texts: Sequence[str]) -> list[float]:
        pairs = [(question, text) for text in texts]
        new = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        if new:
            found = loaded().predict(new, show_progress_bar=False)
            known.update(zip(new, map(float, found), strict=True))
        return [known[pair] for pair in pairs]

    return scores


def _load_cross_encoder(name: str) -> Any:
    quiet_transformers()
    package: Any = require("sentence_transformers", extra="models")
    try:
        return package.CrossEncoder(name)
    except Exception as error:  # what a missing model raises differs with the cause
        raise PosragError(
            f"cannot load the reranker {name!r} ({first_line(error)}); give the folder or hub "
            "name of a cross-encoder"
        ) from error

"""Language models of LlamaIndex, asked for answers by the probe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, LLMMetadata, MessageRole
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, TextNode

from shared_core.attention.rounds import scores_of
from shared_core.checking import check_count
from shared_core.generation.fingerprint import fingerprint_of, source_of, without_addresses
from shared_core.generation.responses import check_ended


class LlamaIndexModel:
    """A language model of LlamaIndex that answers prompts.

    A chat model is sent each prompt as one user message, any other completes it. It takes one
    prompt a call, and the caller runs up to `concurrency` calls at once. Errors of the model are
    passed on unchanged, so that the caller can retry.

    Parameters
    ----------
    llm
        The model. Of a chat answer only the text counts, not the reasoning or the tool calls.
    name
        Name of the model; by default the one in its metadata, or else its class.
    concurrency
        Most calls at once, >= 1.

    Raises
    ------
    TypeError
        If `llm` is not a language model of LlamaIndex.
    ValueError
        If `concurrency` is not an integer >= 1.
    """

    batch_size = 1

    fingerprint: str
    """Name, and a hash of the model's settings, of its functions, and of its class if that is not
    LlamaIndex's, each with its module: with another setting or function it is another model and is
    asked again. Changes in imported helper modules or a server's weights are not detected. See
    `shared_core.generation.fingerprint.source_of`."""

    def __init__(self, llm: LLM, *, name: str | None = None, concurrency: int = 4) -> None:
        if not isinstance(llm, LLM):
            raise TypeError(f"a language model of LlamaIndex is an LLM, got {llm!r}")
        self.llm = llm
        self.name = name if name is not None else _name_of(llm)
        self.concurrency = check_count(concurrency, "concurrency")
        code = map(source_of, _code_of(llm))
        self.fingerprint = fingerprint_of(self.name, without_addresses(repr(llm)), *code)

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Return one answer a prompt, in order.

        Raises
        ------
        GenerationError
            If the raw response says that a filter withheld the answer, or that the tokens ran out
            before there was a text.
        """
        return [self._answer(prompt) for prompt in prompts]

    @staticmethod
    def reranker(found: object) -> Callable[[str, Sequence[str]], Sequence[float]] | None:
        """Return a postprocessor as a function from a question and texts to scores, else None.

        The scores follow the order that comes back. Texts that the postprocessor drops come last.
        """
        if not isinstance(found, BaseNodePostprocessor):
            return None

        def scores(question: str, texts: Sequence[str]) -> Sequence[float]:
            nodes = [TextNode(id_=str(at), text=text) for at, text in enumerate(texts)]
            given = [NodeWithScore(node=node) for node in nodes]
            kept = found.postprocess_nodes(given, query_str=question)
            order = [*(int(node.node_id) for node in kept), *range(len(texts))]
            return scores_of([*dict.fromkeys(order)])

        return scores

    def _answer(self, prompt: str) -> str:
        if not self.llm.metadata.is_chat_model:
            completed = self.llm.complete(prompt)
            return check_ended(self.name, completed.text, _reason(completed.raw))
        answered = self.llm.chat([ChatMessage(role=MessageRole.USER, content=prompt)])
        return check_ended(self.name, answered.message.content or "", _reason(answered.raw))


def _reason(raw: Any) -> object:
    """Return why an answer ended, where its raw response or the first choice in that says so."""
    choices = _field(raw, "choices")
    if isinstance(choices, Sequence) and choices:
        return _field(choices[0], "finish_reason")
    return _field(raw, "stop_reason")


def _field(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)


def _name_of(llm: LLM) -> str:
    """Return the name in the metadata, unless it is the one that all unnamed models share."""
    name = llm.metadata.model_name
    return llm.class_name() if name in ("", LLMMetadata().model_name) else name


def _code_of(llm: LLM) -> list[Callable[..., object]]:
    """Return the functions and the class of a model that are not part of LlamaIndex."""
    parts = (part for part in (type(llm), *vars(llm).values()) if callable(part))
    return [part for part in parts if not _is_theirs(part)]


def _is_theirs(part: Callable[..., object]) -> bool:
    return str(getattr(part, "__module__", "")).split(".")[0] == "llama_index"

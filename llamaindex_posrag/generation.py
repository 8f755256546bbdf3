"""Language models of LlamaIndex, asked for answers by the probe."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llama_index.core.base.llms.types import ChatMessage, LLMMetadata, MessageRole
from llama_index.core.llms import LLM

from shared_core.checking import check_count
from shared_core.generation.identity import identity_of, source_of, without_addresses


class LlamaIndexModel:
    """A language model of LlamaIndex that answers prompts.

    A chat model is sent each prompt as one user message, any other completes it. It takes one
    prompt a call, and whoever asks runs up to `concurrency` calls at once. The errors of the model
    come out as they are, for whoever asks to try again.

    Parameters
    ----------
    llm
        The model. Of a chat answer the text counts; reasoning and tool calls are left out.
    name
        Name of the model; by default the one in its metadata, or else its class.
    concurrency
        Most calls at once, >= 1.

    Raises
    ------
    TypeError
        If `llm` is not a language model of LlamaIndex.
    ValueError
        If `concurrency` is no integer >= 1.
    """

    batch_size = 1

    identity: str
    """Name, and a hash of how the model is set up, of its functions, and of its class where that is
    no part of LlamaIndex, each with its module: another setting or function is another model, and
    asked anew. Changes in imported helper modules or a server's weights are not detected. See
    `shared_core.generation.identity.source_of`."""

    def __init__(self, llm: LLM, *, name: str | None = None, concurrency: int = 4) -> None:
        if not isinstance(llm, LLM):
            raise TypeError(f"a language model of LlamaIndex is an LLM, got {llm!r}")
        self.llm = llm
        self.name = name if name is not None else _name_of(llm)
        self.concurrency = check_count(concurrency, "concurrency")
        code = map(source_of, _code_of(llm))
        self.identity = identity_of(self.name, without_addresses(repr(llm)), *code)

    def generate(self, prompts: Sequence[str]) -> list[str]:
        """Return one answer a prompt, in order."""
        return [self._answer(prompt) for prompt in prompts]

    def _answer(self, prompt: str) -> str:
        if not self.llm.metadata.is_chat_model:
            return self.llm.complete(prompt).text
        message = ChatMessage(role=MessageRole.USER, content=prompt)
        return self.llm.chat([message]).message.content or ""


def _name_of(llm: LLM) -> str:
    """Return the name in the metadata, unless it is the one that all unnamed models share."""
    name = llm.metadata.model_name
    return llm.class_name() if name in ("", LLMMetadata().model_name) else name


def _code_of(llm: LLM) -> list[Callable[..., object]]:
    """Return the functions and the class of a model that are no part of LlamaIndex."""
    parts = (part for part in (type(llm), *vars(llm).values()) if callable(part))
    return [part for part in parts if not _is_theirs(part)]


def _is_theirs(part: Callable[..., object]) -> bool:
    return str(getattr(part, "__module__", "")).split(".")[0] == "llama_index"

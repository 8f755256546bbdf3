"""A framework's models as generators of answers."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda
from llama_index.core.base.llms.types import CompletionResponse, LLMMetadata
from llama_index.core.llms import CustomLLM

from langchain_posrag import LangChainModel
from llamaindex_posrag import LlamaIndexModel
from shared_core.errors import GenerationError
from shared_core.generation import as_generator
from shared_core.generation.fingerprint import model_fingerprint
from shared_core.generation.models import Generator, ScoringModel

from .drivers import Adapter, LangChain

MODULES = {
    "LangChain": (
        "from langchain_core.language_models import FakeListChatModel as Base\n"
        "SUFFIX = 'a'\nclass Mine(Base): responses: list = ['one']\n"
    ),
    "LlamaIndex": (
        "from llama_index.core.llms import MockLLM\nSUFFIX = 'a'\nclass Mine(MockLLM): pass\n"
    ),
}


class Completing(CustomLLM):
    """As small a model as LlamaIndex lets one be."""

    function: Any
    raw: Any = None

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="completing-1")

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        return CompletionResponse(text=self.function(prompt), raw=self.raw)

    def stream_complete(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def wrapper(adapter: Adapter) -> Any:
    return LangChainModel if isinstance(adapter, LangChain) else LlamaIndexModel


def model_of(adapter: Adapter, function: Callable[[str], str]) -> Any:
    """Return a model of the framework that answers by a function, which a chain encloses."""
    if not isinstance(adapter, LangChain):
        return Completing(function=function)

    def tagged(text: str) -> str:
        return str(inner.invoke(text))

    inner = RunnableLambda(function)
    return RunnableLambda(tagged).with_retry(stop_after_attempt=1) | StrOutputParser()


def test_each_prompt_is_answered_in_order(adapter: Adapter) -> None:
    """Unchanged, braces and all; its own error comes out as it is."""
    model = wrapper(adapter)(model_of(adapter, str.upper))
    assert isinstance(model, Generator)
    assert not isinstance(model, ScoringModel)
    assert model.generate(["is {this} öne?", "b"]) == ["IS {THIS} ÖNE?", "B"]
    assert model.generate([]) == []

    def overloaded(prompt: str) -> str:
        raise ConnectionError("try again later")

    with pytest.raises(ConnectionError, match="try again later"):
        wrapper(adapter)(model_of(adapter, overloaded)).generate(["x"])


def test_what_is_no_model_is_refused(adapter: Adapter) -> None:
    """When it is given, not at the first question."""
    with pytest.raises(TypeError, match="got 'gpt-4o'"):
        wrapper(adapter)("gpt-4o")
    with pytest.raises(ValueError, match="concurrency must be an integer >= 1, got 0"):
        wrapper(adapter)(model_of(adapter, str.upper), concurrency=0)


def test_a_model_is_known_wherever_one_is_asked_for(adapter: Adapter) -> None:
    """By the entry point; another name keeps its answers."""
    made = model_of(adapter, str.upper)
    renamed = as_generator(made, name="mine")
    assert isinstance(renamed, wrapper(adapter))
    assert renamed.name == "mine" != as_generator(made).name
    assert model_fingerprint(renamed) == as_generator(made).fingerprint


def ended(adapter: Adapter, text: str, **why: Any) -> Any:
    """Return a generator whose model answers with a text, and says why it ended."""
    if isinstance(adapter, LangChain):
        said = AIMessage(text, response_metadata=why)
        return LangChainModel(FakeMessagesListChatModel(responses=[said]))
    raw = why if "stop_reason" in why else SimpleNamespace(choices=[why])
    return LlamaIndexModel(Completing(function=lambda _: text, raw=raw))


@pytest.mark.parametrize("why", [{"finish_reason": "length"}, {"stop_reason": "max_tokens"}])
def test_an_answer_that_was_cut_off_or_withheld_is_a_failure(
    adapter: Adapter, why: dict[str, str]
) -> None:
    """It would be graded as a wrong one; a text that was cut off is an answer, and silence is."""
    assert ended(adapter, "a te", **why).generate(["x"]) == ["a te"]
    with pytest.raises(GenerationError, match="gave no text within its limit of tokens"):
        ended(adapter, "", **why).generate(["x"])
    assert ended(adapter, "", finish_reason=None).generate(["x"]) == [""]
    for text in ("", "a te"):
        with pytest.raises(GenerationError, match="a content filter withheld the answer of"):
            ended(adapter, text, finish_reason="content_filter").generate(["x"])


def formatter(template: str) -> Callable[[str], str]:
    def format_prompt(prompt: str) -> str:
        return template.format(prompt)

    return format_prompt


def test_a_model_is_another_one_with_another_function(adapter: Adapter) -> None:
    """The same again is the same."""
    one, same, other = (
        wrapper(adapter)(model_of(adapter, formatter(text))).fingerprint
        for text in ("say {}", "say {}", "shout {}")
    )
    assert one == same != other


def test_a_model_class_of_ones_own_counts_with_its_module(
    adapter: Adapter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The framework's own classes count by how they are set up."""
    monkeypatch.syspath_prepend(str(tmp_path))
    source = MODULES[type(adapter).__name__]
    found = []
    for text in (source, source, source.replace("'a'", "'bb'")):
        (tmp_path / "langchain_app.py").write_text(text)
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        sys.modules.pop("langchain_app", None)
        app = importlib.import_module("langchain_app")
        found.append(wrapper(adapter)(app.Mine()).fingerprint)
    assert found[0] == found[1] != found[2]

"""What a user may give by mistake, at every door to attention: one error, and one way out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("langchain_core")
pytest.importorskip("llama_index.core")

from langchain_core.documents import Document
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from transformers import BloomConfig, BloomForCausalLM, PreTrainedTokenizer

from langchain_posrag import AttentionPlacement, TwoRoundChain
from llamaindex_posrag import AttentionPlacementPostprocessor, TwoRoundQueryEngine
from shared_core import GenerationError, HuggingFaceModel
from shared_core.attention import Case, SelfElicit, TwoRound
from shared_core.generation.local_model import LocalModel
from shared_core.sensitivity.curve import PositionalCurve

READER = Path(__file__).parents[2] / "instruments" / "biased"
QUESTION = "Which code has amber falcon?"
TEXTS = [
    "The code of dark beaver is chalk.",
    "The code of amber falcon is violet.",
    "The code of slow elm is juice.",
]
CURVE = PositionalCurve(model="some", scores=(3.0, 1.0, 2.0), n=1)

Result = tuple[list[int], str | None]
"""The order, and the answer of a door that answers."""


class Given(BaseRetriever):
    """Retrieve these texts."""

    def __init__(self, texts: list[str]) -> None:
        super().__init__()
        self.texts = texts

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return nodes(self.texts)


def documents(texts: list[str]) -> list[Document]:
    return [Document(text, id=str(at)) for at, text in enumerate(texts)]


def nodes(texts: list[str]) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(id_=str(at), text=t)) for at, t in enumerate(texts)]


def core(method: TwoRound | SelfElicit) -> Callable[[Any, list[str]], Result]:
    def run(model: Any, texts: list[str]) -> Result:
        case = Case(question=QUESTION, documents=texts)
        [found] = method.run(LocalModel.of(model).loaded, [case])
        return [*found.order], found.answer

    return run


def compressor(model: Any, texts: list[str], **options: Any) -> Result:
    placer = AttentionPlacement(model, **options)
    found = placer.compress_documents(documents(texts), QUESTION)
    return [int(each.id or "") for each in found], None


def chain(model: Any, texts: list[str]) -> Result:
    found = TwoRoundChain(model).invoke({"question": QUESTION, "documents": documents(texts)})
    return found["order"], found["answer"]


def postprocessor(model: Any, texts: list[str], **options: Any) -> Result:
    placer = AttentionPlacementPostprocessor(model, **options)
    found = placer.postprocess_nodes(nodes(texts), QueryBundle(QUESTION))
    return [int(each.node.node_id) for each in found], None


def engine(model: Any, texts: list[str]) -> Result:
    found: Any = TwoRoundQueryEngine(Given(texts), model).query(QUESTION)
    return found.metadata["order"], found.response


DOORS: dict[str, Callable[[Any, list[str]], Result]] = {
    "TwoRound": core(TwoRound()),
    "SelfElicit": core(SelfElicit()),
    "AttentionPlacement": compressor,
    "TwoRoundChain": chain,
    "AttentionPlacementPostprocessor": postprocessor,
    "TwoRoundQueryEngine": engine,
}
PLACING = (compressor, postprocessor)


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Callable[[Any, list[str]], Result]:
    return DOORS[request.param]


@cache
def reader() -> HuggingFaceModel:
    return HuggingFaceModel.from_pretrained(READER, max_new_tokens=4)


def untappable() -> tuple[Any, Any]:
    """Return a model whose attention does not go through the library's attention functions."""
    config = BloomConfig(vocab_size=1297, hidden_size=16, n_layer=2, n_head=2)
    return BloomForCausalLM(config), reader().tokenizer


class Characters(PreTrainedTokenizer):
    """A tokenizer in Python, which knows no offsets."""

    @property
    def vocab_size(self) -> int:
        return 128

    def get_vocab(self) -> dict[str, int]:
        return {chr(code): code for code in range(128)}


def check_refused(call: Callable[[], object], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_model_that_cannot_be_tapped_is_named(door: Callable[..., Result]) -> None:
    """With what to use instead."""
    message = "BloomForCausalLM .* use a model that does"
    check_refused(lambda: door(untappable(), TEXTS), GenerationError, message)


@pytest.mark.parametrize("place", [compressor, postprocessor])
def test_on_a_curve_such_a_model_will_do(place: Callable[..., Result]) -> None:
    """Nothing is read of it."""
    expected = place(reader(), TEXTS, curve=CURVE)
    assert place(untappable(), TEXTS, curve=CURVE) == expected


def test_a_prompt_beyond_the_context_is_refused(door: Callable[..., Result]) -> None:
    """Rather than cut."""
    long = [*TEXTS, "amber " * 600]
    check_refused(
        lambda: door(reader(), long),
        ValueError,
        "more than the 512 that biased reads; give fewer or shorter passages",
    )


def test_a_document_without_tokens_is_refused(door: Callable[..., Result]) -> None:
    """By its number."""
    message = "document 1 has no token of its own, got ''; leave it out"
    check_refused(lambda: door(reader(), [TEXTS[0], "", TEXTS[2]]), ValueError, message)


def test_a_tokenizer_that_truncates_costs_no_document(door: Callable[..., Result]) -> None:
    """Whatever length it was saved with: no document vanishes behind the cut."""
    tokenizer = copy.deepcopy(reader().tokenizer)
    tokenizer.model_max_length = 16
    tokenizer.backend_tokenizer.enable_truncation(16)
    short = HuggingFaceModel(reader().model, tokenizer, max_new_tokens=4)
    assert door(short, TEXTS) == door(reader(), TEXTS)


def test_a_tokenizer_without_offsets_is_refused(door: Callable[..., Result]) -> None:
    """By name, with the way to one that has them."""
    check_refused(
        lambda: door((reader().model, Characters()), TEXTS),
        ValueError,
        "Characters does not give the characters .* PreTrainedTokenizerFast",
    )


@pytest.mark.parametrize("texts", [TEXTS, TEXTS[:1], []], ids=len)
def test_an_empty_answer_is_an_answer(door: Callable[..., Result], texts: list[str]) -> None:
    """Its documents are ranked by what the end of the prompt attends to."""
    silent = HuggingFaceModel.from_pretrained(READER, max_new_tokens=4)
    silent.model.generation_config.eos_token_id = [*range(1297)]
    order, answer = door(silent, texts)
    assert sorted(order) == [*range(len(texts))]
    assert answer == (None if door in PLACING else "")


@pytest.mark.parametrize("n", [0, 1])
def test_no_document_and_one_are_no_fault(door: Callable[..., Result], n: int) -> None:
    """Nothing moves; the question is answered all the same."""
    order, answer = door(reader(), TEXTS[1 : 1 + n])
    assert order == [*range(n)]
    assert answer == (None if door in PLACING else ("NO-RESPONSE", "violet")[n])

"""The PyTorch API corpus: complete, unique, documented, and the same at every call."""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any

import pytest

pytest.importorskip("torch")

from shared_core import Passage
from shared_core.corpora import torch_api_passages
from shared_core.corpora.docstrings import is_pointer, split_docstring


@pytest.fixture(scope="module")
def passages() -> list[Passage]:
    return torch_api_passages()


@pytest.fixture(scope="module")
def by_id(passages: list[Passage]) -> dict[str, Passage]:
    return {passage.id: passage for passage in passages}


def test_there_are_more_than_1500_with_unique_ids(passages: list[Passage]) -> None:
    assert len(passages) >= 1500
    assert len({passage.id for passage in passages}) == len(passages)


def test_the_same_at_every_call(passages: list[Passage]) -> None:
    assert torch_api_passages() == passages
    assert [passage.id for passage in passages] == sorted(passage.id for passage in passages)


def test_text_is_the_qualified_signature_a_blank_line_and_the_docstring(
    passages: list[Passage],
) -> None:
    for passage in passages:
        head, _, docstring = passage.text.partition("\n\n")
        assert head == passage.id + passage.metadata["signature"]
        assert docstring.strip()
        assert not is_pointer(docstring)
        assert passage.id == f"{passage.metadata['module']}.{passage.metadata['name']}"


@pytest.mark.parametrize(
    ("entry", "signature", "kind"),
    [
        ("torch.nn.ReLU", "(inplace=False)", "class"),
        ("torch.linalg.eig", "(A, *, out=None) -> (Tensor, Tensor)", "function"),
        ("torch.Tensor.backward", None, "method"),
        ("torch.Tensor.grad", "", "property"),
    ],
)
def test_known_entries(
    by_id: dict[str, Passage], entry: str, signature: str | None, kind: str
) -> None:
    metadata = by_id[entry].metadata
    assert metadata["kind"] == kind
    assert signature is None or metadata["signature"] == signature


def test_a_signature_over_several_lines_is_read_whole(by_id: dict[str, Passage]) -> None:
    passage = by_id["torch.nn.functional.scaled_dot_product_attention"]
    signature = passage.metadata["signature"]
    assert signature.startswith("(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=")
    assert signature.endswith("-> Tensor")
    assert passage.text.partition("\n\n")[2].startswith("Computes scaled dot product attention")


def test_an_object_with_several_names_is_one_passage(by_id: dict[str, Passage]) -> None:
    assert by_id["torch.nn.functional.conv2d"].metadata["aliases"] == ["torch.conv2d"]
    assert "torch.conv2d" not in by_id
    assert "torch.autograd.no_grad" in by_id["torch.no_grad"].metadata["aliases"]


def test_what_torch_wraps_in_one_module_alone_is_still_one_passage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As loading a model does; else the corpus is another one then, and is embedded again."""
    torch: Any = importlib.import_module("torch")
    plain = inspect.unwrap(torch.manual_seed)
    monkeypatch.setattr(torch, "manual_seed", plain)
    fresh = torch_api_passages()

    @functools.wraps(plain)
    def wrapper(*arguments: object) -> object:
        return plain(*arguments)

    monkeypatch.setattr(torch, "manual_seed", wrapper)
    assert torch_api_passages() == fresh
    monkeypatch.setattr(torch, "seed_by_hand", wrapper, raising=False)
    monkeypatch.setattr(torch, "__all__", [*torch.__all__, "seed_by_hand"])
    assert "torch.seed_by_hand" in {passage.id for passage in torch_api_passages()} - {
        passage.id for passage in fresh
    }


def test_private_foreign_and_undocumented_names_are_out(passages: list[Passage]) -> None:
    for passage in passages:
        assert not any(part.startswith("_") for part in passage.id.split("."))
        assert " at 0x" not in passage.metadata["signature"]
    ids = {passage.id for passage in passages}
    assert ids.isdisjoint(
        {
            "torch.nn.functional.Optional",  # typing's
            "torch.multiprocessing.Lock",  # the standard library's
            "torch.Tensor.__init__",
            "torch.float32",  # no docstring of its own
            "torch.Tensor.abs",  # "See :func:`torch.abs`"
        }
    )


def _documented(value: object = functools.partial, *, _hidden: int = 0) -> None:
    """Say something."""


class _Undocumented(Exception):
    pass


def test_a_default_is_shown_by_name_and_private_parameters_not_at_all() -> None:
    assert split_docstring("_documented", _documented) == ("(value=partial)", "Say something.")


def test_an_inherited_docstring_is_none() -> None:
    assert inspect.getdoc(_Undocumented) is not None
    assert split_docstring("_Undocumented", _Undocumented)[1] == ""
    assert split_docstring("flag", True)[1] == ""

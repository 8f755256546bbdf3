"""What is taken for a model, and under which name."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from shared_core.generation import CallableModel, Generator, ScoringModel, as_generator
from shared_core.generation.fingerprint import model_fingerprint


def shout(prompts: Sequence[str]) -> list[str]:
    return [prompt.upper() for prompt in prompts]


@dataclass(frozen=True)
class Plain:
    """A model of ours that generates."""

    name: str = "plain"

    def generate(self, prompts: Sequence[str]) -> Sequence[str]:
        return shout(prompts)


def test_a_function_is_a_model() -> None:
    """Named after itself, eight prompts a call, one call at a time."""
    model = as_generator(shout)
    assert isinstance(model, CallableModel)
    assert isinstance(model, Generator)
    assert not isinstance(model, ScoringModel)
    assert model.generate(["a", "b"]) == ["A", "B"]
    assert (model.name, model.batch_size, model.concurrency) == ("shout", 8, 1)
    assert as_generator(shout, name="mine").name == "mine"
    assert CallableModel(Plain().generate).name == "Plain.generate"


def test_what_has_no_name_is_an_unnamed_function() -> None:
    """Its source tells it from another."""
    functions = (lambda prompts: shout(prompts)), functools.partial(shout)
    models = [as_generator(function) for function in functions]
    assert [model.name for model in models] == ["unnamed function"] * 2
    assert len({*map(model_fingerprint, models)}) == 2
    assert as_generator(functions[0], name="mine").name == "mine"


def test_another_name_changes_nothing_else() -> None:
    """Not even of what cannot be changed."""
    model = Plain()
    assert as_generator(model) is as_generator(model, name="plain") is model
    renamed = as_generator(model, name="mine")
    assert (renamed.name, model.name, type(renamed)) == ("mine", "plain", Plain)


@pytest.mark.parametrize(
    ("model", "shown"),
    [("gpt", "a str"), (None, "a NoneType"), (Plain(name=None), r"a .*test_models\.Plain")],  # type: ignore[arg-type]
)
def test_anything_else_is_refused(model: object, shown: str) -> None:
    """With its type, and what would do; as a framework's model whose adapter is not installed."""
    with pytest.raises(TypeError, match=rf"^{shown} is not a model; give .*generate.*function"):
        as_generator(model)


@pytest.mark.parametrize("kind", [Plain, dict])
def test_a_class_is_not_its_instance(kind: type) -> None:
    """It has all the attributes, and can be called."""
    with pytest.raises(TypeError, match=rf"{kind.__name__} is a class; give an instance"):
        as_generator(kind)

"""What counts as another model: whatever can be read of the code and values behind it."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shared_core.generation.callables import CallableModel, as_generator
from shared_core.generation.identity import model_identity, source_of

Load = Callable[[str], ModuleType]

APP = """
MODEL = "good"

def call(model, prompt):
    return prompt if model == "good" else "no idea"

def answer(prompts):
    return [call(MODEL, prompt) for prompt in prompts]

class Model:
    name = "mine"

    def generate(self, prompts):
        return answer(prompts)
"""


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Import a module ``app_of_a_user`` with the source that is given."""

    def loaded(source: str) -> ModuleType:
        path = tmp_path / f"{abs(hash(source))}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("app_of_a_user", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["app_of_a_user"] = module
        spec.loader.exec_module(module)
        return module

    yield loaded
    sys.modules.pop("app_of_a_user", None)


def identity(function: Callable[..., Any]) -> str:
    return CallableModel(function, name="m").identity


def without_source(text: str, name: str) -> Any:
    """Return what a prompt leaves behind: code with no file to read."""
    names: dict[str, Any] = {"__name__": "typed"}
    exec(text, names)
    return names[name]


@pytest.mark.parametrize(
    ("old", "new"), [('"good"\n', '"bad"\n'), ('"no idea"', '"none"'), ("[call(", "[''+call(")]
)
def test_a_change_anywhere_in_the_module_makes_another_model(
    load: Load, old: str, new: str
) -> None:
    """A constant, a helper, and the function itself; the same once more does not."""
    first = identity(load(APP).answer)
    assert identity(load(APP).answer) == first
    assert identity(load(APP.replace(old, new)).answer) != first
    assert old in APP


def test_a_class_of_ones_own_is_read_too_unless_it_says_what_it_is(load: Load) -> None:
    """A name by itself would be the same after a change; under another name it is as it was."""
    first, same, other = (load(text).Model() for text in (APP, APP, APP.replace("good", "bad")))
    assert model_identity(first).startswith("mine ")
    load(APP)
    assert model_identity(first) == model_identity(same)
    renamed: Any = as_generator(first, name="hers")
    assert renamed.identity == model_identity(first)
    load(APP.replace("good", "bad"))
    assert model_identity(other) != renamed.identity
    other.identity = "mine, of May"
    assert model_identity(other) == "mine, of May"


def make(model: str, settings: object = None) -> Callable[[Sequence[str]], list[str]]:
    """Return a function that differs from another by what it encloses."""

    def answer(prompts: Sequence[str]) -> list[str]:
        return [f"{model} {settings}"] * len(prompts)

    return answer


def test_enclosed_values_count() -> None:
    assert identity(make("good")) == identity(make("good"))
    assert identity(make("good")) != identity(make("bad"))
    assert identity(make("good", {"t": (0, {"p": 1.0})})) != identity(
        make("good", {"t": (0, {"p": 0.5})})
    )
    assert identity(make("good", make("a"))) != identity(make("good", make("b")))


def test_defaults_and_what_a_partial_was_given_count() -> None:
    def one(prompts: Sequence[str], model: str = "good") -> list[str]:
        return [model] * len(prompts)

    def called(default: str) -> Any:
        one.__defaults__ = (default,)
        return identity(one)

    assert called("good") == called("good") != called("bad")
    good, same, bad = (functools.partial(one, model=name) for name in ("good", "good", "bad"))
    assert source_of(good) == source_of(same) != source_of(bad)


def test_a_decorated_function_is_read_through_its_decorator(load: Load) -> None:
    """One of functools' too, which is no Python function any more."""
    app = "import functools\n@functools.cache\n" + APP.strip().split("\n\n")[1]
    assert identity(load(app).call) != identity(load(app.replace("no idea", "none")).call)


def test_values_are_read_where_the_source_does_not_tell_them(load: Load) -> None:
    """As of a variable of the environment."""
    module = load(APP)
    first = identity(module.answer)
    module.MODEL = "bad"  # type: ignore[attr-defined]
    assert identity(module.answer) != first


def test_code_that_was_typed_at_a_prompt_is_read_as_well() -> None:
    first, same = (without_source(APP, "answer") for _ in range(2))
    assert identity(first) == identity(same)
    for change in (('"good"\n', '"bad"\n'), ('"no idea"', '"none"'), ("[call(", "[''+call(")):
        assert identity(without_source(APP.replace(*change), "answer")) != identity(first)


def test_what_a_function_notes_down_while_it_runs_does_not_count() -> None:
    """Or a run could not go on in the same process."""
    log: list[str] = []
    before = identity(make("good", log))
    log.append("asked")
    assert identity(make("good", log)) == before


@dataclass(frozen=True)
class Client:
    model: str

    def __call__(self, prompts: Sequence[str]) -> list[str]:
        return [self.model] * len(prompts)

    def method(self, prompts: Sequence[str]) -> list[str]:
        return self(prompts)


def test_an_object_counts_by_its_repr() -> None:
    for function in (lambda model: Client(model), lambda model: Client(model).method):
        assert identity(function("good")) == identity(function("good"))
        assert identity(function("good")) != identity(function("bad"))


def test_a_function_that_calls_itself_and_one_of_numpy_are_read() -> None:
    """Neither for ever nor with an error."""

    def again(prompts: Sequence[str]) -> list[str]:
        return again(prompts[1:]) if prompts else []

    assert identity(again) == identity(again)
    assert identity(len) == identity(len)
    assert identity(frozenset({"a", "b"}).union) == identity(frozenset({"a", "b"}).union)

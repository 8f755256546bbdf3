"""What counts as another model: whatever can be read of the code and values behind it."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shared_core.generation.callables import CallableModel, as_generator
from shared_core.generation.identity import model_identity, source_of, without_addresses

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
    assert identity(make("good", (0, ("p", 1.0)))) != identity(make("good", (0, ("p", 0.5))))
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


def test_a_literal_that_looks_like_an_address_counts(load: Load) -> None:
    app = APP.replace('"no idea"', "str(0x10)")
    assert identity(load(app).answer) != identity(load(app.replace("0x10", "0x20")).answer)
    assert without_addresses(repr(object())) == without_addresses(repr(object()))


RUN = """
import functools, time
from collections import Counter
from shared_core.comparison import Judge
from shared_core.generation.callables import CallableModel
from shared_core.generation.identity import model_identity

COUNT, MEMO, ASKED, STARTED, STOP = 0, {}, Counter(), time.time(), frozenset("abcdefgh")

class Raising:
    def __repr__(self):
        raise RuntimeError("not connected")

class Answering:
    def __getattr__(self, name):
        return Answering()

    def __call__(self):
        return Answering()

class Proxy:
    @property
    def __class__(self):
        raise RuntimeError("outside of a request")

def counting(prompts):
    global COUNT
    COUNT += 1
    return prompts

def remembering(prompts):
    return [MEMO.setdefault(prompt, prompt) for prompt in prompts]

def counted(prompts):
    ASKED.update(prompts)
    return [prompt for prompt in prompts if STARTED and not STOP.intersection(prompt)]

def enclosing(*held):
    calls = 0
    def answer(prompts, stop=STOP):
        nonlocal calls
        calls += 1
        return prompts if held else None
    return answer

class Model:
    name = "mine"

    def __init__(self, model):
        self.model, self.calls, self.stop = model, 0, STOP

    def generate(self, prompts):
        self.calls += 1
        return prompts

def judge(question, answers, answer):
    ASKED[answer] += 1
    return counting(1.0)

functions = [counting, remembering, counted, enclosing(Raising(), Answering(), Proxy()),
             Model("a").generate, functools.partial(counting), functools.cache(counted)]
functions += [enclosing(each) for each in (Raising(), Answering(), Proxy(), STOP, {}, [])]
model = Model("a")

def identities():
    return [*(CallableModel(each, name="m").identity for each in functions),
            Judge(judge).identity, model_identity(model)]

before = identities()
for each in functions:
    each(("a prompt",))
judge("q", ["a"], "a")
model.generate(("a prompt",))
assert identities() == before
print(before)
"""


@pytest.mark.parametrize("source", [True, False])
def test_a_model_is_the_same_in_another_process_and_after_a_run(
    source: bool, tmp_path: Path
) -> None:
    """Whatever it counts, remembers or holds, and whatever order sets have; without a source, too.

    Without one the time at which it began would count: a plain value, like a model's name.
    """
    file = tmp_path / "app.py"
    file.write_text(RUN if source else f"exec({RUN.replace('time.time()', '1.0')!r})")
    found = [
        subprocess.run(
            [sys.executable, file],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parents[3],
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1] != ""


TYPED = """
import functools

class Base:
    def prompt(self):
        return "good base"

class Model(Base):
    name = "mine"
    style = "good style"

    def __init__(self, model="a"):
        self.model = model

    @property
    def kind(self):
        return "good kind"

    @staticmethod
    def fixed():
        return "good static"

    @classmethod
    def made(cls):
        return "good class"

    @functools.cached_property
    def kept(self):
        return "good kept"

    def generate(self, prompts):
        return ["good answer"] * len(prompts)

model = Model()

def answer(prompts):
    return Model().generate(prompts)

def through(prompts):
    return model.generate(prompts)
"""


@pytest.mark.parametrize("part", ["base", "style", "kind", "static", "class", "kept", "answer"])
def test_a_class_that_was_typed_at_a_prompt_is_read(part: str) -> None:
    """With what it inherits, whether it is the model itself or a function uses it."""
    changed = TYPED.replace(f"good {part}", f"bad {part}")
    for name in ("answer", "through"):
        first, same, other = (without_source(each, name) for each in (TYPED, TYPED, changed))
        assert identity(first) == identity(same) != identity(other)
    first, same, other = (without_source(each, "model") for each in (TYPED, TYPED, changed))
    assert model_identity(first) == model_identity(same) != model_identity(other)


def test_settings_of_a_model_count_unless_they_say_how_it_is_asked(load: Load) -> None:
    """Several prompts a call give the same answers."""
    made = load(APP).Model
    models = [made() for _ in range(4)]
    models[1].url, models[2].url, models[3].batch_size = "http://a", "http://b", 4
    found = [model_identity(model) for model in models]
    assert len({*found}) == 3
    assert found[3] == found[0]


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


def test_an_object_counts_by_its_plain_attributes() -> None:
    for function in (lambda model: Client(model), lambda model: Client(model).method):
        assert identity(function("good")) == identity(function("good"))
        assert identity(function("good")) != identity(function("bad"))


def test_a_function_that_calls_itself_and_one_of_numpy_are_read() -> None:
    """Neither for ever nor with an error."""

    def again(prompts: Sequence[str]) -> list[str]:
        return again(prompts[1:]) if prompts else []

    assert identity(again) == identity(again)
    deep: Any = ()
    for _ in range(5_000):
        deep = (deep, 10**5_000)
    assert identity(make("good", deep)) == identity(make("good", deep))
    assert identity(len) == identity(len)
    assert identity(frozenset({"a", "b"}).union) == identity(frozenset({"a", "b"}).union)

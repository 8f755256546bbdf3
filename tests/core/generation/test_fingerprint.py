"""What counts as another model: whatever can be read of the code and values behind it."""

from __future__ import annotations

import functools
import importlib.util
import linecache
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shared_core.generation import CallableModel
from shared_core.generation.fingerprint import model_fingerprint

Load = Callable[[str], ModuleType]

APP = """
MODEL = "good"

def call(model, prompt):
    return prompt if model == "good" else "no idea"

def answer(prompts):
    return [call(MODEL, prompt) for prompt in prompts]

class Base:
    def generate(self, prompts):
        return answer(prompts)

class Model(Base):
    name = "mine"
    style = "plain"

model = Model()
"""
CHANGES = [
    ('"good"\n', '"bad"\n'),
    ('"no idea"', '"none"'),
    ("[call(", "[''+call("),
    ("return answer", "return 2 * answer"),
    ('"plain"', '"loud"'),
]


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


CELLS = count()


def typed(*cells: str) -> dict[str, Any]:
    """Return what the cells of a notebook leave behind: no file, but a source that is known."""
    names: dict[str, Any] = {"__name__": "typed"}
    for text in cells:
        cell = f"<cell {next(CELLS)}>"
        linecache.cache[cell] = (len(text), None, text.splitlines(keepends=True), cell)
        exec(compile(text, cell, "exec"), names)
    return names


def fingerprint(function: Callable[..., Any]) -> str:
    return CallableModel(function, name="m").fingerprint


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_anywhere_in_the_module_makes_another_model(
    load: Load, change: tuple[str, str]
) -> None:
    """A constant, a helper, a base; in a notebook, too, within a cell."""

    def found(source: str) -> list[str]:
        made = [load(source).model, typed(source)["model"]]
        return [*map(model_fingerprint, made), fingerprint(load(source).answer)]

    one, same, other = map(found, (APP, APP, APP.replace(*change)))
    assert one == same
    assert not {*one} & {*other}


def test_in_a_notebook_its_own_cell_counts() -> None:
    """With what it derives from there, however its methods are decorated; not other helpers."""
    *before, model, made = APP.split("\n\n")
    before[-1] = before[-1].replace("    def", "    @functools.cache\n    def")
    cells = ["import functools", *before, model, made]

    def found(at: int, old: str, new: str) -> str:
        changed = [*cells[:at], cells[at].replace(old, new), *cells[at + 1 :]]
        return model_fingerprint(typed(*changed)["model"])

    changed = found(4, "return answer", "return 2 * answer"), found(5, "plain", "loud")
    assert found(1, "good", "bad") == found(0, "", "") not in changed


def test_a_class_of_ones_own_is_read_unless_it_says_what_it_is(load: Load) -> None:
    """Its settings, too, but not how it is asked."""
    models = [load(APP).Model() for _ in range(4)]
    models[1].url, models[2].url, models[3].batch_size = "http://a", "http://b", 4
    found = [*map(model_fingerprint, models)]
    assert found[3] == found[0]
    assert len({*found}) == 3
    models[1].fingerprint = "mine, of May"
    assert model_fingerprint(models[1]) == "mine, of May"


def test_an_error_within_the_fingerprint_is_no_lack_of_one() -> None:
    """Two models of one class and name would share what is left: their kept answers."""

    class Broken:
        name = "m"

        @property
        def fingerprint(self) -> str:
            return str(self.missing)  # type: ignore[attr-defined]

        def generate(self, prompts: Sequence[str]) -> Sequence[str]:
            return prompts

    with pytest.raises(AttributeError, match="missing"):
        model_fingerprint(Broken())


def make(model: str, settings: object = None) -> Callable[[Sequence[str]], list[str]]:
    """Return a function that differs from another by what it encloses."""

    def answer(prompts: Sequence[str]) -> list[str]:
        return [f"{model} {settings}"] * len(prompts)

    return answer


def given(prompts: Sequence[str], model: str = "good") -> list[str]:
    return [model] * len(prompts)


@dataclass(frozen=True)
class Client:
    model: str

    def __call__(self, prompts: Sequence[str]) -> list[str]:
        return [self.model] * len(prompts)

    def method(self, prompts: Sequence[str]) -> list[str]:
        return self(prompts)


@pytest.mark.parametrize(
    "with_value",
    [
        make,
        lambda value: make("m", (0, ("p", make(value)))),
        lambda value: functools.partial(given, model=value),
        Client,
        lambda value: Client(value).method,
        lambda value: functools.cache(make(value)),
    ],
)
def test_what_a_function_was_given_counts(with_value: Callable[[str], Any]) -> None:
    """What it encloses, its partial's arguments, its object's attributes."""
    one, same, other = (fingerprint(with_value(value)) for value in ("good", "good", "bad"))
    assert one == same != other


def test_code_that_cannot_be_read_gets_a_warning() -> None:
    """Two of them would answer for each other."""
    names: dict[str, Any] = {"__name__": "typed"}
    exec("def answer(prompts): return prompts", names)
    with pytest.warns(UserWarning, match="the source of answer cannot be read: .* ask afresh"):
        fingerprint(names["answer"])


RUN = """
from shared_core.generation import CallableModel
from shared_core.generation.fingerprint import model_fingerprint

STOP = frozenset("abcdefgh")

def enclosing(held):
    calls = 0
    def answer(prompts, stop=STOP):
        nonlocal calls
        calls += 1
        return prompts if held else None
    return answer

class Model:
    name, calls, stop = "mine", 0, STOP

    def generate(self, prompts):
        self.calls += 1
        return prompts

model = Model()
functions = [model.generate, *map(enclosing, (STOP, {}, []))]

def fingerprints():
    found = [CallableModel(each, name="m").fingerprint for each in functions]
    return [*found, model_fingerprint(model)]

before = fingerprints()
for each in functions:
    each(("a prompt",))
assert fingerprints() == before
print(before)
"""


def test_a_model_is_the_same_in_another_process_and_after_a_run(tmp_path: Path) -> None:
    """Whatever it counts, remembers or holds, and whatever order sets have."""
    file = tmp_path / "app.py"
    file.write_text(RUN)
    found = [
        subprocess.run(
            [sys.executable, file],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert found[0] == found[1] != ""

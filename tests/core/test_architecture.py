"""The shape of the project: who may import whom, and what is public."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import shared_core
from shared_core import api

ROOT = Path(shared_core.__file__).parents[1]
PACKAGES = ("shared_core", "langchain_posrag", "llamaindex_posrag")
ADAPTERS = PACKAGES[1:]
HEAVY = {
    *ADAPTERS,
    *("langchain", "langchain_core", "llama_index", "pydantic"),
    *("torch", "transformers", "sentence_transformers", "scipy", "pandas", "sklearn"),
    *("rich", "rank_bm25", "bm25s", "tenacity", "matplotlib", "ir_measures", "pytrec_eval"),
}
LAYERS = [
    {"wording", "arrays"},
    {"types", "errors", "metadata", "tokens", "checking"},
    {"_extras", "vectors", "native", "files"},
    {"generation", "corpora"},
    {"evaluation"},
    {"sensitivity"},
    {"placement", "scoring"},
    {"attention", "neighbour_spans", "probe"},
    {"index"},
    {"engines"},
    {"gating", "selection"},
    {"caus"},
    {"comparison", "options", "tuning"},
    {"api"},
    {"cli"},
]
"""Lowest first: a module imports from its own part of the core, or from below."""


def modules_of(package: str) -> list[str]:
    """Return the dotted names of all modules of a package."""
    folder = ROOT.joinpath(*package.split("."))
    paths = [path.relative_to(ROOT).with_suffix("") for path in folder.rglob("*.py")]
    return sorted(".".join(path.parts).removesuffix(".__init__") for path in paths)


@cache
def imports_of(module: str) -> set[str]:
    """Return the dotted names that a module imports anywhere, also inside functions."""
    path = ROOT.joinpath(*module.split("."))
    is_package = path.is_dir()
    source = (path / "__init__.py" if is_package else path.with_suffix(".py")).read_text("utf-8")
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")[: None if is_package else -1]
            base = parts[: len(parts) - node.level + 1] if node.level else []
            found.add(".".join([*base, *filter(None, [node.module])]))
            found |= {".".join([*base, *filter(None, [node.module]), a.name]) for a in node.names}
    return found


def part_of(module: str) -> str:
    """Return the part of the core a module belongs to; "" for the core's own ``__init__``."""
    return module.partition(".")[2].partition(".")[0]


def layer_of(module: str) -> int:
    """Return the layer of a module of the core."""
    (layer,) = (at for at, parts in enumerate(LAYERS) if part_of(module) in parts)
    return layer


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_core_brings_in_no_framework() -> None:
    """In a fresh interpreter, with everything it can import lazily left alone."""
    loaded = run_python("import sys, shared_core.api; print(*sys.modules)").split()
    assert "shared_core.caus" in loaded
    assert {name.partition(".")[0] for name in loaded} & HEAVY == set()


@pytest.mark.parametrize(
    ("adapter", "own", "other"),
    [
        ("langchain", "langchain_core", "llama_index"),
        ("llamaindex", "llama_index", "langchain_core"),
    ],
)
def test_an_adapter_takes_its_framework_alone_and_names_it_where_it_is_missing(
    adapter: str, own: str, other: str
) -> None:
    """Neither the other one, nor a model library, nor a package the adapter does not depend on."""
    loaded = run_python(f"import sys, {adapter}_posrag; print(*sys.modules)").split()
    foreign = {other, "sentence_transformers", "langchain_classic", "langchain_community"}
    assert {name.partition(".")[0] for name in loaded} & foreign == set()
    told = f"{own} is not installed; run: pip install 'posrag[{adapter}]'"
    without = f"import sys; sys.modules[{own!r}] = None\ntry: import {adapter}_posrag\n"
    assert run_python(f"{without}except ImportError as error: print(error)") == f"{told}\n"


def test_the_help_of_the_command_imports_neither_the_core_nor_numpy() -> None:
    loaded = run_python(
        "import sys; from shared_core.cli.main import main\n"
        "try: main([])\nexcept SystemExit: print(*sys.modules)"
    ).split()
    assert {"shared_core.cli.main", "shared_core.errors"} <= {*loaded}
    assert {"shared_core.caus", "numpy"}.isdisjoint(loaded)


@pytest.mark.parametrize("module", modules_of("shared_core"))
def test_the_core_knows_no_adapter_and_no_framework(module: str) -> None:
    """Not even inside a function."""
    tops = {name.partition(".")[0] for name in imports_of(module)}
    forbidden = {*ADAPTERS, "langchain", "langchain_core", "langchain_classic", "llama_index"}
    assert tops & forbidden == set()


@pytest.mark.parametrize("module", [name for each in ADAPTERS for name in modules_of(each)])
def test_adapters_import_the_core_and_never_each_other(module: str) -> None:
    """Nor the sunset or legacy packages of LangChain, nor the core's command."""
    own = module.partition(".")[0]
    imported = imports_of(module)
    tops = {name.partition(".")[0] for name in imported}
    assert tops & ({*ADAPTERS} - {own}) == set()
    assert tops & {"langchain", "langchain_classic", "langchain_community", "tests"} == set()
    assert not [name for name in imported if name.startswith("shared_core.cli")]


@pytest.mark.parametrize(
    "module", [name for name in modules_of("shared_core") if name != "shared_core"]
)
def test_no_layer_of_the_core_imports_a_higher_one(module: str) -> None:
    """Types and errors, then the algorithms, then CAUS, then the command."""
    for imported in imports_of(module):
        if imported.startswith("shared_core.") and part_of(imported) != part_of(module):
            if not any(part_of(imported) in parts for parts in LAYERS):
                continue  # a name of the core's own __init__, which the next test is about
            assert layer_of(imported) < layer_of(module), f"{module} imports {imported}"


@pytest.mark.parametrize("module", modules_of("shared_core"))
def test_inside_the_core_only_the_outer_parts_use_its_front_door(module: str) -> None:
    """``from shared_core import X`` in a lower module would be a circle."""
    if part_of(module) in ("cli", "corpora", ""):
        return
    assert "shared_core" not in imports_of(module)


def test_every_part_of_the_core_has_a_layer() -> None:
    """A new part must say where it stands."""
    parts = {part_of(name) for name in modules_of("shared_core")} - {""}
    assert parts == set.union(*LAYERS)


def test_the_public_names_of_the_core_are_what_its_api_imports_and_each_adapters_too() -> None:
    """Nobody has to know where one comes from; an adapter adds what it defines itself."""
    names = {name for name in vars(api) if not name.startswith("_")} - {"annotations"}
    assert shared_core.__all__ == api.__all__
    assert {*api.__all__} == names
    for package in ADAPTERS:
        module = importlib.import_module(package)
        own = [name for name in module.__all__ if name not in names]
        assert module.__all__ == [*own, *api.__all__]
        assert {vars(module)[name].__module__.partition(".")[0] for name in own} == {package}
        assert all(getattr(module, name).__doc__ for name in module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_else_is_within_easy_reach(package: str) -> None:
    """What a package's front door shows without being public are its own modules; types ship."""
    module = importlib.import_module(package)
    assert (ROOT / package / "py.typed").is_file()
    shown = {name for name in vars(module) if not name.startswith("_")} - {*module.__all__}
    assert {name for name in shown if not hasattr(vars(module)[name], "__path__")} <= {
        "annotations",
        *(name.split(".")[1] for name in modules_of(package) if "." in name),
    }


def test_every_error_is_the_packages_own() -> None:
    """One `except PosragError` catches them; a missing extra is an ImportError too."""
    errors = [getattr(shared_core, name) for name in shared_core.__all__ if name.endswith("Error")]
    assert all(issubclass(error, shared_core.PosragError) for error in errors)
    assert issubclass(shared_core.CorruptIndexError, shared_core.IndexFormatError)
    assert issubclass(shared_core.MissingExtraError, ImportError)


def test_what_is_missing_is_told_from_what_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it fails to import itself is what the error names, not the line for pip."""
    from shared_core._extras import require

    assert require("json", extra="models").__name__ == "json"
    told = r"^surely_not_installed is not installed; run: pip install 'posrag\[models\]'$"
    with pytest.raises(shared_core.MissingExtraError, match=told):
        require("surely_not_installed.part", extra="models")
    (tmp_path / "broken_extra.py").write_text("import surely_not_installed")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed") as caught:
        require("broken_extra", extra="models")
    assert not isinstance(caught.value, shared_core.MissingExtraError)

"""Labelled collections: questions, passages, and which passages answer which question."""

from __future__ import annotations

import ast
import importlib.util
import json
import pkgutil
import platform
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from shared_core import Passage
from shared_core.corpora import torch_api_passages, torch_queries
from shared_core.corpora.docstrings import is_pointer, split_docstring

ASKING = 4
"""Words from which a docstring's summary is taken for a question."""

_NO_SOURCE = {"idlelib", "lib2to3", "site-packages", "test", "tests"}
"""Folders of the standard library that are not read."""


@dataclass(frozen=True)
class Collection:
    """Passages, questions by id, and the grades of the passages that are relevant to each."""

    name: str
    passages: list[Passage]
    queries: dict[str, str]
    relevant: dict[str, dict[str, int]]


def read(source: str) -> Collection:
    """Return what `source` stands for: see `benchmarks.quality`.

    Raises
    ------
    ValueError
        If it is neither a folder with a ``corpus.jsonl`` nor an installed package, or the folder
        does not say which passages are relevant.
    """
    if source == "torch":
        return read_torch()
    if source == "stdlib":
        return read_source()
    if (Path(source) / "corpus.jsonl").is_file():
        return read_folder(Path(source))
    if source.isidentifier() and importlib.util.find_spec(source) is not None:
        return read_package(source)
    raise ValueError(f"neither a folder with a corpus.jsonl nor an installed package: {source}")


def read_torch() -> Collection:
    """Return the benchmark of the CAUS paper, with questions of our own."""
    queries = torch_queries()
    return Collection(
        "PyTorch API",
        torch_api_passages(),
        {query.id: query.query for query in queries},
        {query.id: {query.api: 1} for query in queries},
    )


def read_folder(folder: Path) -> Collection:
    """Read a collection; queries without a relevant passage are left out, as usual."""
    passages = [
        Passage(d["_id"], "\n".join(filter(None, [d.get("title"), d["text"]])))
        for d in lines(folder / "corpus.jsonl")
    ]
    relevant: dict[str, dict[str, int]] = {}
    for query, passage, grade in judgements(folder):
        if grade > 0:
            relevant.setdefault(query, {})[passage] = int(grade)
    queries = {q["_id"]: q["text"] for q in lines(folder / "queries.jsonl") if q["_id"] in relevant}
    return Collection("/".join(folder.parts[-2:]), passages, queries, relevant)


def judgements(folder: Path) -> list[tuple[str, str, float]]:
    """Return query, passage and grade of each row of ``qrels/test.tsv``, or of ``qrels.tsv``.

    Raises
    ------
    ValueError
        If the folder has neither.
    """
    for path in (folder / "qrels" / "test.tsv", folder / "qrels.tsv"):
        if path.is_file():
            rows = (row.split("\t") for row in path.read_text("utf-8").splitlines()[1:])
            return [(query, passage, float(grade)) for query, passage, grade in rows]
    raise ValueError(f"there is neither qrels/test.tsv nor qrels.tsv in {folder}")


def read_source() -> Collection:
    """Return the functions of Python's standard library, asked for in words.

    The first sentence of a function's docstring asks for its source without the docstring, unless
    others have the same one.
    """
    functions = [*_functions(Path(sysconfig.get_path("stdlib")))]
    return _asked_by_summary(f"source of Python {platform.python_version()}", functions)


def _functions(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield place, first sentence of the docstring, and source of each documented function."""
    for path in sorted(folder.rglob("*.py")):
        if not _NO_SOURCE.isdisjoint(path.relative_to(folder).parts):
            continue
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(node.body) > 1:
                said = ast.get_docstring(node)
                if said:
                    node.body = node.body[1:]
                    sentence = " ".join(said.split()).partition(". ")[0]
                    place = f"{path.relative_to(folder)}:{node.lineno}"
                    yield place, sentence, ast.unparse(node)


def read_package(name: str) -> Collection:
    """Return the documented functions and classes of an installed package.

    The summary of a docstring asks for its entry, unless others have the same one; the entry's
    name, its signature and the rest of the docstring are the passage.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entries = [entry for entry in _entries(name) if not is_pointer(entry[1])]
    return _asked_by_summary(f"{name} {importlib.import_module(name).__version__}", entries)


def _asked_by_summary(name: str, entries: Sequence[tuple[str, str, str]]) -> Collection:
    """Return entries of an id, a summary and a passage, asked for by what only they are about."""
    shared = Counter(summary for _, summary, _ in entries)
    queries = {
        id: summary
        for id, summary, _ in entries
        if shared[summary] == 1 and len(summary.split()) >= ASKING
    }
    return Collection(
        name,
        [Passage(id, passage) for id, _, passage in entries],
        queries,
        {id: {id: 1} for id in queries},
    )


def _entries(package: str) -> Iterator[tuple[str, str, str]]:
    """Yield qualified name, summary and passage of each entry once, by its shortest name."""
    found: dict[int, tuple[str, object]] = {}
    for module in _modules(package):
        for name in getattr(module, "__all__", None) or dir(module):
            value = getattr(module, name, None)
            home = getattr(value, "__module__", None) or ""
            if name.startswith("_") or not callable(value) or home.partition(".")[0] != package:
                continue
            qualified = f"{module.__name__}.{name}"
            shortest, _ = found.get(id(value), (qualified, value))
            found[id(value)] = (min(shortest, qualified, key=lambda n: (len(n), n)), value)
    for qualified, value in sorted(found.values(), key=lambda entry: entry[0]):
        signature, text = split_docstring(getattr(value, "__name__", ""), value)
        summary, _, rest = text.partition("\n\n")
        if rest:
            yield qualified, " ".join(summary.split()), f"{qualified}{signature}\n\n{rest}"


def _modules(package: str) -> Iterator[ModuleType]:
    """Yield a package's public modules that can be imported here."""
    top = importlib.import_module(package)
    yield top
    for found in pkgutil.iter_modules(top.__path__, f"{package}."):
        if found.name.rpartition(".")[2] in ("conftest", "tests") or "._" in found.name:
            continue
        try:
            if found.ispkg:
                yield from _modules(found.name)
            else:
                yield importlib.import_module(found.name)
        except ImportError:
            continue


def lines(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]

"""``posrag doctor``: what is installed, and whether what was saved can be read."""

from __future__ import annotations

import argparse
import math
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from shared_core import HybridIndex, PositionProfile, __version__
from shared_core.cli import collection, options
from shared_core.cli.console import Console, writing_results
from shared_core.evaluation.interim import bound_text
from shared_core.index.storage import MANIFEST
from shared_core.native import kernels
from shared_core.sensitivity.records import profile_folder
from shared_core.wording import counted

DESCRIPTION = (
    "Show versions, whether the kernels are compiled, and which extras are installed and what each "
    "enables; and check a saved index, a profile or a database."
)

EXTRAS = {
    "langchain": (("langchain_core",), "LangChain"),
    "llamaindex": (("llama_index",), "LlamaIndex"),
    "models": (
        ("torch", "transformers", "sentence_transformers"),
        "local models and embeddings; demo, attention",
    ),
    "gguf": (("gguf", "accelerate"), "local models in GGUF files"),
    "openai": (("langchain_openai",), "openai:NAME endpoints"),
    "eval": (
        ("rich", "matplotlib", "ir_measures", "jinja2", "pydantic"),
        "the commands, their reports and figures",
    ),
    "postgres": (("psycopg",), "passages in PostgreSQL"),
    "qdrant": (("qdrant_client",), "passages in Qdrant"),
    "lancedb": (("lancedb",), "passages in LanceDB"),
    "milvus": (("pymilvus",), "passages in Milvus"),
}
"""Extra -> the modules it brings, and what they enable."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what can be checked."""
    parser.add_argument("what", nargs="?", metavar="WHAT", help="a folder of an index or profiles, "
        "a profile's file or model, or the address of a database (see posrag engine)")  # fmt: skip
    options.add(parser.add_argument_group("data"), "collection")


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0, or 1 if a collection or a folder of profiles has something amiss."""
    if arguments.what is None:
        with writing_results():
            for line in _installed():
                print(line)  # noqa: T201 -- rich may be missing
        return 0
    if "://" in arguments.what:
        return collection.show(arguments.what, arguments.collection)
    console = Console()
    folder = Path(arguments.what)
    if folder.is_dir():
        files = sorted(folder.glob("*.json"))
        if files and folder / MANIFEST not in files:
            return max([_check(console, file) for file in files])
        index = HybridIndex.load(arguments.what)
        console.show(f"an index of {counted(len(index), 'passage')}; its checksums hold")
        return 0
    profile = PositionProfile.load(arguments.what)
    console.show(_described(profile))
    shown = "undefined" if math.isnan(profile.psi) else bound_text(profile.psi)
    console.show(f"position sensitivity index {shown}; {profile.date or profile.source}")
    return 0


def _check(console: Console, file: Path) -> int:
    """Show a profile of a folder, or why it is none, in one line; return 0, or 1 if it is none."""
    try:
        console.show(f"{file.name}: {_described(PositionProfile.load(file))}", whole=True)
    except (OSError, ValueError) as error:
        console.show(str(error), whole=True)
        return 1
    return 0


def _described(profile: PositionProfile) -> str:
    asked = counted(profile.n, "question") if profile.n else "an unknown number of questions"
    lengths = ", ".join(str(each.k) for each in profile.by_length)
    return f"a profile of {profile.model}: {profile.measure} by {asked}, k = {lengths}"


def _installed() -> Iterator[str]:
    by = "compiled" if kernels.built else "by numpy, which is slower: none are compiled here"
    yield f"posrag {__version__}, Python {platform.python_version()}, kernels {by}"
    yield f"numpy {version('numpy')}, faiss-cpu {_version('faiss-cpu')}"
    yield ""
    for extra, (modules, enables) in EXTRAS.items():
        missing = ", ".join(module for module in modules if find_spec(module) is None)
        lacks = f"pip install 'posrag[{extra}]' ({missing} missing)" if missing else "yes"
        yield f"{extra:<11} {enables:<46} {lacks}"
    folder = profile_folder()
    yield ""
    yield f"profiles    {counted(len([*folder.glob('*.json')]), 'file')} in {folder}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "of another build"

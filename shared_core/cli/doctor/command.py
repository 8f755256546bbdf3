"""The ``doctor`` subcommand: versions, extras, and a look at what was saved."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from shared_core import HybridIndex, PositionProfile, __version__
from shared_core.cli import collection_report as report
from shared_core.cli import filling, options
from shared_core.cli.console import Console
from shared_core.native import kernels
from shared_core.sensitivity.records import profile_folder
from shared_core.wording import counted

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


def add_parser(subcommands: options.Subparsers, purpose: str) -> None:
    """Add ``doctor`` and its options."""
    parser = subcommands.add_parser(
        "doctor",
        help=purpose,
        description="Show versions, whether the kernels are compiled, and which extras are "
        "installed and what each enables; and check a saved index, a profile or a database.",
    )
    add = parser.add_argument
    add("what", nargs="?", metavar="WHAT", help="a folder of a saved index, a profile's file or "
        "model, or the address of a database (see posrag engine)")  # fmt: skip
    add("--collection", default="posrag", help=f"{filling.COLLECTION_HELP} (default: posrag)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0, or 1 if a database holds something that is amiss."""
    if arguments.what is None:
        for line in _installed():
            print(line)  # noqa: T201 -- rich may be missing
        return 0
    console = Console()
    if "://" in arguments.what:
        with filling.opened(arguments.what, arguments.collection) as engine:
            found = engine.describe() or {"passages": 0}
        for line in report.lines(found):
            console.show(line)
        console.show(report.advice(found) or "Nothing is amiss.")
        return 1 if report.advice(found) else 0
    if Path(arguments.what).is_dir():
        index = HybridIndex.load(arguments.what)
        console.show(f"an index of {counted(len(index), 'passage')}; its checksums hold")
        return 0
    profile = PositionProfile.load(arguments.what)
    asked = counted(profile.n, "question") if profile.n else "an unknown number of questions"
    lengths = ", ".join(str(each.k) for each in profile.by_length)
    console.show(f"a profile of {profile.model}: {profile.measure} by {asked}, k = {lengths}")
    console.show(f"position sensitivity index {profile.psi:.3f}; {profile.date or profile.source}")
    return 0


def _installed() -> Iterator[str]:
    by = "compiled" if kernels.built else "by numpy, which is slower: none are compiled here"
    yield f"posrag {__version__}, Python {platform.python_version()}, kernels {by}"
    yield f"numpy {version('numpy')}, faiss-cpu {_version('faiss-cpu')}"
    yield ""
    for extra, (modules, enables) in EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
        lacks = (
            f"pip install 'posrag[{extra}]' ({', '.join(missing)} missing)" if missing else "yes"
        )
        yield f"{extra:<11} {enables:<46} {lacks}"
    folder = profile_folder()
    profiles = [*folder.glob("*.json")]
    yield ""
    yield f"profiles    {counted(len(profiles), 'file')} in {folder}"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "of another build"

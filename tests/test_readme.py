"""What the README and the pages of `docs` show runs as it is printed, against real parts."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

import langchain_posrag
import llamaindex_posrag
from instruments.frameworks import LangChainEmbeddings
from shared_core import CAUS, HuggingFaceModel, HybridIndex, Passage
from shared_core.cli.embedding import EmbeddingModel, default_model
from shared_core.cli.main import COMMANDS, main
from shared_core.comparison import read_comparison
from shared_core.sensitivity.questions import read_questions
from tests.adapters.drivers import LlamaIndexModel

README = Path(__file__).parents[1] / "README.md"
PAGES = [README, *sorted(README.parent.glob("docs/**/*.md"))]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
SNIPPETS = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", TEXT, re.DOTALL)
"""Code, and what it is shown to print."""
LINES = re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)
TEXTS = [
    *("resize an image tensor", "load a checkpoint", "sum along a dimension", "a query"),
    *("save a model", "sort a tensor", "mask the padding", "drop some units", "warm up the rate"),
    "clip the gradients",
]


@pytest.fixture(scope="module")
def embeddings() -> LangChainEmbeddings:
    """The real all-MiniLM-L6-v2: to anything less, no question is foreign to the corpus."""
    return LangChainEmbeddings(EmbeddingModel(default_model()).embed)


@pytest.fixture
def names(
    embeddings: LangChainEmbeddings, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """What the README takes for granted: somebody's working chain and query engine."""
    docs = [
        Document(id=str(at), page_content=text, metadata={"lang": "en"})
        for at, text in enumerate(TEXTS)
    ]
    nodes = [TextNode(id_=str(at), text=text) for at, text in enumerate(TEXTS)]
    store = InMemoryVectorStore(embeddings)
    store.add_documents(docs)
    embed_model = LlamaIndexModel(documents=embeddings.embed_query)
    monkeypatch.setattr(Settings, "_llm", MockLLM())
    readers = Path(__file__).parents[1] / "instruments"
    return {
        "local_model": HuggingFaceModel.from_pretrained(readers / "uniform", max_new_tokens=4),
        "address": postgres,
        "docs": docs,
        "chunks": [
            Document(page_content=text, metadata={"doc_id": "guide", "chunk_id": at})
            for at, text in enumerate(TEXTS)
        ],
        "more": [Document(id="more", page_content="one more")],
        "embeddings": embeddings,
        "store": store,
        "your_retriever": store.as_retriever(),
        "format_docs": lambda found: "\n".join(doc.page_content for doc in found),
        "prompt": ChatPromptTemplate.from_template("{context}\n{question}"),
        "llm": FakeListChatModel(responses=["answer"]),
        "nodes": nodes,
        "more_nodes": [TextNode(text="one more")],
        "embed_model": embed_model,
        "index": VectorStoreIndex(nodes, embed_model=embed_model),
    }


@pytest.mark.parametrize(("snippet", "shown"), SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippet_runs(
    snippet: str,
    shown: str,
    names: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, str(README), "exec", dont_inherit=True), names)
    assert capsys.readouterr().out == shown
    if hasattr(names.get("engine"), "query"):
        assert names["engine"].query("resize an image").source_nodes
    if "spans" in names:
        assert names["spans"][0].page_content == "\n".join(TEXTS)
    if "asked" in names:
        assert names["asked"].decision["reason"]
    if "found" in names:
        assert {"answer", "order", "scores", "rounds"} <= names["found"].keys()
    elif "chain" in names and not shown:
        assert names["chain"].invoke("resize an image").content == "answer"


async def test_the_service_answers_sixteen_clients_at_once(embeddings: LangChainEmbeddings) -> None:
    """Each its own question: a text of the corpus, which is then found first."""
    (snippet,) = (code for code, _ in SNIPPETS if "FastAPI()" in code)
    names: dict[str, Any] = {"docs": [*map(Document, TEXTS)], "embeddings": embeddings}
    exec(compile(snippet, "recipes.md", "exec", dont_inherit=True), names)
    questions = [*TEXTS, *TEXTS[:6]]
    transport = httpx.ASGITransport(app=names["app"])
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        asked = (client.get("/search", params={"question": question}) for question in questions)
        answers = [answer.json() for answer in await asyncio.gather(*asked)]
    assert [answer[0] for answer in answers] == questions
    assert [len({*answer}) for answer in answers] == [5] * 16


GIVEN = """
from collections.abc import Callable, Sequence

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import BaseNode
from langchain_posrag import HuggingFaceModel

local_model: HuggingFaceModel
address: str
docs: list[Document]
chunks: list[Document]
more: list[Document]
embeddings: Embeddings
store: VectorStore
your_retriever: BaseRetriever
format_docs: Callable[[Sequence[Document]], str]
prompt: ChatPromptTemplate
llm: BaseChatModel
nodes: list[BaseNode]
more_nodes: list[BaseNode]
embed_model: BaseEmbedding
index: VectorStoreIndex
"""
"""The types of `names`, as users have them."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "checker",
    [
        ["mypy", "--strict", "--cache-dir", "cache", "."],
        ["basedpyright", "--level", "error", "--pythonpath", sys.executable],
    ],
    ids=["mypy", "pyright"],
)
def test_a_type_checker_accepts_the_snippets(checker: list[str], tmp_path: Path) -> None:
    (tmp_path / "given.py").write_text(GIVEN)
    for number, (snippet, _) in enumerate(SNIPPETS):
        (tmp_path / f"snippet_{number}.py").write_text(f"from given import *\n{snippet}")
    (tmp_path / "mypy.ini").write_text("[mypy]\n[mypy-retrivex]\nignore_missing_imports = true\n")
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    command = [sys.executable, "-m", *checker]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_placement_that_contributors_are_shown_works() -> None:
    """Of any number of passages, and under any ``placement=``."""
    text = README.with_name("CONTRIBUTING.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(snippet, "CONTRIBUTING.md", "exec"), names)
    assert names.get("__doc__"), "the linter asks for one of every module"
    last_two = names["LastTwo"]()
    assert [last_two(k) for k in (0, 1, 2, 5)] == [(), (0,), (1, 0), (2, 3, 4, 1, 0)]
    assert CAUS(placement=last_two, psi="always").decide(3).slots == (2, 1, 0)


def test_there_are_snippets() -> None:
    """And two of them show what they print."""
    assert len(SNIPPETS) >= 8
    assert sum(bool(shown) for _, shown in SNIPPETS) == 2


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Those to files of the project, and the tests that it names."""
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    ours = [link for link in links if "://" not in link]
    assert [link for link in ours if not (page.parent / link).exists()] == []
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", page.read_text(encoding="utf-8"))
    held = {file: (README.parent / file).read_text(encoding="utf-8") for file, _ in named}
    assert [name for file, name in named if name and f"def {name}(" not in held[file]] == []


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Links lead somewhere, every page is in the navigation, every public name in the reference."""
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=README.parent, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    packed = (tmp_path / "objects.inv").read_bytes().split(b"\n", 4)[4]
    described = {line.split(" ", 1)[0] for line in zlib.decompress(packed).decode().splitlines()}
    names = {name.rpartition(".")[2] for name in described}
    assert {*langchain_posrag.__all__, *llamaindex_posrag.__all__} - names == set()
    options, commands = (
        (tmp_path / "reference" / page / "index.html").read_text(encoding="utf-8")
        for page in ("options", "commands")
    )
    given = {*langchain_posrag.CAUSRetriever.model_fields} - {"name", "tags", "metadata"}
    assert [name for name in given if options.count(f"<code>{name}</code></td>") < 2] == []
    assert [name for name in COMMANDS if f"example: posrag {name}" not in commands] == []


def test_the_files_that_are_written_are_described(tmp_path: Path) -> None:
    """Of an index; the tables of most other files are made of the fields of their class."""
    page = (README.parent / "docs" / "reference" / "files.md").read_text(encoding="utf-8")
    index = HybridIndex()
    index.add([Passage("a", "a word", source=1)], [[1.0]])
    index.save(tmp_path, encode_source=str)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    passage = json.loads((tmp_path / manifest["data"] / "passages.jsonl").read_text())
    written = {*manifest, *manifest["bm25"], *manifest["dense"], *manifest["files"], *passage}
    assert [name for name in written if f"`{name}`" not in page] == []


def test_the_lines_of_the_files_of_questions_are_read(tmp_path: Path) -> None:
    """The first by `posrag compare`, the second by `posrag probe`, and by `posrag compare`, too."""
    ranked, rotated = (tmp_path / name for name in ("ranked.jsonl", "rotated.jsonl"))
    for path, line in zip((ranked, rotated), LINES, strict=True):
        assert f"--data {path.name}" in TEXT
        path.write_text(line)
    (question,) = read_questions(rotated)
    assert len(question.passages(0, k=3)) == 3
    for path, passages in ((ranked, 2), (rotated, 3)):
        data = read_comparison(path)
        assert len(data.passages) == passages
        assert len(data.questions[0].gold) == 1


@pytest.mark.slow
@pytest.mark.parametrize("command", ["compare", "probe", "attention"])
def test_what_a_command_is_said_to_print_it_prints(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All but what an ellipsis stands for, and where a line is broken."""
    monkeypatch.chdir(README.parent)
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path / "profiles"))
    monkeypatch.setenv("COLUMNS", "100")
    line, said = _printed(command)
    arguments = shlex.split(line.replace("--output report", f"--output {tmp_path / 'report'}"))
    assert main(arguments[1:]) == 0
    printed = " ".join(word for word in capsys.readouterr().out.split() if word.strip("─"))
    at = 0
    for part in said.split("…"):
        words = " ".join(part.split())
        assert words in printed[at:]
        at = printed.index(words, at) + len(words)


def _printed(command: str) -> tuple[str, str]:
    """Return a command on a reader of the tests, and the text after it."""
    named = re.compile(rf"^posrag {command} (?:--data )?instruments/.*", re.M)
    (line,) = named.findall(TEXT)
    rest = TEXT.partition(line)[2].removeprefix("\n```\n\n```text\n")
    return line, rest.partition("```")[0]

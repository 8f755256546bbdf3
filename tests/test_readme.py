"""The README's Python runs as it stands, against real parts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.schema import TextNode

from langchain_posrag.demo import FunctionEmbeddings
from shared_core import CAUS, HuggingFaceModel
from shared_core.cli.embedding import EmbeddingModel, default_model

README = Path(__file__).parents[1] / "README.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
TEXTS = [
    *("resize an image tensor", "load a checkpoint", "sum along a dimension", "a query"),
    *("save a model", "sort a tensor", "mask the padding", "drop some units", "warm up the rate"),
    "clip the gradients",
]


@pytest.fixture(scope="module")
def embeddings() -> FunctionEmbeddings:
    """The real all-MiniLM-L6-v2: to anything less, no question is foreign to the corpus."""
    return FunctionEmbeddings(EmbeddingModel(default_model()).embed)


@pytest.fixture
def names(embeddings: FunctionEmbeddings, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the README takes for granted: somebody's working chain and query engine."""
    docs = [
        Document(id=str(at), page_content=text, metadata={"lang": "en"})
        for at, text in enumerate(TEXTS)
    ]
    nodes = [TextNode(id_=str(at), text=text) for at, text in enumerate(TEXTS)]
    store = InMemoryVectorStore(embeddings)
    store.add_documents(docs)
    embed_model = MockEmbedding(embed_dim=8)
    monkeypatch.setattr(Settings, "_llm", MockLLM())
    readers = Path(__file__).parent / "readers"
    return {
        "local_model": HuggingFaceModel.from_pretrained(readers / "uniform", max_new_tokens=4),
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
        "prompt": ChatPromptTemplate.from_template("{context}"),
        "llm": FakeListChatModel(responses=["answer"]),
        "nodes": nodes,
        "embed_model": embed_model,
        "index": VectorStoreIndex(nodes, embed_model=embed_model),
    }


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippet_runs(
    snippet: str, names: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(snippet, str(README), "exec"), names)
    if "engine" in names:
        assert len(names["engine"].query("resize an image").source_nodes) == len(TEXTS)
    if "documents" in names:
        assert {"dense", "sparse", "slot", "reason"} <= names["documents"][0].metadata[
            "posrag"
        ].keys()
    if "spans" in names:
        assert names["spans"][0].page_content == "\n".join(TEXTS)
    if "asked" in names:
        assert names["asked"].decision["reason"]
    if "found" in names:
        assert {"answer", "order", "scores", "rounds"} <= names["found"].keys()
    elif "chain" in names:
        assert names["chain"].invoke("resize an image").content == "answer"


def test_the_placement_that_contributors_are_shown_works() -> None:
    """Of any number of passages, and under any ``placement=``."""
    text = README.with_name("CONTRIBUTING.md").read_text(encoding="utf-8")
    (snippet,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(snippet, "CONTRIBUTING.md", "exec"), names)
    last_two = names["LastTwo"]()
    assert [last_two(k) for k in (0, 1, 2, 5)] == [(), (0,), (1, 0), (2, 3, 4, 1, 0)]
    assert CAUS(placement=last_two, psi="always").placed(3)[0] == (2, 1, 0)


def test_readme_has_snippets() -> None:
    assert len(SNIPPETS) >= 4

"""LangChain's part of ``posrag demo``: a chain, and the order of passages in its prompt."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnablePassthrough

from langchain_posrag.retrievers import CAUSRetriever
from shared_core.demo import DemoTask, EmbedTexts, ids_in_prompt, mark


class FunctionEmbeddings(Embeddings):
    """A function from texts to vectors as an embedding model."""

    def __init__(self, embed: EmbedTexts) -> None:
        self._embed = embed

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector per text."""
        vectors: list[list[float]] = self._embed(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, embedded like a text."""
        return self.embed_documents([text])[0]


def _format_docs(documents: list[Document]) -> str:
    return "\n\n".join(f"{mark(str(one.id))}\n{one.page_content}" for one in documents)


def order(task: DemoTask) -> list[str]:
    """Return the ids in the order in which a LangChain chain put them into its prompt."""
    options: Any = {field.name: getattr(task.caus, field.name) for field in fields(task.caus)}
    retriever = CAUSRetriever.from_documents(
        [Document(passage.text, id=passage.id) for passage in task.passages],
        FunctionEmbeddings(task.embed),
        **options,
    )
    prompt = PromptTemplate.from_template("{context}\n\nQuestion: {question}\nAnswer:")
    chain = {"context": retriever | _format_docs, "question": RunnablePassthrough()} | prompt
    return ids_in_prompt(chain.invoke(task.query).to_string())

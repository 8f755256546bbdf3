"""Steps from documents to documents, in a pipe or in a compression pipeline."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable, run_in_executor
from typing_extensions import TypedDict, override

from langchain_posrag.documents import check_documents, detail_of
from langchain_posrag.options import refuse_arguments

Given = TypeVar("Given")


class Step(RunnableSerializable[Given, list[Document]], BaseDocumentCompressor):
    """A compressor that is a step of a pipe, too; its options are its fields."""

    @abstractmethod
    def _compressed(self, input: Given) -> list[Document]: ...

    @abstractmethod
    async def _acompressed(self, input: Given) -> list[Document]: ...

    @override
    def invoke(
        self, input: Given, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return new documents by slot."""
        refuse_arguments(self, kwargs)
        return self._call_with_config(self._compressed, input, config)

    @override
    async def ainvoke(
        self, input: Given, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async version of `invoke`."""
        refuse_arguments(self, kwargs)
        return await self._acall_with_config(self._acompressed, input, config)


class DocumentStep(Step[Sequence[Document]], BaseDocumentTransformer):
    """Takes documents and returns documents, slot by slot."""

    @abstractmethod
    def _processed(self, documents: Sequence[Document]) -> list[Document]: ...

    @override
    def _compressed(self, input: Sequence[Document]) -> list[Document]:
        return self._processed(input)

    @override
    async def _acompressed(self, input: Sequence[Document]) -> list[Document]:
        return await run_in_executor(None, self._processed, input)

    @override
    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """Return new documents by slot."""
        refuse_arguments(self, kwargs)
        return self._processed(documents)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return new documents by slot; the query is ignored."""
        return self._processed(documents)


class QuestionAndDocuments(TypedDict):
    """Input of a `QueryStep`."""

    question: str
    documents: list[Document]


class QueryStep(Step[QuestionAndDocuments | Sequence[Document]]):
    """Takes documents and the question that they were found for.

    The input is ``{"question": str, "documents": [Document, ...]}``, or documents alone whose
    explanation names the question, as those of a `CAUSRetriever` over its own index do; ValueError
    if they name none, or several.
    """

    @override
    def _compressed(self, input: QuestionAndDocuments | Sequence[Document]) -> list[Document]:
        question, documents = _asked(self, input)
        return [*self.compress_documents(documents, question)]

    @override
    async def _acompressed(
        self, input: QuestionAndDocuments | Sequence[Document]
    ) -> list[Document]:
        question, documents = _asked(self, input)
        return [*await self.acompress_documents(documents, question)]


def _asked(step: object, given: Any) -> tuple[str, list[Document]]:
    """Return the question and the documents of an input."""
    if isinstance(given, Mapping) and {"question", "documents"} <= given.keys():
        return given["question"], check_documents(given["documents"])
    documents = check_documents(given)
    questions = {detail_of(document).get("query") for document in documents}
    if len(questions) == 1 and isinstance(question := questions.pop(), str):
        return question, documents
    if not documents:
        return "", documents
    raise ValueError(
        f"{type(step).__name__} needs the question, which these documents do not tell: pipe "
        '{"question": RunnablePassthrough(), "documents": retriever} into it'
    )

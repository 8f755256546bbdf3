"""Steps from documents to documents, in a pipe or in a compression pipeline."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict
from typing_extensions import TypedDict, override

from langchain_posrag.documents import check_documents, detail_of

Given = TypeVar("Given")


class Step(RunnableSerializable[Given, list[Document]], BaseDocumentCompressor):
    """A compressor that is a step of a pipe, too; its options are its fields."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    @abstractmethod
    def _asked(self, input: Given) -> tuple[Sequence[Document], str]:
        """Return the documents and the question of an input."""

    @override
    def invoke(
        self, input: Given, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return new documents by slot."""

        def compressed(given: Given) -> list[Document]:
            return [*self.compress_documents(*self._asked(given))]

        return self._call_with_config(compressed, input, config, **kwargs)

    @override
    async def ainvoke(
        self, input: Given, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async version of `invoke`."""

        async def compressed(given: Given) -> list[Document]:
            return [*await self.acompress_documents(*self._asked(given))]

        return await self._acall_with_config(compressed, input, config, **kwargs)


class DocumentStep(Step[Sequence[Document]], BaseDocumentTransformer):
    """Takes documents and returns documents, slot by slot, whatever the question."""

    @override
    def _asked(self, input: Sequence[Document]) -> tuple[Sequence[Document], str]:
        return input, ""

    @override
    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """Return new documents by slot."""
        return [*self.compress_documents(documents, "", **kwargs)]


class QuestionAndDocuments(TypedDict):
    """Input of a `QueryStep`."""

    question: str
    documents: list[Document]


def asked(given: Any) -> tuple[list[Document], str]:
    """Return the documents and the question of an input; ValueError if it does not hold them."""
    if not isinstance(given, Mapping) or not {"question", "documents"} <= given.keys():
        got = sorted(given) if isinstance(given, Mapping) else type(given).__name__
        raise ValueError(f"the input must be a dict with 'question' and 'documents', got {got}")
    if not isinstance(given["question"], str):
        got = type(given["question"]).__name__
        raise ValueError(f"'question' must be a string, got {got}")
    return check_documents(given["documents"]), given["question"]


class QueryStep(Step[QuestionAndDocuments | Sequence[Document]]):
    """Takes documents and the question that they were found for.

    The input is ``{"question": str, "documents": [Document, ...]}``, or documents alone whose
    explanation names the question, as those of a `CAUSRetriever` over its own index do; ValueError
    if they name none, or several.
    """

    @override
    def _asked(
        self, input: QuestionAndDocuments | Sequence[Document]
    ) -> tuple[Sequence[Document], str]:
        if isinstance(input, Mapping):
            return asked(input)
        documents = check_documents(input)
        questions = {detail_of(document).get("query") for document in documents}
        if len(questions) == 1 and isinstance(question := questions.pop(), str):
            return documents, question
        if not documents:
            return documents, ""
        raise ValueError(
            f"{type(self).__name__} needs the question, which these documents do not tell: pipe "
            '{"question": RunnablePassthrough(), "documents": retriever} into it'
        )

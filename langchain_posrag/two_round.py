"""The two rounds of a local model as a Runnable: question and documents in, answer out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable, run_in_executor
from pydantic import ConfigDict
from typing_extensions import TypedDict, override

from langchain_posrag.attention import AttentionArguments, AttentionOptions
from langchain_posrag.documents import copy_of
from langchain_posrag.options import refuse_arguments
from shared_core.attention.answering import Case, PlacedAnswer
from shared_core.generation.local_model import ModelLike


class Asked(TypedDict):
    """Input of `TwoRoundChain`."""

    question: str
    documents: list[Document]


class Answered(TypedDict):
    """Output of `TwoRoundChain`; see there."""

    answer: str
    first_answer: str
    documents: list[Document]
    order: list[int]
    scores: list[float]
    rounds: int


class TwoRoundChain(AttentionOptions, RunnableSerializable[Asked, Answered]):
    """Answer a question on a local model, place the documents by its attention, and answer again.

    The input is ``{"question": str, "documents": [Document, ...]}``, as a retriever in a pipe
    makes it. The output holds

    ``answer``, ``first_answer``
        the final answer, and that of the first round;
    ``documents``
        copies in their final order, each with ``rank``, ``slot``, ``score``, ``placement`` and
        ``estimator`` under ``metadata["posrag"]``;
    ``order``
        slot -> document of the input;
    ``scores``
        relevance of each document of the input, higher is better;
    ``rounds``
        1 if the documents were in their best order already, 2 otherwise.

    Without documents the model is asked without context. It runs in this process: the async
    methods run it in a thread, and a batch is one run over all its inputs.

    Parameters
    ----------
    model, estimator, placement, template
        As in `AttentionOptions`.

    Raises
    ------
    ValueError
        If an option is unknown (pydantic's ``ValidationError`` is one), or an input is not as
        above.
    TypeError
        If a call gives an argument: the options are the fields.
    GenerationError
        At first use, if the model cannot be loaded or its attention cannot be read.

    Examples
    --------
    ``{"question": RunnablePassthrough(), "documents": retriever} | TwoRoundChain(model)``
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    def __init__(self, model: ModelLike, **options: Unpack[AttentionArguments]) -> None:
        super().__init__(model=model, **options)

    @override
    def invoke(self, input: Asked, config: RunnableConfig | None = None, **kwargs: Any) -> Answered:
        """Answer one question."""
        refuse_arguments(self, kwargs)
        return self._call_with_config(self._answer, input, config)

    @override
    async def ainvoke(
        self, input: Asked, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Answered:
        """Answer one question in a thread."""
        refuse_arguments(self, kwargs)

        async def answer(input: Asked) -> Answered:
            return await run_in_executor(None, self._answer, input)

        return await self._acall_with_config(answer, input, config)

    @override
    def batch(
        self,
        inputs: list[Asked],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Answered]:
        """Answer many questions, `HuggingFaceModel.batch_size` at a time."""
        refuse_arguments(self, kwargs)
        many = self._answer_each if return_exceptions else self._answer_all
        return self._batch_with_config(many, inputs, config, return_exceptions=return_exceptions)

    @override
    async def abatch(
        self,
        inputs: list[Asked],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Answered]:
        """Async version of `batch`, in a thread."""
        refuse_arguments(self, kwargs)
        many = self._answer_each if return_exceptions else self._answer_all

        async def answer(inputs: list[Asked]) -> list[Exception | Answered]:
            return await run_in_executor(None, many, inputs)

        return await self._abatch_with_config(
            answer, inputs, config, return_exceptions=return_exceptions
        )

    def _answer(self, input: Asked) -> Answered:
        return self._answered([input])[0]

    def _answer_all(self, inputs: list[Asked]) -> list[Exception | Answered]:
        return [*self._answered(inputs)]

    def _answer_each(self, inputs: list[Asked]) -> list[Exception | Answered]:
        """Answer each input that can be; return the error of one that cannot in its place."""
        self.model.loaded  # noqa: B018 - without a model every input would fail
        try:
            return self._answer_all(inputs)
        except Exception as error:
            if len(inputs) == 1:
                return [error]
        half = len(inputs) // 2
        return [*self._answer_each(inputs[:half]), *self._answer_each(inputs[half:])]

    def _answered(self, inputs: Sequence[Asked]) -> list[Answered]:
        asked = [_checked(given) for given in inputs]
        cases = [
            Case(question=question, documents=[each.page_content for each in documents])
            for question, documents in asked
        ]
        found = self.method.answer(cases)
        return [
            self._output(documents, placed)
            for (_, documents), placed in zip(asked, found, strict=True)
        ]

    def _output(self, documents: Sequence[Document], placed: PlacedAnswer) -> Answered:
        details = self.method.explain(placed)
        return {
            "answer": placed.answer,
            "first_answer": placed.first_answer,
            "documents": [
                copy_of(documents[at], why) for at, why in zip(placed.order, details, strict=True)
            ],
            "order": list(placed.order),
            "scores": list(placed.scores),
            "rounds": placed.rounds,
        }


def _checked(given: Any) -> tuple[str, Sequence[Document]]:
    """Return question and documents of an input."""
    if not isinstance(given, Mapping):
        raise ValueError(
            f"the input must be a dict with 'question' and 'documents', got {type(given).__name__}"
        )
    for key in ("question", "documents"):
        if key not in given:
            raise ValueError(f"the input has no {key!r}, only {', '.join(map(repr, given))}")
    question, documents = given["question"], given["documents"]
    if not isinstance(question, str):
        raise ValueError(f"'question' must be a string, got {type(question).__name__}")
    if not isinstance(documents, Sequence) or isinstance(documents, str):
        raise ValueError(f"'documents' must be a list, got {type(documents).__name__}")
    for each in documents:
        if not isinstance(each, Document):
            raise ValueError(f"'documents' must hold Documents only, got {type(each).__name__}")
    return question, documents

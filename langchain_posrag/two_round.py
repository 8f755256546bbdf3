"""The two rounds of a local model as a Runnable: question and documents in, answer out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Unpack

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable, run_in_executor
from pydantic import ConfigDict
from typing_extensions import TypedDict, override

from langchain_posrag.attention import AttentionOptions, AttentionStepArguments
from langchain_posrag.document_step import QuestionAndDocuments
from langchain_posrag.documents import check_documents
from langchain_posrag.options import refuse_arguments
from shared_core.attention import Case
from shared_core.generation.local_model import ModelLike


class Answered(TypedDict):
    """Output of `TwoRoundChain`; see there."""

    answer: str
    first_answer: str
    documents: list[Document]
    order: list[int]
    scores: list[float]
    rounds: int


class TwoRoundChain(AttentionOptions, RunnableSerializable[QuestionAndDocuments, Answered]):
    """Answer a question on a local model, place the documents by its attention, and answer again.

    The input is ``{"question": str, "documents": [Document, ...]}``, as a retriever in a pipe
    makes it. The output holds

    ``answer``, ``first_answer``
        the final answer, and that of the first round;
    ``documents``
        copies in their final order, each with ``rank``, ``slot``, ``score``, ``placement`` and
        ``estimator`` under ``metadata["posrag"]``, unless `include_scores` is False;
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
    model, estimator, placement, template, include_scores
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

    def __init__(self, model: ModelLike, **options: Unpack[AttentionStepArguments]) -> None:
        super().__init__(model=model, **options)

    @override
    def invoke(
        self, input: QuestionAndDocuments, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Answered:
        """Answer one question."""
        refuse_arguments(self, kwargs)
        return self._call_with_config(lambda one: self._answered([one])[0], input, config)

    @override
    def batch(
        self,
        inputs: list[QuestionAndDocuments],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Answered]:
        """Answer many questions, `HuggingFaceModel.batch_size` at a time."""
        refuse_arguments(self, kwargs)
        many: Any = self._answer_each if return_exceptions else self._answered
        return self._batch_with_config(many, inputs, config, return_exceptions=return_exceptions)

    @override
    async def abatch(
        self,
        inputs: list[QuestionAndDocuments],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Answered]:
        """Async version of `batch`, in a thread."""
        run = partial(self.batch, inputs, config, return_exceptions=return_exceptions, **kwargs)
        return await run_in_executor(None, run)

    def _answer_each(self, inputs: list[QuestionAndDocuments]) -> list[Exception | Answered]:
        """Answer each input that can be; return the error of one that cannot in its place."""
        self.model.loaded  # noqa: B018 - without a model every input would fail
        try:
            return [*self._answered(inputs)]
        except Exception as error:
            if len(inputs) == 1:
                return [error]
        return [answer for each in inputs for answer in self._answer_each([each])]

    def _answered(self, inputs: Sequence[QuestionAndDocuments]) -> list[Answered]:
        asked = [_checked(given) for given in inputs]
        cases = [
            Case(question=question, documents=[each.page_content for each in documents])
            for question, documents in asked
        ]
        placer = self.placer
        return [
            {
                "answer": found.answer,
                "first_answer": found.first_answer,
                "documents": self._placed(documents, placer.slots(found)),
                "order": list(found.order),
                "scores": list(found.scores),
                "rounds": found.rounds,
            }
            for (_, documents), found in zip(asked, placer.answer(cases), strict=True)
        ]


def _checked(given: Any) -> tuple[str, list[Document]]:
    """Return question and documents of an input."""
    if not isinstance(given, Mapping) or not {"question", "documents"} <= given.keys():
        got = sorted(given) if isinstance(given, Mapping) else type(given).__name__
        raise ValueError(f"the input must be a dict with 'question' and 'documents', got {got}")
    if not isinstance(given["question"], str):
        got = type(given["question"]).__name__
        raise ValueError(f"'question' must be a string, got {got}")
    return given["question"], check_documents(given["documents"])

"""Placement as a step of its own: in a pipe, or in a compression pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer, Document
from langchain_core.runnables import RunnableConfig, RunnableSerializable
from pydantic import ConfigDict
from typing_extensions import override

from langchain_posrag.documents import DETAIL, copy_of
from langchain_posrag.options import PlacementArguments, PlacementOptions, Psi, refuse_arguments
from shared_core import Placement
from shared_core.explanations import ranked


class PlacementTransformer(
    PlacementOptions,
    RunnableSerializable[Sequence[Document], list[Document]],
    BaseDocumentCompressor,
    BaseDocumentTransformer,
):
    """Put ranked documents, best first, into the slots of a prompt; slot 0 comes first.

    One object serves in a pipe (``retriever | PlacementTransformer("u_shape") | ...``) and in
    LangChain's ContextualCompressionRetriever and DocumentCompressorPipeline; a `CAUSRetriever`
    places by its own options. Documents are copied; the copies carry ``rank``, ``slot``,
    ``placement``, ``psi``, ``gate`` and ``reason`` under ``metadata["posrag"]``, in place of what
    told an earlier slot and beside the rest, unless `include_scores` is False. Documents that stand
    as an earlier step has placed them are placed by the ranks they carry, not by where they stand.

    Parameters
    ----------
    placement
        Name in `shared_core.PLACEMENTS`, or a placement.
    psi
        As in `PlacementOptions`; ``"always"`` by default, for naming a placement asks for it.
    evidence, include_scores
        As in `PlacementOptions`.

    Raises
    ------
    ValueError
        If an option is unknown or out of range, or the placement needs a position profile and
        `psi` is none (pydantic's ``ValidationError`` is one).
    TypeError
        If a call gives it an argument: its options are its fields.
    ProfileNotFoundError
        If `psi` names a profile that is not there.

    Examples
    --------
    >>> transformer = PlacementTransformer("u_shape")
    >>> [d.page_content for d in transformer.invoke([Document("a"), Document("b"), Document("c")])]
    ['a', 'c', 'b']
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    psi: Psi = "always"

    def __init__(
        self, placement: str | Placement = "u_shape", **options: Unpack[PlacementArguments]
    ) -> None:
        super().__init__(placement=placement, **options)

    @override
    def invoke(
        self, input: Sequence[Document], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return copies of the documents by slot."""
        refuse_arguments(self, kwargs)
        return self._call_with_config(self._place, input, config)

    @override
    async def ainvoke(
        self, input: Sequence[Document], config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return copies of the documents by slot; takes microseconds, so it needs no thread."""
        refuse_arguments(self, kwargs)

        async def place(documents: Sequence[Document]) -> list[Document]:
            return self._place(documents)

        return await self._acall_with_config(place, input, config)

    @override
    def transform_documents(self, documents: Sequence[Document], **kwargs: Any) -> list[Document]:
        """Return copies of the documents by slot."""
        refuse_arguments(self, kwargs)
        return self._place(documents)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return copies of the documents by slot; the query plays no part."""
        return self._place(documents)

    def _place(self, documents: Sequence[Document]) -> list[Document]:
        order = ranked([document.metadata.get(DETAIL) for document in documents])
        return [
            copy_of(documents[order[why["rank"]]], why if self.include_scores else None)
            for why in self.caus.explain(len(documents))
        ]

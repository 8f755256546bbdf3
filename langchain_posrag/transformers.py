"""Placement as a separate step, in a pipe or in a compression pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from typing_extensions import override

from langchain_posrag.document_step import DocumentStep
from langchain_posrag.documents import DETAIL, as_passages, check_documents, copy_of
from langchain_posrag.options import PlacementArguments, PlacementOptions, Psi
from shared_core import Placement
from shared_core.explanations import warn_of_placed


class PlacementTransformer(PlacementOptions, DocumentStep):
    """Put ranked documents, best first, into the slots of a prompt; slot 0 comes first.

    One object serves in a pipe (``retriever | PlacementTransformer("u_shape") | ...``) and in
    LangChain's ContextualCompressionRetriever and DocumentCompressorPipeline; a `CAUSRetriever`
    places by its own options. Documents are copied; the copies carry ``rank``, ``slot``,
    ``placement``, ``psi``, ``gate`` and ``reason`` under ``metadata["posrag"]``, which replace
    those of an earlier slot and keep the rest. If `include_scores` is False, they carry no
    explanation at all, and no score that came with one.

    The order in which documents come is their ranking, whatever placed or reranked them before:
    behind a `CAUSRetriever`, let one of the two place, with ``psi="never"`` in the other.

    Parameters
    ----------
    placement
        Name in `PLACEMENTS`, or a placement.
    psi
        As in `PlacementOptions`; ``"always"`` by default, since naming a placement asks for it.
    rule, hit_rates, include_scores
        As in `PlacementOptions`.

    Raises
    ------
    ValueError
        If an option is unknown or out of range, or the placement needs a position profile and
        `psi` is not one (pydantic's ``ValidationError`` is a ValueError). When it is called: if it
        is given one document instead of several, or one of them is not a Document.
    TypeError
        If a call gives an argument: the options are the fields.
    ProfileNotFoundError
        If there is no profile of the name in `psi`.

    Warns
    -----
    UserWarning
        If the documents stand exactly as an earlier step placed them.

    Examples
    --------
    >>> transformer = PlacementTransformer("u_shape")
    >>> [d.page_content for d in transformer.invoke([Document("a"), Document("b"), Document("c")])]
    ['a', 'c', 'b']
    """

    psi: Psi = "always"

    def __init__(
        self, placement: str | Placement = "u_shape", **options: Unpack[PlacementArguments]
    ) -> None:
        super().__init__(placement=placement, **options)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return copies of the documents by slot; the query is ignored."""
        documents = check_documents(documents)
        if self.caus.gate.opened:
            warn_of_placed([document.metadata.get(DETAIL) for document in documents])
        places = self.caus.places_of(as_passages(documents)) if self.caus.reads_places else ()
        tokens = self.caus.tokens_of(document.page_content for document in documents)
        return [
            copy_of(documents[why["rank"]], why, told=self.include_scores)
            for why in self.caus.explain(len(documents), places, tokens)
        ]

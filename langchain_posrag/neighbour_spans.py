"""Neighbour spans as a separate step after any retriever, in a pipe or a compressor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self, TypedDict, Unpack

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from pydantic import Field, InstanceOf
from typing_extensions import override

from langchain_posrag.document_step import DocumentStep
from langchain_posrag.documents import (
    check_documents,
    copy_of,
    passage_of,
    score_of,
)
from langchain_posrag.options import CheckedOptions, SpansField
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import (
    ChunkSource,
    NeighbourSpans,
    PassageNeighbours,
    place_spans,
)


class NeighbourSpanArguments(TypedDict, total=False):
    """Keyword arguments of `NeighbourSpanTransformer` besides the chunks."""

    expand: NeighbourSpans
    chunk_keys: ChunkKeys
    score_key: str
    higher_is_better: bool
    include_scores: bool


class NeighbourSpanTransformer(CheckedOptions, DocumentStep):
    """Expand retrieved documents by their neighbouring chunks (RetriVex).

    One object serves in a pipe (``retriever | NeighbourSpanTransformer.from_documents(chunks)``)
    and in LangChain's ContextualCompressionRetriever and DocumentCompressorPipeline. Chunks that
    overlap or touch become one document, which no later step can tear apart: a copy of the best
    one that was retrieved, with its id, metadata and class, and the text of the span.
    Unless `include_scores` is False, the score of this best one is under ``metadata["score"]``; the
    ``span_score`` that spans are ranked by, its parts, the ``rank`` among the spans, the ``slot``
    and the ``placement`` (the order of the spans) are under ``metadata["posrag"]``, where they
    replace those of an earlier slot and keep the rest. If it is False, the documents carry no
    explanation at all, and no score that came with one.

    Attributes
    ----------
    expand
        Window, token budget, weights and order of the spans.
    chunks
        Where neighbours come from: set by `from_documents`, or any
        `shared_core.neighbour_spans.ChunkSource`. None: the retrieved documents themselves, of
        which adjacent ones become one.
    chunk_keys
        Metadata keys from which the document and number of a chunk are read. A document without
        them has no neighbours.
    score_key
        Metadata key of the score a document was retrieved with. One that has none (or None or
        NaN) counts with the lowest of the others. If none has one, the order gives it: 1 for the
        first of n documents, ``1 / n`` for the last.
    higher_is_better
        False if these scores are distances; they are negated.
    include_scores
        Whether the documents carry their explanation in their metadata.

    Raises
    ------
    ValueError
        If an option is unknown or out of range (pydantic's ``ValidationError`` is one). When it
        is called: if it is given one document instead of several or one is not a Document, the
        budget is smaller than the best document, or a score is not a finite number.
    TypeError
        If a call gives an argument: the options are the fields.

    Examples
    --------
    >>> numbered = {"doc_id": "a"}
    >>> chunks = [Document(t, metadata={**numbered, "chunk_id": n}) for n, t in enumerate("xyz")]
    >>> transformer = NeighbourSpanTransformer.from_documents(chunks, expand=NeighbourSpans())
    >>> transformer.invoke(chunks[1:2])[0].page_content.split()
    ['x', 'y', 'z']
    """

    expand: SpansField = Field(default_factory=NeighbourSpans)
    chunks: InstanceOf[ChunkSource] | None = Field(default=None, repr=False)
    chunk_keys: InstanceOf[ChunkKeys] = ChunkKeys()
    score_key: str = "score"
    higher_is_better: bool = True
    include_scores: bool = True

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        *,
        embeddings: Embeddings | None = None,
        **options: Unpack[NeighbourSpanArguments],
    ) -> Self:
        """Return a transformer that takes neighbours from these documents.

        Parameters
        ----------
        documents
            All chunks, which are copied. Ids unique; without ids their place and text tell them
            apart.
        embeddings
            Embeds them, for the continuity of adjacent chunks. None: it is unknown, and every
            change of heading stops.
        **options
            Attributes of the class.

        Raises
        ------
        ValueError
            If an option is unknown or out of range, `documents` is one instead of several, one is
            not a Document, or two of different text have the same id.
        """
        documents = check_documents(documents)
        keys = options.get("chunk_keys", ChunkKeys())
        passages = [passage_of(document, document.id or "") for document in documents]
        vectors = None
        if embeddings is not None and passages:
            vectors = embeddings.embed_documents([passage.text for passage in passages])
        return cls(chunks=PassageNeighbours(passages, keys, vectors), **options)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return the spans of the documents by slot; the query is ignored."""
        documents = check_documents(documents)
        placed = place_spans(
            [passage_of(document, document.id or "") for document in documents],
            [score_of(document, self.score_key) for document in documents],
            self.expand,
            self.chunk_keys,
            self.chunks,
            higher_is_better=self.higher_is_better,
        )
        found = []
        for best, span, why in placed:
            found.append(copy_of(documents[best], why, told=self.include_scores, text=span.text))
            if self.include_scores:
                found[-1].metadata["score"] = why["score"]
        return found

"""CAUS, or placement alone, over what any retriever or reranker returned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self, Unpack

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from pydantic import InstanceOf, model_validator
from typing_extensions import override

from langchain_posrag.document_step import DocumentStep, QueryStep
from langchain_posrag.documents import (
    DETAIL,
    annotated,
    as_passages,
    check_documents,
    check_query,
    copy_of,
    score_of,
)
from langchain_posrag.options import CAUSOptions, PlacementArguments, PlacementOptions, Psi
from shared_core import Placement
from shared_core.index import PassageIndex, Tokenizer, Variant
from shared_core.metadata import as_similarities
from shared_core.options import RescoringArguments
from shared_core.vectors import query_similarities


class CompressorArguments(RescoringArguments, total=False):
    """Keyword arguments of `HybridScoreCompressor`."""

    include_scores: bool
    embeddings: Embeddings | None
    score_key: str
    higher_is_better: bool


class HybridScoreCompressor(CAUSOptions, QueryStep):
    """Fuse the dense score of candidates with their BM25 score; keep and place the best `k`.

    Documents are copied; unless `include_scores` is False, the copies carry the fused score
    under ``metadata["score"]`` and its explanation under ``metadata["posrag"]``, where ``dense`` is
    the score they came with (negated if it was a distance). If it is False, they carry no
    explanation at all, not even an earlier step's, and no score that came with one.

    A blank query is answered by the dense scores alone, and candidates that all lack one are ranked
    by BM25 alone. In a pipe it takes ``{"question": ..., "documents": ...}``, or the documents of a
    `CAUSRetriever`, whose explanation names the question: ``retriever | HybridScoreCompressor()``.

    Attributes
    ----------
    embeddings
        Computes the dense score, the cosine of query and document. None: it is read from the
        candidates' metadata.
    score_key
        Metadata key of the candidates' dense score. A candidate without one (or with None or
        NaN) counts with the lowest of the others.
    higher_is_better
        Direction of the scores under `score_key`; False for distances.
    corpus
        BM25 statistics to score with; see `from_documents`. None: the candidates' own.
    tokenizer
        Text to tokens, for the candidates' own statistics and `distinct`; the core's by default. A
        corpus has its own.
    k, alpha, fusion, distinct, per_source, placement, psi, rule, hit_rates, include_scores
        As in `CAUSOptions`.

    Raises
    ------
    ValueError
        If an option is unknown or out of range, or there are a corpus and a tokenizer
        (pydantic's ``ValidationError`` is one).

    Warns
    -----
    UserWarning
        If the candidates' scores only rise, as distances do, and `higher_is_better` is True.
    """

    embeddings: Embeddings | None = None
    score_key: str = "score"
    higher_is_better: bool = True
    corpus: PassageIndex | None = None
    tokenizer: Tokenizer | None = None

    @model_validator(mode="after")
    def _check_tokenizer(self) -> Self:
        if self.corpus is not None and self.tokenizer is not None:
            raise ValueError("corpus= has its own tokenizer: leave tokenizer= out")
        return self

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        *,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        **options: Unpack[CompressorArguments],
    ) -> Self:
        """Return a compressor that scores with the BM25 statistics of a whole corpus.

        Parameters
        ----------
        documents
            The corpus; the candidates need not be among them.
        variant, tokenizer
            As in `PassageIndex`.
        **options
            Attributes of the class.

        Raises
        ------
        ValueError
            If an option is unknown or out of range, `documents` is one instead of several, or one
            is not a Document.
        """
        texts = (document.page_content for document in check_documents(documents))
        corpus = PassageIndex.from_texts(texts, variant=variant, tokenizer=tokenizer)
        return cls(corpus=corpus, **options)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return copies of the best `k` documents by slot; [] for none.

        Raises
        ------
        ValueError
            If `documents` is one instead of several, one is not a Document, the query is not text,
            or a score is not a finite number.
        """
        documents = check_documents(documents)
        if self.embeddings is None or not documents:
            return self._fuse(documents, query, self._given_scores(documents))
        vectors = self.embeddings.embed_documents([each.page_content for each in documents])
        asked = self.embeddings.embed_query(check_query(query))
        return self._fuse(documents, query, query_similarities(asked, vectors, len(documents)))

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Async version of `compress_documents`; the embeddings are awaited."""
        documents = check_documents(documents)
        if self.embeddings is None or not documents:
            return await run_in_executor(None, self.compress_documents, documents, query)
        vectors = await self.embeddings.aembed_documents([each.page_content for each in documents])
        asked = await self.embeddings.aembed_query(check_query(query))
        dense = query_similarities(asked, vectors, len(documents))
        return await run_in_executor(None, self._fuse, documents, query, dense)

    def _given_scores(self, documents: Sequence[Document]) -> list[float]:
        given = [score_of(document, self.score_key) for document in documents]
        details = [document.metadata.get(DETAIL) for document in documents]
        return as_similarities(given, details, higher_is_better=self.higher_is_better)

    def _fuse(
        self, documents: Sequence[Document], query: str, dense: Sequence[float]
    ) -> list[Document]:
        arrangement = self.caus.rescore(
            check_query(query),
            dense,
            as_passages(documents),
            corpus=self.corpus,
            tokenizer=self.tokenizer,
            cosines=self.embeddings is not None,
        )
        best = [copy_of(documents[at], told=self.include_scores) for at in arrangement.indices]
        return annotated(best, arrangement) if self.include_scores else best


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

    placement: str | InstanceOf[Placement] = "u_shape"
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
        details = [document.metadata.get(DETAIL) for document in documents]
        placed = self.caus.place_given(as_passages(documents), details)
        return [copy_of(documents[why["rank"]], why, told=self.include_scores) for why in placed]

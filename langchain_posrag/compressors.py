"""CAUS over the candidates of any retriever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self, Unpack

import numpy as np
import numpy.typing as npt
from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict
from typing_extensions import override

from langchain_posrag.documents import annotate, copy_metadata, new_document
from langchain_posrag.options import CAUSArguments, CAUSOptions
from shared_core import BM25Index
from shared_core.index import Tokenizer
from shared_core.index.bm25 import Variant

Floats = npt.NDArray[np.float64]


class CompressorArguments(CAUSArguments, total=False):
    """Keyword arguments of `HybridScoreCompressor`."""

    embeddings: Embeddings | None
    score_key: str
    higher_is_better: bool


class HybridScoreCompressor(CAUSOptions, BaseDocumentCompressor):
    """Fuse the dense score of candidates with their BM25 score; keep and place the best `k`.

    Documents are copied; unless `include_scores` is False, the copies carry the fused score
    under ``metadata["score"]`` and its explanation under ``metadata["posrag"]``, where the score
    they came with lives on as ``dense`` (negated if it was a distance).

    Attributes
    ----------
    embeddings
        Computes the dense score, the cosine of query and document. None: it is read from the
        candidates' metadata.
    score_key
        Metadata key of the candidates' dense score. A candidate without one (or with None or
        NaN) counts as the least of the others.
    higher_is_better
        Direction of the scores under `score_key`; False for distances.
    corpus
        BM25 statistics to score with; see `from_documents`. None: the candidates' own.
    tokenizer
        Text to tokens for the candidates' own statistics; the core's by default.
    k, alpha, fusion, placement, psi, evidence, include_scores
        As in `CAUSOptions`.

    Raises
    ------
    ValueError
        If an option is unknown or out of range (pydantic's ``ValidationError`` is one).
    """

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    embeddings: Embeddings | None = None
    score_key: str = "score"
    higher_is_better: bool = True
    corpus: BM25Index | None = None
    tokenizer: Tokenizer | None = None

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
            As in `shared_core.BM25Index`.
        **options
            Attributes of the class.
        """
        texts = (document.page_content for document in documents)
        corpus = BM25Index.from_texts(texts, variant=variant, tokenizer=tokenizer)
        return cls(corpus=corpus, **options)

    @override
    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Return copies of the best `k` documents by slot; [] for none.

        Raises
        ------
        ValueError
            If no document carries a dense score and there are no `embeddings`, or one carries a
            score that is no finite number.
        """
        if not documents:
            return []
        if self.embeddings is None:
            return self._fuse(documents, query, self._given_scores(documents))
        vectors = self.embeddings.embed_documents([d.page_content for d in documents])
        return self._fuse(documents, query, _cosine(self.embeddings.embed_query(query), vectors))

    @override
    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """Do what `compress_documents` does, with the embeddings awaited."""
        if not documents or self.embeddings is None:
            return await run_in_executor(None, self.compress_documents, documents, query)
        vectors = await self.embeddings.aembed_documents([d.page_content for d in documents])
        dense = _cosine(await self.embeddings.aembed_query(query), vectors)
        return await run_in_executor(None, self._fuse, documents, query, dense)

    def _given_scores(self, documents: Sequence[Document]) -> Floats:
        given = [document.metadata.get(self.score_key) for document in documents]
        try:
            scores = np.array([np.nan if score is None else score for score in given], np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"metadata[{self.score_key!r}] must be a number: {error}") from error
        if np.isnan(scores).all():
            raise ValueError(
                f"no candidate has a score under metadata[{self.score_key!r}]: "
                "set score_key= to where your retriever puts it, or pass embeddings="
            )
        return scores if self.higher_is_better else -scores

    def _fuse(self, documents: Sequence[Document], query: str, dense: Floats) -> list[Document]:
        texts = [document.page_content for document in documents]
        if self.corpus is None:
            sparse = BM25Index.from_texts(texts, tokenizer=self.tokenizer).scores(query)
        else:
            sparse = self.corpus.score_texts(query, texts)
        arrangement = self.caus.place(self.caus.rank(dense, sparse))
        spent = self.score_key if self.embeddings is None else None
        fused = []
        for index, detail in zip(arrangement.indices, arrangement.explain(), strict=True):
            document = documents[index]
            metadata = copy_metadata(document.metadata)
            if self.include_scores:
                annotate(metadata, detail, spent=spent)
            fused.append(new_document(document.id, document.page_content, metadata))
        return fused


def _cosine(query: Sequence[float], documents: Sequence[Sequence[float]]) -> Floats:
    """Return the cosine of a vector, shape (dim,), with each of others, shape (n, dim)."""
    vector, matrix = np.asarray(query, np.float64), np.asarray(documents, np.float64)
    if not (np.isfinite(vector).all() and np.isfinite(matrix).all()):
        raise ValueError("the embeddings hold NaN or infinite values")
    lengths = np.linalg.norm(matrix, axis=1) * np.linalg.norm(vector)
    cosine: Floats = np.divide(
        matrix @ vector, lengths, out=np.zeros(len(matrix)), where=lengths > 0
    )
    return cosine

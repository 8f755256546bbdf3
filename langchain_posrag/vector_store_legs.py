"""Any LangChain vector store as the dense leg, with BM25 beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from langchain_core.runnables import run_in_executor
from langchain_core.runnables.config import ContextThreadPoolExecutor
from typing_extensions import override

from langchain_posrag.legs import CallOptions
from langchain_posrag.store_search import Hits, afind, find
from langchain_posrag.vector_store_documents import VectorStoreDocuments
from shared_core import CAUS, Arrangement, Passage


@dataclass(frozen=True, slots=True)
class VectorStoreLegs(VectorStoreDocuments):
    """A vector store searched beside a sparse leg.

    The store gives its raw scores to the documents it finds and to no others: what only the
    sparse leg finds stands at the dense leg's lowest score. The sparse score is exact for all.

    Two writers that change the same id at once may leave what one wrote in the store and what the
    other wrote in the sparse leg: write an id from one place at a time, or write it again.

    Attributes
    ----------
    store
        The dense leg.
    sparse
        The sparse leg, over the same documents.
    higher_is_better
        Direction of the store's scores; False for distances.
    """

    higher_is_better: bool

    @override
    def search(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        depth, where = caus.depth(options["k"], options["fetch_k"]), options["where"]
        with ContextThreadPoolExecutor(max_workers=1) as executor:
            try:
                beside = executor.submit(self.sparse.search, query, depth, where).result
            except RuntimeError:  # no thread can be started once the main one has ended
                beside = partial(self.sparse.search, query, depth, where)
            hits = find(self.store, query, depth, where)
            return self._fuse(caus, query, hits, beside(), options)

    @override
    async def asearch(self, caus: CAUS, query: str, options: CallOptions) -> Arrangement:
        depth, where = caus.depth(options["k"], options["fetch_k"]), options["where"]
        hits, sparse = await asyncio.gather(
            afind(self.store, query, depth, where),
            run_in_executor(None, self.sparse.search, query, depth, where),
        )
        return await run_in_executor(None, self._fuse, caus, query, hits, sparse, options)

    def _fuse(
        self, caus: CAUS, query: str, hits: Hits, sparse: Sequence[Passage], options: CallOptions
    ) -> Arrangement:
        pool, dense = self._pool(hits, sparse)
        scores = self.sparse.scores(query, pool)
        ranking = caus.rank(dense, scores, k=options["k"], alpha=options["alpha"])
        ranking = replace(ranking, passages=[pool[i] for i in ranking.indices])
        if caus.expand is None:
            return caus.place(ranking)
        source = self.sparse.neighbours(caus.chunk_keys, options["where"])
        return caus.place_expanded(ranking, source)

    def _pool(self, hits: Hits, sparse: Sequence[Passage]) -> tuple[list[Passage], list[float]]:
        """Return the union of both legs and its dense scores; one that is missing is NaN.

        The dense leg's come first, each leg's best first, so that equal scores keep that order.
        """
        pool: dict[str | bytes, tuple[Passage, float]] = {}
        for document, score in hits:
            hit = Passage(document.id or "", document.page_content, document.metadata)
            value = float(score) if self.higher_is_better else -float(score)
            identity, hit = self.sparse.identified(hit)
            pool.setdefault(identity, (hit, value))
        for passage in sparse:
            identity, passage = self.sparse.identified(passage)
            pool.setdefault(identity, (passage, np.nan))
        return [passage for passage, _ in pool.values()], [score for _, score in pool.values()]

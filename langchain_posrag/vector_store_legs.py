"""Any LangChain vector store as the dense leg, with BM25 beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from langchain_core.runnables import run_in_executor
from typing_extensions import override

from langchain_posrag.legs import CallOptions
from langchain_posrag.store_search import Hits, afind, find
from langchain_posrag.vector_store_documents import VectorStoreDocuments
from shared_core import CAUS, Arrangement, Passage
from shared_core.foreign_leg import fuse_foreign
from shared_core.index.beside import Beside


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
        sparse = Beside(partial(self.sparse.search, query, depth, where))
        hits = find(self.store, query, depth, where)
        return self._fuse(caus, query, hits, sparse.result(), options)

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
        """Fuse by what the sparse leg takes for the same document; the store's own comes first."""
        found = (
            (Passage(document.id or "", document.page_content, document.metadata), score)
            for document, score in hits
        )
        source = None
        if caus.expand is not None:
            source = self.sparse.neighbours(caus.chunk_keys, options["where"])
        return fuse_foreign(
            caus,
            ((*self.sparse.identified(passage), score) for passage, score in found),
            map(self.sparse.identified, sparse),
            partial(self.sparse.scores, query),
            higher_is_better=self.higher_is_better,
            passage_of=_itself,
            source=source,
            k=options["k"],
            alpha=options["alpha"],
        )


def _itself(passage: Passage) -> Passage:
    return passage

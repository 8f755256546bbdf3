"""The hybrid index: passages under a dense and a sparse leg, searched together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Bools, Vectors
from shared_core.checking import check_choice, check_count, check_several
from shared_core.errors import EmbeddingMismatchError
from shared_core.index.dense import Dense, DenseSnapshot, Metric
from shared_core.index.engine import Engine, Leg
from shared_core.index.metadata import Where
from shared_core.index.passages import PassageIndex, check_passages
from shared_core.index.snapshot import HybridSnapshot, pools
from shared_core.index.sparse.bm25 import BM25Arguments
from shared_core.index.storage import load_state, save_state
from shared_core.scoring.fusion import Alpha
from shared_core.scoring.ranking import rank_pool
from shared_core.types import Fusion, Passage, Pool, Query, Ranking, Tokenizer
from shared_core.vectors import model_mismatch


class HybridIndex(PassageIndex, Engine):
    """Passages under vectors and BM25, searched together and fused (CAUS, Gear 1).

    Both legs search to depth `fetch_k`; the pool is the union of what they find, and each leg
    scores the whole pool exactly, including what only the other one found. Safe to search from many
    threads while one adds or deletes: a search works on the state it starts from.

    Parameters
    ----------
    metric
        ``"cosine"`` (vectors are scaled to unit length) or ``"inner_product"``.
    dense
        ``"flat"``: exact, by an 8-bit scan whose short list is proved to be complete where the
        kernels are compiled. ``"ivf"``, ``"hnsw"``: FAISS's inverted file and graph from 4,096
        passages up, whose proposals are scored exactly; they may miss some.
    tokenizer
        Text to tokens, by default `tokenize`.
    **bm25
        ``variant``, ``k1``, ``b``, ``epsilon`` and ``mean_length``, see `BM25Options`.

    Attributes
    ----------
    extra
        JSON-able values that `save` writes and `load` reads back: an adapter's options, say.

    Raises
    ------
    ValueError
        If an option is unknown or out of range.
    """

    _state: HybridSnapshot

    def __init__(
        self,
        *,
        metric: Metric = "cosine",
        dense: Dense = "flat",
        tokenizer: Tokenizer | None = None,
        **bm25: Unpack[BM25Arguments],
    ) -> None:
        check_choice(metric, "metric", Metric)
        check_choice(dense, "dense", Dense)
        super().__init__(tokenizer=tokenizer, **bm25)
        self.extra: dict[str, Any] = {}
        self._state = HybridSnapshot(sparse=self._state.sparse, dense=DenseSnapshot(metric, dense))

    def _make_locks(self) -> None:
        super()._make_locks()
        self._saving = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for ``copy`` and ``pickle``, neither of which changes it."""
        return super().__getstate__() | {"extra": deepcopy(self.extra)}

    @property
    def embeds(self) -> bool:
        """False: `add` and `pool` take vectors."""
        return False

    def __repr__(self) -> str:
        state = self._state
        return (
            f"HybridIndex({len(self)} passages, dim={self.dim}, dense={state.dense.kind!r}, "
            f"variant={state.sparse.options.variant!r})"
        )

    @property
    def dim(self) -> int | None:
        """Dimension of the vectors; None while the index has never held any."""
        return self._state.dense.dim

    def embedded(self) -> tuple[list[Passage], Vectors]:
        """Return the passages in insertion order and their vectors, shape (n, dim), as copies."""
        state = self._state
        rows = np.array(state.alive_rows, np.intp)
        return [state.passages[row] for row in rows], state.dense.vectors[rows]

    def add(self, passages: Sequence[Passage], vectors: npt.ArrayLike | None = None) -> list[str]:
        """Add passages, or replace those whose id is there already; all of them or none.

        Parameters
        ----------
        passages
            The passages; ids unique among them. A replaced one moves to the end. Their metadata are
            not copied and must not change later: add a new passage under the same id instead.
        vectors
            Their embeddings, shape (len(passages), dim), finite.

        Returns
        -------
        list of str
            The ids.

        Raises
        ------
        ValueError
            If an id occurs twice or is empty, an id or text is not a string, metadata are not a
            mapping, or the vectors do not fit.
        """
        passages = list(passages)
        ids = [passage.id for passage in passages]
        check_passages(passages)
        if not passages:
            return []
        if vectors is None:
            raise ValueError("the index does not embed texts: give the vectors of the passages")
        with self._writing:
            state = self._state
            matrix = state.dense.checked(vectors, [f"passage {id!r}" for id in ids])
            dense = state.dense.extended(matrix)
            self._publish(replace(state.extended(passages), dense=dense))
        return ids

    def search(
        self,
        text: str,
        vector: npt.ArrayLike,
        *,
        k: int = 10,
        fetch_k: int = 50,
        alpha: Alpha = None,
        fusion: Fusion = "theoretical_min",
        where: Where = None,
    ) -> Ranking:
        """Return the best `k` passages by the fused score of both legs.

        Parameters
        ----------
        text
            Query for the sparse leg. Without a token of the corpus (blank, say) that leg finds
            nothing and contributes 0.
        vector
            Query for the dense leg, shape (dim,), finite.
        k
            Number of passages, >= 1; an index that holds fewer gives all it has.
        fetch_k
            Depth of each leg's search, >= 1; at least `k` is always fetched.
        alpha, fusion
            Weight of the dense leg, and how the legs are fused, as in `rank`.
        where
            Filter on the metadata, see `Where`; it holds in both legs.

        Returns
        -------
        Ranking
            Best first; its `indices` are positions in the pool. Empty for an empty index.

        Raises
        ------
        ValueError
            If an argument is out of range, `text` is not a string, or the vector does not fit.
        """
        (ranking,) = self.search_batch(
            [text], [vector], k=k, fetch_k=fetch_k, alpha=alpha, fusion=fusion, where=where
        )
        return ranking

    def search_batch(
        self,
        texts: Sequence[str],
        vectors: Sequence[npt.ArrayLike] | npt.NDArray[np.floating],
        *,
        k: int = 10,
        fetch_k: int = 50,
        alpha: Alpha = None,
        fusion: Fusion = "theoretical_min",
        where: Where = None,
    ) -> list[Ranking]:
        """Search for many queries at once; the same results as `search` one by one, but faster.

        Parameters
        ----------
        texts
            Queries for the sparse leg.
        vectors
            Queries for the dense leg, shape (len(texts), dim).
        k, fetch_k, alpha, fusion, where
            As in `search`.

        Raises
        ------
        ValueError
            As `search`, and if `texts` is a single string or the number of vectors differs.
        """
        check_several(texts, "texts")
        if len(texts) != len(vectors):
            raise ValueError(f"got {len(texts)} texts and {len(vectors)} vectors; give one each")
        depth = max(check_count(k, "k"), check_count(fetch_k, "fetch_k"))
        pools = self.pool([*map(Query, texts, vectors)], depth, where=where)
        return [rank_pool(pool, k=k, alpha=alpha, fusion=fusion) for pool in pools]

    def pool(self, queries: Sequence[Query], depth: int, *, where: Where = None) -> list[Pool]:
        """Return, for each query, the best `depth` passages of either leg, scored by both.

        Every score is exact, and every pool complete unless the dense leg is ``"ivf"`` or
        ``"hnsw"``. All come from one snapshot.

        Raises
        ------
        ValueError
            If `depth` is below 1, a text is not a string, or a vector is missing or does not fit.
        """
        state = self._state
        return [*pools(state, queries, check_count(depth, "depth"), state.allowed(where))]

    def search_leg(
        self, leg: Leg, query: Query, k: int, *, where: Where = None
    ) -> list[tuple[Passage, float]]:
        """Return the best `k` passages of one leg with its scores, best first.

        Raises
        ------
        ValueError
            As `pool`, and if there is no such leg.
        """
        check_choice(leg, "leg", Leg)
        if leg == "sparse":
            return self.best(query.text, k, where=where)
        k, state = check_count(k, "k"), self._state
        vector, allowed = state.dense.unit(query.vector), state.allowed(where)
        return state.ranked(*state.dense.top_k(vector[None], k, allowed))

    def close(self) -> None:
        """Do nothing: all is in memory."""

    def verify_embeddings(self, embed: Callable[[str], Sequence[float]]) -> None:
        """Check that `embed` is the model the index was built with, by embedding one passage again.

        Parameters
        ----------
        embed
            Text to vector, as for passages (not as for queries, if the model embeds those
            differently).

        Raises
        ------
        EmbeddingMismatchError
            If the vector differs from the stored one in dimension or direction.
        """
        state = self._state
        vectors, passages = state.dense.vectors, state.passages
        nonzero: Bools = np.any(vectors, axis=1)
        telling = [row for row in state.alive_rows if nonzero[row]]
        if not telling:
            return
        row = min(
            telling, key=lambda row: (not passages[row].text.strip(), len(passages[row].text))
        )
        found = model_mismatch(vectors[row], embed(passages[row].text))
        if found is not None:
            raise EmbeddingMismatchError(
                "the embedding model is not the one the index was built with: passage "
                f"{passages[row].id!r} {found}; give that model, or embed the documents anew"
            )

    def save(
        self,
        path: str | Path,
        *,
        encode_source: Callable[[Any], Any] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Write the index into a folder; a crash midway leaves what was there before.

        Deleted passages are dropped for good first, so that nothing of them is written. Other
        threads may add and delete meanwhile: what is written is the index as it was at the start.

        Parameters
        ----------
        path
            Folder: new, empty, or an index that is to be replaced.
        encode_source
            Makes a passage's `source` JSON-able. Without it, only sources are saved that `load`
            did not decode.
        extra
            JSON-able values to keep with the index; `load` puts them into `extra`.

        Raises
        ------
        ValueError
            If a passage's metadata, its encoded source, or `extra` would not come back from JSON
            unchanged.
        IndexFormatError
            If the folder holds anything but an index.
        """
        with self._saving:
            with self._writing:
                state = self._state = self._state.compacted()
            save_state(Path(path), state, encode_source, {**self.extra, **(extra or {})})

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        tokenizer: Tokenizer | None = None,
        decode_source: Callable[[Any], Any] | None = None,
    ) -> HybridIndex:
        """Read an index that `save` wrote.

        Parameters
        ----------
        path
            The folder.
        tokenizer
            The tokenizer of an index that was built with a custom one.
        decode_source
            The inverse of `encode_source`. Without it, sources are only kept for `save`.

        Raises
        ------
        IndexFormatError
            If the folder is not an index, or has a format this version cannot read.
        CorruptIndexError
            If a file is missing, truncated or altered.
        ValueError
            If the index was built with a custom tokenizer and none is given, or the reverse, or if
            the tokenizer splits the saved passages otherwise.
        """
        index = cls(tokenizer=tokenizer)
        index._state, index.extra = load_state(Path(path), tokenizer, decode_source)
        return index

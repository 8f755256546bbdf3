"""CAUS: hybrid confidence scores, the gate, and the placement, in one object without a framework.

Martin, Roy and Shalini, "CAUS-RAG: Algorithmic Interceptor for Mitigating Positional Bias in
Technical Code Generation", Algorithm 1.
"""

from __future__ import annotations

import asyncio
import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from shared_core.checking import check_between, check_choice, check_count, check_counts_of
from shared_core.index.engine import Engine, neighbours_in, tokenizer_of
from shared_core.index.metadata import Where
from shared_core.index.passages import PassageIndex
from shared_core.index.sparse.bm25 import Variant
from shared_core.metadata import warn_of_placed
from shared_core.neighbour_spans import (
    ChunkKeys,
    ChunkReader,
    ChunkSource,
    ExpandedArrangement,
    NeighbourSpans,
    expand_ranking,
)
from shared_core.neighbour_spans.places import NUMBER_THEM
from shared_core.placement import Place, Placement, resolve_placement
from shared_core.placement.order_gate import Psi, decide_order, profile_of, rates_by_rank
from shared_core.scoring.fusion import Alpha, check_alpha
from shared_core.scoring.ranking import rank_pool
from shared_core.selection import near_enough, selected
from shared_core.sensitivity import PositionProfile
from shared_core.sensitivity.position_sensitivity import check_shares
from shared_core.tokens import estimate_tokens
from shared_core.types import (
    Arrangement,
    Fusion,
    OrderDecision,
    OrderRule,
    Passage,
    Pool,
    Query,
    Ranking,
    Tokenizer,
    Tuning,
)


@dataclass(frozen=True, kw_only=True)
class CAUS:
    """Score a pool of passages, keep the best k, and place them if the gate opens.

    Attributes
    ----------
    k
        Number of passages to keep, >= 1.
    alpha
        Weight of the dense leg in [0, 1] (the sparse leg weighs ``1 - alpha``). None: that of the
        fusion, see `shared_core.rank`.
    fetch_k
        Depth of each leg's search before fusion, >= 1; at least `k` is always fetched.
    fusion
        ``"theoretical_min"``, ``"min_max"`` (eq. 2) or ``"rrf"``.
    placement
        ``"auto"``, a name in `PLACEMENTS`, or a placement; see `decide_order`.
    psi
        What the gate knows about the model: a number, a `PositionProfile`, the path or name of a
        saved one, ``"always"`` or ``"never"``. None keeps the ranked order and says so.
    rule, hit_rates
        How a profile decides; see `decide_order`.
    expand
        Expands the k passages by their neighbours into spans, at most k, before the gate and the
        placement, which then work on spans; its own `order` is ignored. None: passages.
    chunk_keys
        Metadata keys that give the position of a passage in its document.
    distinct
        Leave out a passage that has at least this share of words in common with a better one, in
        [0, 1]; 0.95: copies with a word changed. Words are those of a custom tokenizer, if BM25
        has one. None: keep all.
    per_source
        Most passages of one document, >= 1. None: any number.
    min_similarity
        Leave out, before fusion, what has a lower cosine to the query, in [-1, 1]. None: nothing.
    tuning
        How `alpha` and `hit_rates` were chosen, see `shared_core.tuning.tune`; None: not by labels.

    Raises
    ------
    ValueError
        If an option is out of range or unknown.
    ProfileNotFoundError
        If `psi` names a profile that does not exist.

    Warns
    -----
    UserWarning
        If another placement than the default is named and `psi` is None, which keeps it shut.
    """

    k: int = 10
    alpha: Alpha = None
    fetch_k: int = 50
    fusion: Fusion = "theoretical_min"
    placement: str | Placement = "auto"
    psi: Psi = None
    rule: OrderRule = "gain"
    hit_rates: Sequence[float] | None = None
    expand: NeighbourSpans | None = None
    chunk_keys: ChunkKeys = field(default_factory=ChunkKeys)
    distinct: float | None = None
    per_source: int | None = None
    min_similarity: float | None = None
    tuning: Tuning | None = None

    def __post_init__(self) -> None:
        check_counts_of(self, {"k": 1, "fetch_k": 1})
        check_counts_of(self, {"per_source": 1}, optional=True)
        check_between(self.distinct, "distinct", 0, 1)
        check_between(self.min_similarity, "min_similarity", -1, 1)
        if not isinstance(self.expand, NeighbourSpans | None):
            raise ValueError(f"expand must be NeighbourSpans or None, got {self.expand!r}")
        if not isinstance(self.chunk_keys, ChunkKeys):
            raise ValueError(f"chunk_keys must be ChunkKeys, got {self.chunk_keys!r}")
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        check_choice(self.fusion, "fusion", Fusion)
        if self.hit_rates is not None:
            object.__setattr__(self, "hit_rates", check_shares(self.hit_rates, "hit_rates"))
        self.decide(1)  # the check
        if isinstance(self.psi, Real):  # JSON cannot hold NumPy's
            object.__setattr__(self, "psi", float(self.psi))
        if self.psi is None and self.placement not in ("auto", "sequential", "front_first"):
            way_out = 'the position sensitivity of the model: give it, or psi="always"'
            if resolve_placement(self.placement).needs_profile:
                way_out = "the position profile of the model: give one, or its name"
            warnings.warn(
                f"placement={self.placement!r} is not applied without psi=, {way_out}",
                stacklevel=3,  # the caller of CAUS, which may be a retriever
            )

    @cached_property
    def profile(self) -> PositionProfile | None:
        """The profile that `psi` is or names."""
        return profile_of(self.psi)

    @property
    def gate(self) -> OrderDecision:
        """The decision whether and how to place `k` passages; the same for every query."""
        return self.decide(self.k)

    def rescore(
        self,
        query: str,
        dense: npt.ArrayLike,
        passages: Sequence[Passage],
        *,
        corpus: PassageIndex | None = None,
        variant: Variant = "lucene",
        tokenizer: Tokenizer | None = None,
        cosines: bool = False,
        reader: ChunkReader | None = None,
    ) -> Arrangement:
        """Rank candidates of others by their scores and BM25, and put the best k into slots.

        A blank query is answered by the dense leg alone, and candidates that all lack a dense score
        are ranked by BM25 alone.

        Parameters
        ----------
        query
            What the candidates were found for.
        dense
            Score of each candidate, shape (n,), higher is better; NaN: it has none.
        passages
            The candidates.
        corpus
            BM25 statistics to score them with, with a tokenizer of its own; None: their own.
        variant, tokenizer
            As in `PassageIndex`, for their own statistics; the tokenizer is for `distinct`, too.
        cosines
            Whether the dense scores are cosines.
        reader
            Reads their places; by default `chunk_keys`.

        Raises
        ------
        ValueError
            As `rank`, and if `min_similarity` is set for scores that are no cosines.
        """
        given = np.array(dense, np.float64)
        if corpus is not None:
            tokenizer, sparse = corpus.tokenizer, corpus.scores(query, passages)
        else:
            texts = [passage.text for passage in passages]
            own = PassageIndex.from_texts(texts, variant=variant, tokenizer=tokenizer)
            sparse = own.scores(query, own.passages)
        nearest = float(np.nanmax(given, initial=-1.0)) if cosines else None
        pool = Pool(passages, given, sparse, nearest=nearest)
        alpha = 1.0 if not query.strip() else 0.0 if np.isnan(given).all() else self.alpha
        ranking = self.rank_pool(pool, self.k, alpha, reader or self.chunk_keys, tokenizer)
        # Of all passages another may be nearer to the query.
        return self.place(replace(ranking, nearest=None), reader)

    def place(self, ranking: Ranking, reader: ChunkReader | None = None) -> Arrangement:
        """Put a ranking into slots: by the placement if the gate is open, else as ranked.

        Parameters
        ----------
        ranking
            With passages where the placement reads their places.
        reader
            Reads these; by default `chunk_keys`.
        """
        places: Sequence[Place] = ()
        if self.reads_places:
            places = self.places_of(ranking.passages, reader)
        tokens = self.tokens_of(passage.text for passage in ranking.passages)
        return Arrangement(ranking, self.decide(len(ranking), places, tokens))

    def tokens_of(self, texts: Iterable[str]) -> float | None:
        """Return how many tokens texts have, where a profile of several lengths asks for that."""
        if self.profile is None or not self.profile.lengths:
            return None
        return sum(map(estimate_tokens, texts)) or None

    def places_of(
        self, passages: Sequence[Passage], reader: ChunkReader | None = None
    ) -> list[Place]:
        """Return the document and position of each passage; see `Chunk.place`."""
        reader = reader or self.chunk_keys
        places = [reader.chunk(passage).place for passage in passages]
        if len(places) > 1 and all(math.isinf(place) for _, place in places):
            warnings.warn(
                f"no passage says where it stands in which document: {NUMBER_THEM}",
                stacklevel=2,
            )
        return places

    def place_expanded(
        self, ranking: Ranking, source: ChunkSource, reader: ChunkReader | None = None
    ) -> Arrangement:
        """Expand a ranking with passages into spans if `expand` says so, and put it into slots.

        Parameters
        ----------
        ranking
            With passages.
        source
            Source of their neighbours.
        reader
            Identifies the chunk of a passage; by default `chunk_keys`.

        Returns
        -------
        Arrangement
            An `ExpandedArrangement` where `expand` is set.

        Raises
        ------
        ValueError
            As `NeighbourSpans.expand`, and if the ranking to expand does not hold its passages.
        """
        if self.expand is None:
            return self.place(ranking, reader)
        reader = reader or self.chunk_keys
        spans, expansion, ranks = expand_ranking(ranking, self.expand, reader, source)
        rates = rates_by_rank(self.hit_rates, len(ranking))
        places = [span.chunks[0].place for span in expansion.spans]
        tokens = self.tokens_of(span.text for span in expansion.spans)
        by_span = [rates[of_span].sum() for of_span in ranks]
        gate = self._decided(len(spans), by_span, places, tokens)
        return ExpandedArrangement(spans, gate, ranking, expansion)

    def decide(
        self, k: int, places: Sequence[Place] = (), tokens: float | None = None
    ) -> OrderDecision:
        """Return the decision whether and how to place `k` passages.

        Parameters
        ----------
        k
            How many there are.
        places
            Where each stands, by rank, for a placement that reads it; see `places_of`.
        tokens
            Tokens of all, for a profile of several lengths; see `decide_order`.
        """
        if places or tokens is not None:
            return self._decided(k, self.hit_rates, places, tokens)
        known = self._by_k.get(k)
        if known is None:
            known = self._by_k[k] = self._decided(k, self.hit_rates)
        return known

    def _decided(
        self,
        k: int,
        hit_rates: Sequence[float] | None,
        places: Sequence[Place] = (),
        tokens: float | None = None,
    ) -> OrderDecision:
        psi = self.profile if self.profile is not None else self.psi
        placement = self.placement
        if self.reads_places:
            placement = resolve_placement(placement).of_places(places)
        return decide_order(psi, placement, k=k, tokens=tokens, rule=self.rule, hit_rates=hit_rates)

    @cached_property
    def reads_places(self) -> bool:
        """Whether the placement depends on where the passages stand in their documents."""
        return self.placement != "auto" and resolve_placement(self.placement).reads_places

    @cached_property
    def _selects(self) -> bool:
        return any(
            each is not None for each in (self.distinct, self.per_source, self.min_similarity)
        )

    def rank_pool(
        self,
        pool: Pool,
        k: int,
        alpha: Alpha,
        reader: ChunkReader,
        tokenizer: Tokenizer | None = None,
    ) -> Ranking:
        """Return the best `k` of a pool by fused score, without what the options leave out."""
        if not self._selects:
            return rank_pool(pool, k=k, alpha=alpha, fusion=self.fusion)
        below, found = None, len(pool.passages)
        if self.min_similarity is not None:
            pool = near_enough(pool, self.min_similarity)
            below = found - len(pool.passages)
        ranking = rank_pool(pool, k=max(1, found), alpha=alpha, fusion=self.fusion)
        return selected(ranking, k, self.distinct, self.per_source, below, reader, tokenizer)

    @cached_property
    def _by_k(self) -> dict[int, OrderDecision]:
        return {}

    def explain(
        self, k: int, places: Sequence[Place] = (), tokens: float | None = None
    ) -> list[dict[str, Any]]:
        """Return, slot by slot, how `k` passages are placed and why, JSON-able; see `decide`."""
        gate = self.decide(k, places, tokens)
        shared = gate.explain()
        return [{"rank": rank, "slot": slot, **shared} for slot, rank in enumerate(gate.slots)]

    def place_given(
        self,
        passages: Sequence[Passage],
        details: Sequence[object],
        reader: ChunkReader | None = None,
    ) -> list[dict[str, Any]]:
        """Return, slot by slot, where passages that come as ranked are put, and why; JSON-able.

        Warns if the gate is open, and they stand as an earlier step has placed them.

        Parameters
        ----------
        passages
            Best first.
        details
            What earlier steps explained of each, falsy for nothing.
        reader
            Reads their places; by default `chunk_keys`.
        """
        if self.gate.opened:
            warn_of_placed(details)
        places = self.places_of(passages, reader) if self.reads_places else ()
        tokens = self.tokens_of(passage.text for passage in passages)
        return self.explain(len(passages), places, tokens)

    def search(
        self,
        engine: Engine,
        queries: Sequence[Query],
        *,
        k: int | None = None,
        fetch_k: int | None = None,
        alpha: Alpha = None,
        where: Where = None,
        reader: ChunkReader | None = None,
    ) -> list[Arrangement]:
        """Search an engine for queries, expand what is found if `expand` says so, and place it.

        Parameters
        ----------
        engine
            What is searched.
        queries
            With vectors, unless the engine embeds them.
        k, fetch_k, alpha
            In place of the options, unless None.
        where
            Filter on the metadata, see `Where`; neighbours have to pass it too.
        reader
            Identifies the chunk of a passage; by default `chunk_keys`.

        Returns
        -------
        list of Arrangement
            For each query; each the same as if it were asked alone.

        Raises
        ------
        ValueError
            If an option is out of range, and as ``engine.pool`` and `place_expanded`.
        """
        depth = self.depth(k, fetch_k)
        pools = engine.pool(queries, depth, where=where)
        return self._placed(engine, pools, k, alpha, where, reader)

    async def asearch(
        self,
        engine: Engine,
        queries: Sequence[Query],
        *,
        k: int | None = None,
        fetch_k: int | None = None,
        alpha: Alpha = None,
        where: Where = None,
        reader: ChunkReader | None = None,
    ) -> list[Arrangement]:
        """Async version of `search`; the engine is awaited, a thread does the rest."""
        depth = self.depth(k, fetch_k)
        pools = await engine.apool(queries, depth, where=where)
        return await asyncio.to_thread(self._placed, engine, pools, k, alpha, where, reader)

    def _placed(
        self,
        engine: Engine,
        pools: Sequence[Pool],
        k: int | None,
        alpha: Alpha | None,
        where: Where,
        reader: ChunkReader | None,
    ) -> list[Arrangement]:
        k = self.k if k is None else k
        alpha = self.alpha if alpha is None else alpha
        reader = reader or self.chunk_keys
        tokenizer = tokenizer_of(engine)
        rankings = [self.rank_pool(pool, k, alpha, reader, tokenizer) for pool in pools]
        if self.expand is None:
            return [self.place(ranking, reader) for ranking in rankings]
        source = neighbours_in(engine, reader, where)
        return [self.place_expanded(ranking, source, reader) for ranking in rankings]

    def depth(self, k: int | None = None, fetch_k: int | None = None) -> int:
        """Return how deep a call searches each leg; None stands for the configured value.

        Raises
        ------
        ValueError
            If `k` or `fetch_k` is below 1.
        """
        k = self.k if k is None else k
        fetch_k = self.fetch_k if fetch_k is None else fetch_k
        return max(check_count(k, "k"), check_count(fetch_k, "fetch_k"))

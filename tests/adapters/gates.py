"""How to speak with the retrieval gate of each framework; see `drivers`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import VectorStoreIndex
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import TransformRetriever
from llama_index.core.schema import QueryBundle

from langchain_posrag import ContextAwarenessGate
from llamaindex_posrag import GatedQueryEngine, load_gate
from shared_core import Passage
from shared_core.gating import ContextGate

from .drivers import LangChain, LlamaIndex, ids


class Answer(NamedTuple):
    """The prompt that a model gets, the ids and explanations of the passages, the decision."""

    prompt: str
    ids: list[str | None]
    why: list[dict[str, Any]]
    decision: dict[str, Any]


class LangChainGate(LangChain):
    """`ContextAwarenessGate`, a Runnable that writes the prompt."""

    no_model = "VectorStoreRetriever has no embeddings: give embeddings="
    no_passages = "does not expose its documents: give contexts="
    no_cosines = no_model

    def fit(
        self,
        retriever: Any,
        passages: Sequence[Passage] | None = None,
        model: Any = None,
        **options: Any,
    ) -> ContextAwarenessGate:
        """Fit a gate and put it in front of a retriever."""
        given = None if passages is None else self.items(passages)
        return ContextAwarenessGate.from_retriever(retriever, model, given, **options)

    def host(self, retriever: Any, gate: ContextGate, **options: Any) -> ContextAwarenessGate:
        """Put a gate in front of a retriever."""
        return ContextAwarenessGate(retriever=retriever, gate=gate, **options)

    def load_gate(
        self, path: Path, retriever: Any, model: Any = None, **own: Any
    ) -> ContextAwarenessGate:
        """Read a gate, and put it in front of a retriever."""
        return ContextAwarenessGate.load(path, retriever, model, **own)

    def decide(self, host: ContextAwarenessGate, question: Any, **options: Any) -> Answer:
        """Ask, with options of the retriever."""
        return self._answer(host.invoke(question, **options))

    def adecide(self, host: ContextAwarenessGate, question: Any) -> Answer:
        """Ask, awaited."""
        return self._answer(asyncio.run(host.ainvoke(question)))

    def _answer(self, found: Any) -> Answer:
        why = [each.metadata["posrag"] for each in found.documents]
        return Answer(found.text, ids(found.documents), why, found.decision)

    def plain(self, passages: Sequence[Passage], model: Any) -> Any:
        """Return a retriever of the framework's own."""
        store = InMemoryVectorStore.from_documents(self.items(passages), model)
        return store.as_retriever(search_kwargs={"k": 3})

    def rewriting(self, retriever: Any, text: str) -> Any:
        """Return a retriever that searches for a text, whatever it is asked."""

        def rewrite(question: str) -> str:
            return text

        return RunnableLambda(rewrite) | retriever


class Rewriting(HyDEQueryTransform):
    """Has a text embedded in place of the one that a model would write."""

    text: str

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return QueryBundle(query_bundle.query_str, custom_embedding_strs=[self.text])


class LlamaIndexGate(LlamaIndex):
    """`GatedQueryEngine` over a model that repeats its prompt."""

    no_model = "has no embedding model: give embed_model="
    no_passages = "does not expose its nodes: give nodes="
    no_cosines = "returns no cosines of the query: give embed_model="

    def fit(
        self,
        retriever: Any,
        passages: Sequence[Passage] | None = None,
        model: Any = None,
        **options: Any,
    ) -> GatedQueryEngine:
        """Fit a gate and put it in front of a retriever."""
        given = None if passages is None else self.items(passages)
        return GatedQueryEngine.from_retriever(
            retriever, MockLLM(), given, embed_model=model, **options
        )

    def host(self, retriever: Any, gate: ContextGate, **options: Any) -> GatedQueryEngine:
        """Put a gate in front of a retriever."""
        engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
        return GatedQueryEngine(engine, MockLLM(), gate, **options)

    def load_gate(
        self, path: Path, retriever: Any, model: Any = None, **own: Any
    ) -> GatedQueryEngine:
        """Read a gate, and put it in front of a retriever."""
        return self.host(retriever, load_gate(path, model or retriever.embed_model, **own))

    def decide(self, host: GatedQueryEngine, question: Any, **options: Any) -> Answer:
        """Ask, with options of the retriever."""
        engine = host.using(**options) if options else host
        return self._answer(engine.query(question))

    def adecide(self, host: GatedQueryEngine, question: Any) -> Answer:
        """Ask, awaited."""
        return self._answer(asyncio.run(host.aquery(question)))

    def _answer(self, found: Any) -> Answer:
        why = [each.posrag for each in found.source_nodes]
        return Answer(str(found), ids(found.source_nodes), why, found.metadata["retrieval"])

    def plain(self, passages: Sequence[Passage], model: Any) -> Any:
        """Return a retriever of the framework's own."""
        index = VectorStoreIndex(self.items(passages), embed_model=model)
        return index.as_retriever(similarity_top_k=3)

    def rewriting(self, retriever: Any, text: str) -> Any:
        """Return a retriever that searches for a text, whatever it is asked."""
        transform = Rewriting(llm=MockLLM())
        transform.text = text
        return TransformRetriever(retriever, transform)


GateAdapter = LangChainGate | LlamaIndexGate
"""The two sides."""

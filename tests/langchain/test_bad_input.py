"""What LangChain can be asked in its own ways, and what is told then; see the contract, too."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import ConfigurableField
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import PrivateAttr

from langchain_posrag import (
    AttentionPlacement,
    CAUSRetriever,
    GatedRetriever,
    HybridScoreCompressor,
    NeighbourSpanTransformer,
    PlacementTransformer,
    TwoRoundChain,
)
from shared_core import HybridIndex, NeighbourSpans


def test_every_step_checks_options_set_later(retriever: CAUSRetriever) -> None:
    """Set or copied; and what is refused stays as it was."""
    gate = GatedRetriever.from_retriever(retriever, policy=0.5)
    steps: list[Any] = [
        (retriever, "k", "3"),
        (retriever.model_copy(), "embeddings", None),
        (retriever.model_copy(deep=True), "expand", 2),
        (HybridScoreCompressor(), "k", 0),
        (PlacementTransformer(), "placement", PlacementTransformer("inverse")),
        (NeighbourSpanTransformer(), "expand", 3),
        (AttentionPlacement("model"), "estimator", "guess"),
        (TwoRoundChain("model"), "placement", "guess"),
        (gate, "gate", None),
    ]
    for step, name, value in steps:
        before = dict(step)
        refused = f"validation error for {type(step).__name__}"
        with pytest.raises(ValueError, match=refused):
            setattr(step, name, value)
        with pytest.raises(ValueError, match=refused):
            step.model_copy(update={name: value})
        with pytest.raises(ValueError, match="nonesuch"):
            step.model_copy(update={"nonesuch": value})
        assert dict(step) == before


def test_a_subclass_with_a_constructor_of_its_own_is_set_and_copied(
    documents: list[Document], embeddings: Embeddings
) -> None:
    class Ready(CAUSRetriever):
        _asked: list[str] = PrivateAttr(default_factory=list)

        def __init__(self, folder: str) -> None:
            super().__init__(index=HybridIndex(), embeddings=embeddings)
            self._asked.append(folder)

    ready = Ready("folder")
    ready.add_documents(documents)
    ready.k = 3
    copied = ready.model_copy(update={"k": 2})
    assert (len(ready.invoke("relu")), len(copied.invoke("relu"))) == (3, 2)
    assert copied.index is ready.index
    assert copied._asked == ["folder"]


def test_configurable_options_are_in_the_schema(retriever: CAUSRetriever) -> None:
    """By which a form or another program knows what may be configured."""
    configurable = retriever.configurable_fields(
        alpha=ConfigurableField(id="alpha"), expand=ConfigurableField(id="expand")
    )
    schema = configurable.config_schema().model_json_schema()["$defs"]
    alpha = schema["Configurable"]["properties"]["alpha"]
    assert {"type": "number", "minimum": 0, "maximum": 1} in alpha["anyOf"]
    assert {"type": "string", "const": "auto"} in alpha["anyOf"]
    assert {"title": "NeighbourSpans", "type": "object"} in schema.values()
    spans = NeighbourSpanTransformer(expand=NeighbourSpans())
    configurable = spans.configurable_fields(expand=ConfigurableField(id="expand"))
    schema = configurable.config_schema().model_json_schema()["$defs"]
    assert "expand" in schema["Configurable"]["properties"]


@pytest.mark.parametrize("over", ["index", "store"])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"k": 0}, "k must be an integer >= 1, got 0"),
        ({"fetch_k": 0}, "fetch_k must be an integer >= 1, got 0"),
        ({"alpha": 1.5}, "1.5"),
        ({"filter": {"page": {"$gt": 3}}}, "page"),
        ({"kk": 9}, "kk"),
    ],
)
async def test_a_call_refuses_what_it_cannot_mean(
    retriever: CAUSRetriever, over: str, options: dict[str, Any], named: str
) -> None:
    if over == "store":
        documents = [Document("relu", id="a")]
        store = InMemoryVectorStore.from_documents(documents, retriever.embeddings)
        retriever = CAUSRetriever.from_vectorstore(store, documents)
    with pytest.raises((TypeError, ValueError), match=named):
        retriever.invoke("relu", **options)
    with pytest.raises((TypeError, ValueError), match=named):
        await retriever.ainvoke("relu", **options)
    for found in retriever.batch(["a", "b"], return_exceptions=True, **options):
        assert isinstance(found, ValueError | TypeError)


def test_an_index_and_its_embeddings_belong_together(
    documents: list[Document], embeddings: Embeddings
) -> None:
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    over_store = CAUSRetriever.from_vectorstore(store, documents)
    with pytest.raises(ValueError, match="needs embeddings"):
        CAUSRetriever(index=HybridIndex())
    with pytest.raises(ValueError, match="brings its own"):
        CAUSRetriever(index=over_store.index, embeddings=embeddings)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ids": []}, "got 2 texts and 0 ids"),
        ({"ids": "ab"}, "ids must be a list, got the string 'ab'"),
        ({"metadatas": [{}]}, "got 2 texts and 1 metadatas"),
        ({"texts": "relu"}, "texts must be a list, got the string 'relu'"),
    ],
)
def test_texts_with_more_or_fewer_ids_or_metadatas(
    embeddings: Embeddings, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        CAUSRetriever.from_texts(
            **{"texts": ["relu layer", "pool"], "embeddings": embeddings, **options}
        )


def test_texts_and_what_belongs_to_them_may_come_one_by_one(embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_texts(
        iter(["relu layer", "pool"]),
        embeddings,
        ids=iter("ab"),
        metadatas=({"n": n} for n in range(2)),
    )
    assert retriever.get(iter("b")) == [Document("pool", id="b", metadata={"n": 1})]


async def test_one_id_is_not_taken_for_several(retriever: CAUSRetriever) -> None:
    for ids in ("d1", None):
        with pytest.raises(ValueError, match="ids"):
            retriever.get(ids)
        with pytest.raises(ValueError, match="ids"):
            await retriever.aget(ids)

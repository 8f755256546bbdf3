"""A clear error that names the value, or a harmless result that is documented."""

from typing import Any

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
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
from shared_core import HybridIndex, ProfileNotFoundError
from shared_core.neighbour_spans import NeighbourSpans

OPTIONS = [
    ({"k": 0}, "0"),
    ({"k": -3}, "-3"),
    ({"k": True}, "k must be an integer >= 1, got True"),
    ({"k": "3"}, "k must be an integer >= 1, got '3'"),
    ({"k": 3.0}, "k must be an integer >= 1, got 3.0"),
    ({"alpha": True}, "alpha must be a number in .* got True"),
    ({"alpha": "0.5"}, "alpha must be a number in .* got '0.5'"),
    ({"alpha": 1.5}, "1.5"),
    ({"alpha": "most"}, "most"),
    ({"fusion": "max"}, "max"),
    ({"placement": "v_shape"}, "v_shape"),
    ({"placement": PlacementTransformer("inverse")}, "1 validation .*\n.*\n.*unknown placement"),
    ({"placement": None}, "1 validation error .*\n.*\n.*unknown placement None; known: sequential"),
    ({"placement": "max_relevance", "psi": "always"}, "max_relevance"),
    ({"psi": -1.0}, "-1.0"),
    ({"psi": float("nan")}, "nan"),
    ({"psi": True}, "psi must be a number, a PositionProfile, its path .* got True"),
    ({"psi": [1.3]}, "1 validation error .*\n.*\n.*psi must be a number, .* got \\[1.3\\]"),
    ({"evidence": "feeling"}, "feeling"),
    ({"kk": 9}, "kk"),
]


@pytest.mark.parametrize(
    ("options", "named"),
    [*OPTIONS, ({"fetch_k": 0}, "0"), ({"fetch_k": "9"}, "fetch_k must be an integer >= 1")],
)
def test_a_retriever_refuses_what_it_cannot_mean(
    embeddings: Embeddings, options: dict[str, object], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        CAUSRetriever.from_documents([], embeddings, **options)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        *OPTIONS,
        ({"fetch_k": 0}, "0"),
        ({"expand": 2}, "expand"),
        ({"embeddings": None}, "a HybridIndex needs embeddings="),
    ],
)
def test_options_set_later_are_checked_alike(
    retriever: CAUSRetriever, options: dict[str, object], named: str
) -> None:
    """Both ways, and what is refused stays as it was."""
    name, value = next(iter(options.items()))
    for given in (retriever, retriever.model_copy(), retriever.model_copy(deep=True)):
        before = dict(given)
        with pytest.raises(ValueError, match=named):
            given.model_copy(update=options)
        with pytest.raises(ValueError, match=named):
            setattr(given, name, value)
        assert dict(given) == before
        assert len(given.invoke("relu")) == 5


def test_every_step_checks_options_set_later(retriever: CAUSRetriever) -> None:
    gate = GatedRetriever.from_retriever(retriever, policy=0.5)
    steps: list[Any] = [
        (HybridScoreCompressor(), "k", 0),
        (PlacementTransformer(), "placement", "v_shape"),
        (NeighbourSpanTransformer(), "expand", 3),
        (AttentionPlacement("model"), "estimator", "guess"),
        (TwoRoundChain("model"), "placement", "guess"),
        (gate, "gate", None),
        (gate, "retriever", retriever.model_copy(update={"include_scores": False})),
    ]
    for step, name, value in steps:
        before, refused = dict(step), f"validation error for {type(step).__name__}"
        with pytest.raises(ValueError, match=refused):
            setattr(step, name, value)
        with pytest.raises(ValueError, match=refused):
            step.model_copy(update={name: value})
        with pytest.raises(ValueError, match="nonesuch"):
            step.model_copy(update={"nonesuch": value})
        assert dict(step) == before


def test_numbers_set_later_are_python_s(retriever: CAUSRetriever) -> None:
    retriever.k = np.int64(3)
    copied = retriever.model_copy(update={"alpha": np.float32(0.5)})
    assert [type(option) for option in (copied.k, copied.alpha)] == [int, float]


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
    assert copied.model_fields_set == ready.model_fields_set


@pytest.mark.parametrize("step", ["retriever", "transformer"])
def test_the_schema_of_a_configurable_expansion(retriever: CAUSRetriever, step: str) -> None:
    """Whose function `count_tokens` has none of its own."""
    spans = NeighbourSpans()
    expanding = {
        "retriever": retriever.model_copy(update={"expand": spans}),
        "transformer": NeighbourSpanTransformer(expand=spans),
    }[step]
    configurable = expanding.configurable_fields(expand=ConfigurableField(id="expand"))

    schema = configurable.config_schema().model_json_schema()

    assert "expand" in schema["$defs"]["Configurable"]["properties"]
    assert {"title": "NeighbourSpans", "type": "object"} in schema["$defs"].values()


def test_numbers_of_numpy_are_python_s(embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_documents(
        [], embeddings, k=np.int64(3), fetch_k=np.int32(9), alpha=np.float32(0.5)
    )

    options = (retriever.k, retriever.fetch_k, retriever.alpha)
    assert options == (3, 9, 0.5)
    assert [type(option) for option in options] == [int, int, float]


def test_the_range_of_alpha_is_in_the_schema(embeddings: Embeddings) -> None:
    """By which a form or another program knows what may be configured."""
    retriever = CAUSRetriever.from_documents([], embeddings)
    configurable = retriever.configurable_fields(alpha=ConfigurableField(id="alpha"))

    schema = configurable.config_schema().model_json_schema()

    alpha = schema["$defs"]["Configurable"]["properties"]["alpha"]
    assert {"type": "number", "minimum": 0, "maximum": 1} in alpha["anyOf"]
    assert {"type": "string", "const": "auto"} in alpha["anyOf"]


@pytest.mark.parametrize(("options", "named"), OPTIONS)
def test_a_compressor_refuses_what_it_cannot_mean(options: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        HybridScoreCompressor(**options)


@pytest.mark.parametrize(("options", "named"), OPTIONS[10:])
def test_a_transformer_refuses_what_it_cannot_mean(options: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        PlacementTransformer(**options)


def test_a_profile_that_is_not_there(embeddings: Embeddings) -> None:
    with pytest.raises(ProfileNotFoundError, match="nobodys-model"):
        CAUSRetriever.from_documents([], embeddings, psi="nobodys-model")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"k": 0}, "k must be an integer >= 1, got 0"),
        ({"fetch_k": 0}, "fetch_k must be an integer >= 1, got 0"),
        ({"alpha": 1.5}, "1.5"),
        ({"filter": {"$and": []}}, "and"),
        ({"filter": {"page": {"$gt": 3}}}, "page"),
        ({"filter": "lang"}, "lang"),
    ],
)
async def test_a_call_refuses_what_it_cannot_mean(
    retriever: CAUSRetriever, options: dict[str, object], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        retriever.invoke("relu", **options)
    with pytest.raises(ValueError, match=named):
        await retriever.ainvoke("relu", **options)


async def test_a_call_refuses_unknown_arguments(retriever: CAUSRetriever) -> None:
    with pytest.raises(TypeError, match="kk"):
        retriever.invoke("relu", kk=9)
    with pytest.raises(TypeError, match="kk"):
        await retriever.ainvoke("relu", kk=9)


def test_the_index_settings_are_checked(embeddings: Embeddings) -> None:
    for option in ({"metric": "l3"}, {"dense": "flatter"}, {"variant": "plus"}):
        with pytest.raises(ValueError, match=next(iter(option.values()))):
            CAUSRetriever.from_documents([], embeddings, **option)


def test_an_index_and_its_embeddings_belong_together(
    documents: list[Document], embeddings: Embeddings
) -> None:
    store = InMemoryVectorStore.from_documents(documents, embeddings)
    over_store = CAUSRetriever.from_vectorstore(store, documents)

    with pytest.raises(ValueError, match="needs embeddings"):
        CAUSRetriever(index=HybridIndex())
    with pytest.raises(ValueError, match="brings its own"):
        CAUSRetriever(index=over_store.index, embeddings=embeddings)


async def test_an_empty_corpus_answers_nothing(embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_documents([], embeddings, psi="always")

    assert retriever.invoke("relu") == await retriever.ainvoke("relu") == []
    assert retriever.batch(["relu", "pool"]) == [[], []]
    assert retriever.get(["d1"]) == []


def test_a_corpus_of_which_all_is_deleted_answers_nothing(retriever: CAUSRetriever) -> None:
    retriever.delete(retriever.index.ids)

    assert retriever.invoke("relu") == []


@pytest.mark.parametrize("query", ["", "   ", "\n", "zzz unheard of"])
def test_a_query_without_a_known_word_is_answered_by_the_dense_leg(
    retriever: CAUSRetriever, query: str
) -> None:
    details = [document.metadata["posrag"] for document in retriever.invoke(query)]

    assert len(details) == 5
    assert {detail["sparse_norm"] for detail in details} == {0.0}
    assert sorted(detail["dense_rank"] for detail in details) == [0, 1, 2, 3, 4]


def test_a_filter_that_nothing_passes(retriever: CAUSRetriever) -> None:
    assert retriever.invoke("relu", filter={"lang": "fr"}) == []


def test_a_query_embedding_that_does_not_fit(documents: list[Document]) -> None:
    class Shrinking(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            return super().embed_query(text)[:3]

    retriever = CAUSRetriever.from_documents(documents, Shrinking(size=16))

    with pytest.raises(ValueError, match="dimension 16, got dimension 3"):
        retriever.invoke("relu")


TEXTS = ["relu layer", "pool"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ids": []}, "got 2 texts and 0 ids"),
        ({"ids": ["a", "b", "c"]}, "got 2 texts and 3 ids"),
        ({"ids": "ab"}, "ids must be a list, got the string 'ab'"),
        ({"metadatas": []}, "got 2 texts and 0 metadatas"),
        ({"metadatas": [{}]}, "got 2 texts and 1 metadatas"),
    ],
)
def test_texts_with_more_or_fewer_ids_or_metadatas(
    embeddings: Embeddings, options: dict[str, object], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        CAUSRetriever.from_texts(TEXTS, embeddings, **options)


def test_texts_and_what_belongs_to_them_may_come_one_by_one(embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_texts(
        iter(TEXTS), embeddings, ids=iter("ab"), metadatas=({"n": n} for n in range(2))
    )

    assert retriever.get(["b"]) == [Document("pool", id="b", metadata={"n": 1})]
    assert len(CAUSRetriever.from_texts(iter(TEXTS), embeddings).invoke("relu")) == 2


async def test_one_where_several_are_wanted(
    retriever: CAUSRetriever, embeddings: Embeddings
) -> None:
    document = Document("relu", id="x")

    with pytest.raises(ValueError, match="texts must be a list, got the string 'relu'"):
        CAUSRetriever.from_texts("relu", embeddings)
    with pytest.raises(ValueError, match=r"documents must be a list, got the Document\(id='x'"):
        CAUSRetriever.from_documents(document, embeddings)
    with pytest.raises(ValueError, match=r"got the Document\(id='x'"):
        retriever.add_documents(document)
    with pytest.raises(ValueError, match=r"got the Document\(id='x'"):
        await retriever.aadd_documents(document)
    assert retriever.get(["x"]) == []
    assert retriever.add_documents(Document("gelu", id=id) for id in "xy") == ["x", "y"]


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        (
            ["relu", "gelu"],
            r"documents\[0\] must be a Document, got 'relu'; from_texts takes texts",
        ),
        ([Document("relu"), {"page_content": "x"}], r"documents\[1\] must be a Document, got {"),
        ([Document("a", id="x"), Document("b", id="x")], "id 'x' occurs twice"),
        ([Document("a"), Document("b", id="")], "id of passage 1 must be a non-empty string"),
    ],
)
async def test_what_cannot_be_added_is_refused_before_it_is_embedded(
    documents: list[Any], message: str
) -> None:
    """Embedding takes long, and often costs."""

    class Unasked(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise AssertionError(f"asked to embed {texts}")

    embeddings = Unasked(size=4)
    retriever = CAUSRetriever(embeddings=embeddings)
    with pytest.raises(ValueError, match=message):
        CAUSRetriever.from_documents(documents, embeddings)
    with pytest.raises(ValueError, match=message):
        retriever.add_documents(documents)
    with pytest.raises(ValueError, match=message):
        await retriever.aadd_documents(documents)

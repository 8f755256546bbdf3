"""What comes back from one call."""

import copy
import json
import pickle
import warnings

import pytest
from langchain_core._api.beta_decorator import LangChainBetaWarning
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda, RunnablePassthrough

from langchain_posrag import CAUSRetriever, PlacementTransformer
from shared_core import PLACEMENTS, Passage, PositionProfile
from shared_core.placement import UShape
from shared_core.types import Query

QUERY = "the relu layer"
PROFILE = PositionProfile(model="m", accuracy=(0.9, 0.2, 0.8), distraction=(0.1, 0.9, 0.3))


def ids(documents: list[Document]) -> list[str | None]:
    return [document.id for document in documents]


def test_documents_are_those_of_the_core_by_slot(
    retriever: CAUSRetriever, embeddings: Embeddings
) -> None:
    core = retriever.caus.search(retriever.index, [Query(QUERY, embeddings.embed_query(QUERY))])[0]

    found = retriever.invoke(QUERY)

    assert ids(found) == [passage.id for passage in core.passages]
    assert [document.metadata["posrag"] for document in found] == core.explain()
    assert [document.metadata["score"] for document in found] == core.scores


def test_best_document_is_the_one_both_legs_prefer(retriever: CAUSRetriever) -> None:
    text = retriever.get(["d1"])[0].page_content

    best = retriever.invoke(text, k=1)[0]

    assert best.id == "d1"
    assert best.metadata["score"] == pytest.approx(1.0, abs=1e-5)
    assert best.metadata["posrag"]["dense_rank"] == best.metadata["posrag"]["sparse_rank"] == 0


def test_texts_ids_and_metadata_survive(
    retriever: CAUSRetriever, documents: list[Document]
) -> None:
    original = {document.id: document for document in documents}
    for found in retriever.invoke(QUERY):
        del found.metadata["score"], found.metadata["posrag"]
        assert found == original[found.id]


def test_a_document_is_an_ordinary_document(retriever: CAUSRetriever) -> None:
    found = retriever.invoke(QUERY)[0]
    ordinary = Document(found.page_content, id=found.id, metadata=found.metadata)

    assert found == ordinary
    assert found.model_fields_set == ordinary.model_fields_set
    assert found.model_dump() == ordinary.model_dump()
    assert Document.model_validate_json(found.model_dump_json()) == ordinary
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == ordinary
    assert repr(found) == repr(ordinary)


def test_metadata_is_json(retriever: CAUSRetriever) -> None:
    for document in retriever.invoke(QUERY):
        assert json.loads(json.dumps(document.metadata)) == document.metadata
        assert type(document.metadata["score"]) is float


def test_scores_can_be_left_out(documents: list[Document], embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_documents(documents, embeddings, include_scores=False)

    for found in retriever.invoke(QUERY):
        assert found == next(document for document in documents if document.id == found.id)


def test_a_score_of_the_users_own_stays(embeddings: Embeddings) -> None:
    mine = Document("relu", id="a", metadata={"score": "A+"})

    found = CAUSRetriever.from_documents([mine], embeddings).invoke("relu")[0]

    assert found.metadata["score"] == "A+"
    assert isinstance(found.metadata["posrag"]["score"], float)


def test_a_score_of_an_earlier_search_is_replaced(
    retriever: CAUSRetriever, embeddings: Embeddings
) -> None:
    again = CAUSRetriever.from_documents(retriever.invoke(QUERY), embeddings)

    for document in again.invoke("pool"):
        assert document.metadata["score"] == document.metadata["posrag"]["score"]
        assert document.metadata["posrag"]["placement"] == "sequential"


def test_nothing_is_shared_with_the_caller(
    documents: list[Document], embeddings: Embeddings
) -> None:
    before = copy.deepcopy(documents)
    retriever = CAUSRetriever.from_documents(documents, embeddings)
    expected = retriever.invoke(QUERY)
    assert documents == before

    documents[0].page_content = "changed"
    for document in documents:
        document.metadata["tags"]["kind"].append("changed")
    found = retriever.invoke(QUERY)
    for document in (*found, *retriever.get(["d0"])):
        document.metadata["tags"]["kind"].append("changed")
        document.metadata["lang"] = "changed"

    assert retriever.invoke(QUERY) == expected
    assert retriever.get(["d0"]) == before[:1]


@pytest.mark.parametrize("k", [1, 3, 14, 100])
def test_k_of_a_call(retriever: CAUSRetriever, k: int) -> None:
    assert len(retriever.invoke(QUERY, k=k)) == min(k, 14)


def test_alpha_of_a_call_decides_between_the_legs(retriever: CAUSRetriever) -> None:
    dense = retriever.invoke(QUERY, alpha=1.0, k=1)[0].metadata["posrag"]
    sparse = retriever.invoke(QUERY, alpha=0.0, k=1)[0].metadata["posrag"]

    assert (dense["dense_rank"], sparse["sparse_rank"]) == (0, 0)
    assert (dense["alpha"], sparse["alpha"]) == (1.0, 0.0)
    assert 0 <= retriever.invoke(QUERY, alpha="auto")[0].metadata["posrag"]["alpha"] <= 1


@pytest.mark.parametrize(
    "where", [{"lang": "en"}, {"lang": ["en"]}, lambda metadata: metadata["lang"] == "en"]
)
def test_a_filter_holds_in_both_legs(retriever: CAUSRetriever, where: object) -> None:
    found = retriever.invoke(QUERY, filter=where, k=14, alpha=0.5)

    assert {document.metadata["lang"] for document in found} == {"en"}
    assert len(found) == 7


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("k", range(1, 13))
def test_every_placement_gives_its_own_order(
    documents: list[Document], embeddings: Embeddings, placement: str, k: int
) -> None:
    retriever = CAUSRetriever.from_documents(
        documents, embeddings, k=k, placement=placement, psi=PROFILE
    )
    expected = PLACEMENTS[placement]()(k, PROFILE)

    details = [document.metadata["posrag"] for document in retriever.invoke(QUERY)]

    assert tuple(detail["rank"] for detail in details) == expected
    assert [detail["slot"] for detail in details] == list(range(k))


def test_without_psi_the_ranked_order_is_kept(
    documents: list[Document], embeddings: Embeddings
) -> None:
    retriever = CAUSRetriever.from_documents(documents, embeddings, k=5)

    details = [document.metadata["posrag"] for document in retriever.invoke(QUERY)]

    assert [detail["rank"] for detail in details] == [0, 1, 2, 3, 4]
    assert {detail["gate"] for detail in details} == {"shut"}


def test_a_placement_as_an_object(documents: list[Document], embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_documents(
        documents, embeddings, k=4, placement=UShape("end"), psi="always"
    )

    found = retriever.invoke(QUERY)

    assert [document.metadata["posrag"]["rank"] for document in found] == [1, 3, 2, 0]


def test_options_changed_later_take_effect(retriever: CAUSRetriever) -> None:
    retriever.k = 2
    copied = retriever.model_copy(update={"k": 3, "psi": "never"})

    assert len(retriever.invoke(QUERY)) == 2
    assert [d.metadata["posrag"]["gate"] for d in copied.invoke(QUERY)] == ["shut"] * 3
    assert copied.index is retriever.index


def test_configurable_fields_share_the_index(
    retriever: CAUSRetriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = []
    search = type(retriever.index).search

    def recording(index: object, *args: object, **kwargs: object) -> object:
        searched.append(index)
        return search(index, *args, **kwargs)

    monkeypatch.setattr(type(retriever.index), "search", recording)
    configurable = retriever.configurable_fields(
        k=ConfigurableField(id="k"), psi=ConfigurableField(id="psi")
    )

    found = configurable.invoke(QUERY, config={"configurable": {"k": 3, "psi": "never"}})

    assert [document.metadata["posrag"]["gate"] for document in found] == ["shut"] * 3
    assert len(configurable.invoke(QUERY)) == 5
    assert all(index is retriever.index for index in searched)


def test_in_a_chain(retriever: CAUSRetriever) -> None:
    prompt = ChatPromptTemplate.from_template("{context}\n{question}")
    answer = RunnableLambda(lambda value: value.to_string())
    context = (
        retriever
        | PlacementTransformer("u_shape")
        | (lambda docs: " ".join(document.id for document in docs))
    )
    inputs = {"context": context, "question": RunnablePassthrough()}
    chain = inputs | prompt | answer | StrOutputParser()

    assert " ".join(ids(retriever.invoke(QUERY))) in chain.invoke(QUERY)
    assert chain.batch([QUERY, "pool"]) == [chain.invoke(QUERY), chain.invoke("pool")]


def test_a_copy_is_a_retriever_of_its_own(retriever: CAUSRetriever) -> None:
    """To another process, say: it finds the same, and what it deletes stays with the original."""
    before = retriever.invoke(QUERY)
    for copied in (
        copy.deepcopy(retriever),
        retriever.model_copy(deep=True),
        pickle.loads(pickle.dumps(retriever)),
    ):
        assert copied.invoke(QUERY) == before
        copied.delete([document.id for document in before])
        assert copied.invoke(QUERY) != before
    assert retriever.invoke(QUERY) == before


def test_from_texts(embeddings: Embeddings) -> None:
    retriever = CAUSRetriever.from_texts(
        ["conv", "relu"], embeddings, metadatas=[{"n": 1}, {"n": 2}], ids=["a", "b"], k=1
    )

    found = retriever.invoke("relu")[0]

    assert (found.id, found.page_content, found.metadata["n"]) == ("b", "relu", 2)


def test_tokenizer_of_the_callers_own(embeddings: Embeddings) -> None:
    documents = [Document("aqb", id="1"), Document("bqc", id="2")]
    retriever = CAUSRetriever.from_documents(
        documents, embeddings, alpha=0.0, tokenizer=lambda text: text.split("q")
    )

    assert ids(retriever.invoke("cqd", k=1)) == ["2"]


def test_index_of_the_core_serves_as_it_is(retriever: CAUSRetriever) -> None:
    retriever.index.add([Passage("new", "swish")], [[1.0] * 16])

    assert "new" in ids(retriever.invoke("swish", k=14, alpha=0.0)[:1])


def test_tracing_parameters_name_the_parts(retriever: CAUSRetriever) -> None:
    assert retriever._get_ls_params() == {
        "ls_retriever_name": "caus",
        "ls_embedding_provider": "DeterministicFakeEmbedding",
    }


def test_the_beta_warning_of_langchain_does_not_reach_users(
    documents: list[Document], embeddings: Embeddings
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", LangChainBetaWarning)
        retriever = CAUSRetriever.from_documents(documents, embeddings)
        assert len(retriever.invoke(QUERY)) == 10

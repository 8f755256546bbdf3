"""Spans out of the retriever, and as a step behind any other one."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.runnables import RunnableLambda
from langchain_core.stores import InMemoryByteStore, InMemoryStore
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter

from langchain_posrag import CAUSRetriever, NeighbourSpanTransformer, PlacementTransformer
from shared_core.index import ChunkKeys
from shared_core.neighbour_spans import NeighbourSpans

EMBEDDINGS = DeterministicFakeEmbedding(size=16)
WINDOW = NeighbourSpans(window=1, token_budget=None)
STEPS = [
    "To reset the pump, first close the valve.",
    "Then open the drain and wait a minute.",
    "At last press the green button twice.",
    "The pump hums when it is ready.",
    "Call the service if it does not.",
]


def chunks(document: str = "manual", **metadata: Any) -> list[Document]:
    return [
        Document(
            text, id=f"{document}{n}", metadata={"doc_id": document, "chunk_id": n, **metadata}
        )
        for n, text in enumerate(STEPS)
    ]


def texts(documents: list[Document]) -> list[str]:
    return [document.page_content for document in documents]


def joined(first: int, last: int) -> str:
    return "\n".join(STEPS[first : last + 1])


@pytest.fixture
def retriever() -> CAUSRetriever:
    return CAUSRetriever.from_documents(
        [*chunks(), *chunks("other")], EMBEDDINGS, k=1, alpha=0.0, expand=WINDOW
    )


@pytest.fixture
def transformer() -> NeighbourSpanTransformer:
    return NeighbourSpanTransformer.from_documents(chunks(), expand=WINDOW)


def test_a_retriever_gives_spans_with_the_seeds_id_and_metadata(retriever: CAUSRetriever) -> None:
    """And says how they came about; the index keeps its passages as they are."""
    (found,) = retriever.invoke("open the drain")
    assert (found.id, found.page_content) == ("manual1", joined(0, 2))
    assert (found.metadata["doc_id"], found.metadata["chunk_id"]) == ("manual", 1)
    why = found.metadata["posrag"]
    assert why["chunks"] == ["manual0", "manual1", "manual2"]
    assert why["seeds"] == {"manual1": why["similarity"]}
    assert found.metadata["score"] == why["score"]
    assert type(why["continuity"]) is float
    assert texts(retriever.get(["manual1"])) == [STEPS[1]]


async def test_all_ways_to_call_give_the_same(retriever: CAUSRetriever) -> None:
    """invoke, ainvoke, batch and abatch, with k and filters of the call."""
    queries = ["open the drain", "green button", "service"]
    alone = [retriever.invoke(query, k=3) for query in queries]
    assert [await retriever.ainvoke(query, k=3) for query in queries] == alone
    assert retriever.batch(queries, k=3) == alone
    assert await retriever.abatch(queries, k=3) == alone
    only = {"doc_id": "other"}
    for query in queries:
        for found in retriever.invoke(query, k=3, filter=only):
            assert {id_[:5] for id_ in found.metadata["posrag"]["chunks"]} == {"other"}


@pytest.mark.parametrize("where", [{"tenant": "a"}, lambda metadata: metadata["tenant"] == "a"])
@pytest.mark.parametrize("over", ["index", "vector store"])
def test_no_neighbour_comes_from_beyond_the_filter(where: Any, over: str) -> None:
    """A chunk of another tenant stands in the middle of the document."""
    documents = chunks(tenant="a")
    documents[2].metadata["tenant"] = "b"
    options: dict[str, Any] = {"k": 1, "alpha": 0.0, "expand": NeighbourSpans(window=3)}
    if over == "index":
        retriever = CAUSRetriever.from_documents(documents, EMBEDDINGS, **options)
    else:
        store = InMemoryVectorStore.from_documents(documents, EMBEDDINGS)
        retriever = CAUSRetriever.from_vectorstore(store, documents, **options)
    (found,) = retriever.invoke("open the drain", filter=where)
    assert found.page_content == joined(0, 1)
    assert retriever.invoke("open the drain")[0].page_content == joined(0, 4)


def test_changes_of_the_index_are_seen(retriever: CAUSRetriever) -> None:
    """The table of places is built once; adding and deleting must reach it."""
    retriever.invoke("open the drain")
    retriever.delete(["manual2"])
    (found,) = retriever.invoke("open the drain")
    assert (found.page_content, found.metadata["posrag"]["after"]) == (joined(0, 1), "missing")
    retriever.add_documents([chunks()[2].model_copy(update={"page_content": "Press it."})])
    (found,) = retriever.invoke("open the drain")
    assert found.page_content == joined(0, 1) + "\nPress it."


def test_a_vector_store_takes_neighbours_from_its_sparse_leg() -> None:
    """Through adding and deleting; ids that only the store knows do no harm."""
    store = InMemoryVectorStore(EMBEDDINGS)
    retriever = CAUSRetriever.from_vectorstore(store, [], k=1, alpha=0.0, expand=WINDOW)
    retriever.add_documents(chunks())
    (found,) = retriever.invoke("open the drain")
    assert found.page_content == joined(0, 2)
    retriever.delete(["manual0"])
    (found,) = retriever.invoke("open the drain")
    assert (found.page_content, found.metadata["posrag"]["before"]) == (joined(1, 2), "document")
    nameless = [document.model_copy(update={"id": None}) for document in chunks()]
    store = InMemoryVectorStore.from_documents(nameless, EMBEDDINGS)
    retriever = CAUSRetriever.from_vectorstore(store, nameless, k=1, alpha=0.0, expand=WINDOW)
    assert texts(retriever.invoke("open the drain")) == [joined(0, 2)]


def test_the_options_are_saved(retriever: CAUSRetriever, tmp_path: Path) -> None:
    """Names of the metadata too; a tokenizer has to be given again."""
    keys = ChunkKeys(number="chunk_id", heading=("title",))
    retriever = retriever.model_copy(update={"chunk_keys": keys})
    retriever.save(tmp_path / "index")
    loaded = CAUSRetriever.load(tmp_path / "index", EMBEDDINGS)
    assert (loaded.expand, loaded.chunk_keys) == (WINDOW, keys)
    assert loaded.invoke("open the drain") == retriever.invoke("open the drain")
    counted = retriever.model_copy(update={"expand": NeighbourSpans(count_tokens=len)})
    counted.save(tmp_path / "counted")
    with pytest.raises(ValueError, match="give expand= again"):
        CAUSRetriever.load(tmp_path / "counted", EMBEDDINGS)
    assert CAUSRetriever.load(tmp_path / "counted", EMBEDDINGS, expand=None).expand is None


def test_the_legs_are_traced_as_they_found_passages(retriever: CAUSRetriever) -> None:
    """Spans are what comes out at the end; no leg has found one."""

    class Legs(BaseCallbackHandler):
        def __init__(self) -> None:
            self.texts: list[list[str]] = []

        def on_retriever_end(self, documents: Any, **kwargs: Any) -> None:
            self.texts.append(texts(documents))

    legs = Legs()
    retriever.invoke("open the drain", {"callbacks": [legs]})
    assert legs.texts == [[STEPS[1]], [STEPS[1]], [joined(0, 2)]]


def test_nothing_of_the_callers_is_changed(transformer: NeighbourSpanTransformer) -> None:
    """Neither what was retrieved nor the chunks; results are the caller's own."""
    given = chunks(nested={"tags": ["x"]})[1:3]
    before = copy.deepcopy(given)
    (found,) = transformer.invoke(given)
    found.metadata["nested"]["tags"].append("y")
    assert given == before
    assert texts(transformer.invoke(given)) == [joined(0, 3)]


def test_it_serves_wherever_a_transformer_does(transformer: NeighbourSpanTransformer) -> None:
    """In a pipe, in a pipeline, in a compression retriever, and called by hand."""
    store = InMemoryVectorStore.from_documents(chunks(), EMBEDDINGS)
    retriever = store.as_retriever(search_kwargs={"k": 2})
    expected = transformer.invoke(retriever.invoke("pump"))
    placing = PlacementTransformer("sequential")
    assert (retriever | transformer).invoke("pump") == expected
    given = retriever.invoke("pump")
    assert transformer.transform_documents(given) == expected
    assert [*transformer.compress_documents(given, "pump")] == expected
    pipeline = DocumentCompressorPipeline(transformers=[transformer, placing])
    compressing = ContextualCompressionRetriever(base_compressor=pipeline, base_retriever=retriever)
    assert texts(compressing.invoke("pump")) == texts(expected)


async def test_async_gives_the_same(transformer: NeighbourSpanTransformer) -> None:
    """Also as LangChain's own async entry points call it."""
    given = chunks()[1:4:2]
    expected = transformer.invoke(given)
    assert await transformer.ainvoke(given) == expected
    assert [*await transformer.atransform_documents(given)] == expected
    assert [*await transformer.acompress_documents(given, "pump")] == expected


def test_a_later_placement_moves_spans_whole() -> None:
    """And keeps what they say of themselves."""
    documents = [chunk for name in "abc" for chunk in chunks(name)]
    transformer = NeighbourSpanTransformer.from_documents(documents, expand=WINDOW)
    spans = transformer.invoke(documents[1::5])
    placed = (RunnableLambda(lambda given: given) | PlacementTransformer("inverse")).invoke(spans)
    worst_first = sorted(spans, key=lambda span: -span.metadata["posrag"]["rank"])
    assert [span.id for span in placed] == [span.id for span in worst_first]
    assert texts(placed) == texts(worst_first)
    assert placed[0].metadata["posrag"]["chunks"] == worst_first[0].metadata["posrag"]["chunks"]


def test_what_earlier_steps_said_stays() -> None:
    """The score that the span was made from lives on as its similarity."""
    (given,) = CAUSRetriever.from_documents(chunks(), EMBEDDINGS, k=1).invoke("open the drain")
    transformer = NeighbourSpanTransformer.from_documents(chunks(), expand=WINDOW)
    (found,) = transformer.invoke([given])
    why = found.metadata["posrag"]
    assert why["dense"] == given.metadata["posrag"]["dense"]
    assert why["similarity"] == given.metadata["score"]
    assert found.metadata["score"] == why["score"] > why["similarity"]
    silent = NeighbourSpanTransformer.from_documents(chunks(), expand=WINDOW, include_scores=False)
    assert silent.invoke([given])[0].metadata in [chunk.metadata for chunk in chunks()]


def test_without_chunks_what_was_retrieved_is_merged() -> None:
    """Neighbours among the results become one document, none is fetched."""
    found = NeighbourSpanTransformer().invoke([chunks()[n] for n in (3, 1, 2, 0)][:3])
    assert texts(found) == [joined(1, 3)]
    assert NeighbourSpanTransformer().invoke([]) == []


def test_scores_are_read_from_the_metadata() -> None:
    """Under a name of one's own, and as distances; what has none counts as the least."""
    given = [chunks(name)[2] for name in "abc"]
    for document, score in zip(given, (0.2, 0.9, None), strict=True):
        document.metadata["far"] = score
    order = NeighbourSpans(order="score_descending")
    found = NeighbourSpanTransformer(expand=order, score_key="far").invoke(given)
    assert [document.metadata["doc_id"] for document in found] == ["b", "a", "c"]
    assert [document.metadata["posrag"]["similarity"] for document in found] == [0.9, 0.2, 0.2]
    nearest = NeighbourSpanTransformer(expand=order, score_key="far", higher_is_better=False)
    assert [document.metadata["doc_id"] for document in nearest.invoke(given)] == ["a", "b", "c"]
    given[0].metadata["far"] = "near"
    with pytest.raises(ValueError, match=r"metadata\['far'\] must be a number, got 'near'"):
        nearest.invoke(given)


@pytest.mark.parametrize("overlap", [0, 30])
def test_the_start_index_of_a_splitter_tells_neighbours(overlap: int) -> None:
    """What overlaps stands there once: the span is a stretch of the text."""
    text = "\n\n".join(f"Paragraph {n} is about {n * 7} things and ends." for n in range(30))
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=120, chunk_overlap=overlap, add_start_index=True
    )
    whole = [Document(text, metadata={"source": name}) for name in ("a.md", "b.md")]
    split = splitter.split_documents(whole)
    transformer = NeighbourSpanTransformer.from_documents(split, expand=WINDOW)
    for chunk in split[1:8]:
        (found,) = transformer.invoke([chunk])
        assert found.page_content in text
        assert len(found.page_content) > 2 * len(chunk.page_content)
        assert found.metadata["source"] == chunk.metadata["source"]


@pytest.mark.filterwarnings("error")
def test_the_headings_of_a_splitter_tell_its_sections_apart() -> None:
    """A second splitter counts anew in each section; no query raises, nothing is spliced."""
    sections = [
        " ".join(f"In {name} the step {n} calls {name.lower()}{n * 7}." for n in range(9))
        for name in ("Install", "Remove", "Repair")
    ]
    text = "# Guide\n\n" + "\n\n".join(f"## Part {n}\n\n{t}" for n, t in enumerate(sections))
    whole = MarkdownHeaderTextSplitter([("#", "Header 1"), ("##", "Header 2")]).split_text(text)
    for section in whole:
        section.metadata["source"] = "guide.md"
    split = RecursiveCharacterTextSplitter(
        chunk_size=120, chunk_overlap=20, add_start_index=True
    ).split_documents(whole)
    transformer = NeighbourSpanTransformer.from_documents(split, expand=WINDOW)
    embeddings = DeterministicFakeEmbedding(size=8)
    retriever = CAUSRetriever.from_documents(split, embeddings, k=1, alpha=0.0, expand=WINDOW)
    for chunk in split:
        for (found,) in (transformer.invoke([chunk]), retriever.invoke(chunk.page_content)):
            assert any(found.page_content in section for section in sections)
            assert len(found.page_content) > len(chunk.page_content)


def test_a_store_is_read_once_a_query() -> None:
    """For all seeds together, under keys of the caller's own."""

    class Counting(InMemoryStore):
        reads = 0

        def mget(self, keys: Any) -> list[Any]:
            self.reads += 1
            return super().mget(keys)

    store = Counting()
    store.mset([(f"c/{c.metadata['doc_id']}/{c.metadata['chunk_id']}", c) for c in chunks()])
    transformer = NeighbourSpanTransformer.from_store(store, key="c/{}/{}".format, expand=WINDOW)
    nameless = [chunk.model_copy(update={"id": None}) for chunk in chunks()]
    assert texts(transformer.invoke([nameless[0], nameless[2]])) == [joined(0, 3)]
    assert store.reads == 1
    store.mdelete(["c/manual/1"])
    found = transformer.invoke([nameless[0], nameless[2]])
    assert sorted(texts(found)) == sorted([STEPS[0], joined(2, 3)])
    assert {document.metadata["posrag"]["before"] for document in found} == {"missing"}


def test_a_store_of_bytes_is_refused_with_the_way_out() -> None:
    """What LangChain's file store gives is no document."""
    store = InMemoryByteStore()
    store.mset([("manual:1", b"Then")])
    transformer = NeighbourSpanTransformer.from_store(store, expand=WINDOW)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"a bytes under 'manual:1'.*create_kv_docstore"):
        transformer.invoke(chunks()[:1])


def test_a_store_that_cannot_know_the_neighbours_says_so() -> None:
    """Keys made otherwise, or chunks placed by offsets alone: every span would be one chunk."""
    store = InMemoryStore()
    store.mset([(f"manual/{n}", chunk) for n, chunk in enumerate(chunks())])
    transformer = NeighbourSpanTransformer.from_store(store, expand=WINDOW)
    with pytest.warns(UserWarning, match=r"nothing under 'manual:1'.*key="):
        assert texts(transformer.invoke(chunks()[1:2])) == STEPS[1:2]
    placed = Document(STEPS[1], metadata={"source": "manual", "start_index": 42})
    with pytest.warns(UserWarning, match=r"under 'chunk_id'.*from_documents"):
        assert texts(transformer.invoke([placed])) == STEPS[1:2]


def test_rows_of_one_file_that_start_alike_are_told_apart_by_a_key() -> None:
    """As a CSV loader makes them: the message leads to what helps, not to the next error."""
    rows = [
        Document(text, metadata={"source": "a.csv", "row": row, "start_index": 0})
        for row, text in enumerate(STEPS)
    ]
    with pytest.raises(ValueError, match=r"'a.csv@0-\d+'.*ChunkKeys\(document=\.\.\.\)"):
        NeighbourSpanTransformer.from_documents(rows)
    keys = ChunkKeys(document="row")
    transformer = NeighbourSpanTransformer.from_documents(rows, expand=WINDOW, chunk_keys=keys)
    assert texts(transformer.invoke(rows[1:2])) == STEPS[1:2]


def test_missing_numbers_and_holes_end_a_span(transformer: NeighbourSpanTransformer) -> None:
    """A document without a number comes back as it is; nothing reaches across a hole."""
    unnumbered = Document("On its own.", metadata={"doc_id": "manual"})
    (found,) = transformer.invoke([unnumbered])
    assert (found.page_content, found.id) == ("On its own.", None)
    holed = NeighbourSpanTransformer.from_documents(chunks()[::2], expand=WINDOW)
    (found,) = holed.invoke([chunks()[2]])
    assert (found.page_content, found.metadata["posrag"]["before"]) == (STEPS[2], "missing")


def test_empty_texts_leave_no_trace() -> None:
    """Neither as a neighbour nor as a seed."""
    documents = chunks()
    documents[2] = documents[2].model_copy(update={"page_content": ""})
    transformer = NeighbourSpanTransformer.from_documents(
        documents, expand=NeighbourSpans(window=2, token_budget=None)
    )
    (found,) = transformer.invoke([documents[1]])
    assert found.page_content == "\n".join([STEPS[0], STEPS[1], STEPS[3]])
    assert transformer.invoke([documents[2]])[0].page_content.startswith(STEPS[0])


@pytest.mark.parametrize("number", ["intro", 1.5, True])
def test_numbers_that_are_no_integers_are_refused(number: object) -> None:
    """By the transformer when it reads them, by the retriever when it first needs them."""
    bad = Document("text", id="bad", metadata={"doc_id": "manual", "chunk_id": number})
    with pytest.raises(ValueError, match=r"metadata\['chunk_id'\] of 'bad' must be an integer"):
        NeighbourSpanTransformer.from_documents([bad])
    with pytest.raises(ValueError, match=r"metadata\['chunk_id'\] of 'bad' must be an integer"):
        NeighbourSpanTransformer().invoke([bad])
    retriever = CAUSRetriever.from_documents([bad], EMBEDDINGS, expand=WINDOW)
    with pytest.raises(ValueError, match="must be an integer"):
        retriever.invoke("text")


def test_names_of_the_metadata_are_the_callers() -> None:
    """Here the number is a page's, and the document a file."""
    documents = [Document(text, metadata={"file": "f", "n": n}) for n, text in enumerate(STEPS)]
    keys = ChunkKeys(document="file", number="n")
    transformer = NeighbourSpanTransformer.from_documents(documents, chunk_keys=keys, expand=WINDOW)
    assert texts(transformer.invoke(documents[1:2])) == [joined(0, 2)]
    retriever = CAUSRetriever.from_documents(
        documents, EMBEDDINGS, k=1, alpha=0.0, expand=WINDOW, chunk_keys=keys
    )
    assert texts(retriever.invoke("open the drain")) == [joined(0, 2)]


def test_a_budget_smaller_than_a_chunk_is_refused(retriever: CAUSRetriever) -> None:
    """By both, with the number to change."""
    small = NeighbourSpans(token_budget=3)
    with pytest.raises(ValueError, match="token_budget=3 is smaller than the best chunk"):
        retriever.model_copy(update={"expand": small}).invoke("open the drain")
    with pytest.raises(ValueError, match="token_budget=3 is smaller than the best chunk"):
        NeighbourSpanTransformer(expand=small).invoke(chunks())


def test_hits_that_the_budget_leaves_out_are_named(retriever: CAUSRetriever) -> None:
    """In each span: nothing else would tell that they were found."""
    expand = NeighbourSpans(window=0, token_budget=16, count_tokens=lambda text: len(text.split()))
    every = retriever.model_copy(update={"expand": None, "k": 6}).invoke("open the drain")
    found = retriever.model_copy(update={"expand": expand, "k": 6}).invoke("open the drain")
    why = [json.loads(json.dumps(document.metadata["posrag"])) for document in found]
    kept = {id for each in why for id in each["seeds"]}
    assert 1 <= len(kept) < 6
    for each in why:
        assert {*each["dropped"]} == {document.id for document in every} - kept
    scored = [
        Document(chunk.page_content, id=chunk.id, metadata={**chunk.metadata, "score": -rank})
        for rank, chunk in enumerate(chunks()[::2])
    ]
    transformer = NeighbourSpanTransformer.from_documents(chunks(), expand=expand)
    assert [document.metadata["posrag"]["dropped"] for document in transformer.invoke(scored)] == [
        ["manual4"]
    ] * 2


def test_embeddings_tell_whether_a_new_heading_goes_on() -> None:
    """Without them every heading stops."""
    documents = chunks()
    for number, document in enumerate(documents):
        document.metadata["Header 1"] = "Reset" if number < 2 else "Ready"

    class Same(DeterministicFakeEmbedding):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0, 2.0] for _ in texts]

    blind = NeighbourSpanTransformer.from_documents(documents, expand=WINDOW)
    seeing = NeighbourSpanTransformer.from_documents(
        documents, expand=WINDOW, embeddings=Same(size=2)
    )
    (stopped,), (went_on,) = blind.invoke(documents[1:2]), seeing.invoke(documents[1:2])
    assert (stopped.page_content, stopped.metadata["posrag"]["after"]) == (joined(0, 1), "heading")
    assert went_on.page_content == joined(0, 2)


def test_options_that_are_none_are_refused() -> None:
    """By name, before anything is retrieved."""
    with pytest.raises(ValueError, match="expand"):
        NeighbourSpanTransformer(expand=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="widnow"):
        NeighbourSpanTransformer(widnow=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="expand"):
        CAUSRetriever(embeddings=EMBEDDINGS, expand="wide")

"""A retriever saved to a folder and read back, by the same framework and by the other."""

from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import llamaindex_posrag
from shared_core import (
    ChunkKeys,
    EmbeddingMismatchError,
    NeighbourSpans,
    Passage,
    PositionProfile,
)
from shared_core.placement import Sequential, Shuffle, UShapeBestLast

from .drivers import QUERIES, Adapter, LangChain, LlamaIndex, corpus, embed, ids

CORPUS = corpus()
KEYS = ChunkKeys(document="lang", number="number")
CUT = [
    Passage(each.id, each.text, {"source": "ab"[at % 2], "start_index": 10 * (60 - at)})
    for at, each in enumerate(CORPUS)
]
PROFILE = PositionProfile(
    model="m", accuracy=(0.9, 0.2, 0.8), distraction=(0.1, 0.2, 0.3), interval=(1.1, 4.0), n=7
)


def answers(adapter: Adapter, retriever: Any) -> list[Any]:
    return [adapter.ask(retriever, query) for query in QUERIES]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3, "alpha": None, "fetch_k": 20, "fusion": "rrf", "psi": "never"},
        {"placement": UShapeBestLast(), "psi": PROFILE, "rule": "psi"},
        {"placement": Shuffle(seed=7), "psi": 1.5, "variant": "okapi"},
        {"k": 3, "expand": NeighbourSpans(), "chunk_keys": KEYS},
    ],
    ids=str,
)
def test_it_answers_as_before(adapter: Adapter, options: dict[str, Any], tmp_path: Path) -> None:
    """By the same options; and may be changed, and saved again."""
    retriever = adapter.build(CORPUS, **options)
    adapter.delete(retriever, ["p0"])
    retriever.save(tmp_path / "index")
    loaded = adapter.load(tmp_path / "index")
    assert loaded.caus == retriever.caus
    assert answers(adapter, loaded) == answers(adapter, retriever)
    adapter.add(loaded, adapter.items(CORPUS[:1]))
    loaded.save(tmp_path / "index")
    assert answers(adapter, adapter.load(tmp_path / "index")) == answers(adapter, loaded)


def test_options_given_when_loading_win(adapter: Adapter, tmp_path: Path) -> None:
    """And the others stay as they were saved, also of a profile that was given by its path."""
    path = PROFILE.save(tmp_path / "profile.json")
    adapter.build(CORPUS, k=7, psi=path, placement="inverse").save(tmp_path / "index")
    loaded = adapter.load(tmp_path / "index", k=2)
    assert (loaded.k, loaded.caus.profile, loaded.placement) == (2, PROFILE, "inverse")
    assert adapter.load(tmp_path / "index", psi=None).psi is None
    with pytest.raises((TypeError, ValueError), match="kk"):
        adapter.load(tmp_path / "index", kk=9)


class Mine(Sequential):
    """A placement of the user's own."""

    name = "mine"


def split(text: str) -> list[str]:
    """Split at spaces."""
    return text.split()


def test_functions_of_ones_own_are_given_again(adapter: Adapter, tmp_path: Path) -> None:
    """They are code, which a folder holds none of."""
    own: dict[str, Any] = {"placement": Mine(), "tokenizer": split}
    retriever = adapter.build(CORPUS, psi="always", **own)
    retriever.save(tmp_path / "index")
    for name in own:
        with pytest.raises(ValueError, match=f"{name}="):
            adapter.load(tmp_path / "index", **{k: v for k, v in own.items() if k != name})
    loaded = adapter.load(tmp_path / "index", **own)
    assert answers(adapter, loaded) == answers(adapter, retriever)


def test_another_embedding_model_is_noticed(adapter: Adapter, tmp_path: Path) -> None:
    """Of equal dimension and of another."""
    adapter.build(CORPUS).save(tmp_path / "index")
    other = adapter.model(lambda text: embed(f"{text} of another model"))
    for model in (other, adapter.model(lambda text: embed(text)[1:])):
        with pytest.raises(EmbeddingMismatchError):
            adapter.load(tmp_path / "index", model)


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.7, "placement": UShapeBestLast(), "psi": PROFILE},
        {"per_source": 1},
        {"placement": "source_order", "psi": "always"},
    ],
    ids=str,
)
@pytest.mark.parametrize("saver", [LangChain, LlamaIndex])
def test_a_folder_of_one_framework_is_read_by_the_other(
    saver: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    """With its options and the documents of its passages, and saved again there, by the first."""
    sides: tuple[Adapter, ...] = (LangChain(), LlamaIndex())
    one, other = sides if saver is LangChain else sides[::-1]
    saved = one.build(CUT, k=4, **options)
    saved.save(tmp_path / "index")
    expected = [*map(ids, answers(one, saved))]
    for side in (other, one):
        loaded = side.load(tmp_path / "index")
        assert loaded.caus == saved.caus
        assert [*map(ids, answers(side, loaded))] == expected
        loaded.save(tmp_path / "index")
    assert len(expected[0]) == (2 if "per_source" in options else 4)


def test_what_llamaindex_saved_for_itself_is_known_in_langchain(tmp_path: Path) -> None:
    """A node's source document; filters, which LangChain takes by call, are told.

    Saved again, nodes keep their links and what of their metadata is embedded.
    """
    nodes = [TextNode(id_=each.id, text=each.text, metadata={"title": "T"}) for each in CORPUS]
    for at, node in enumerate(nodes):
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="ab"[at % 2])
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="acme")])
    model: Any = LlamaIndex().model(embed)
    llamaindex_posrag.CAUSRetriever.from_nodes(nodes, model, per_source=1, filters=filters).save(
        tmp_path / "index"
    )
    langchain = LangChain()
    with pytest.warns(UserWarning, match=r"filters=.*acme.* are not applied here"):
        loaded = langchain.load(tmp_path / "index")
    assert len(langchain.ask(loaded, "padding")) == 2
    langchain.add(loaded, [langchain.item("a new text", "new")])
    loaded.save(tmp_path / "index")
    again = llamaindex_posrag.CAUSRetriever.load(tmp_path / "index", model)
    found = {
        hit.node_id: hit.node
        for hit in again.using(k=99, per_source=None, filters=None).retrieve("x")
    }
    assert found.pop("new").get_content() == "a new text"
    for node in nodes:
        kept = found[node.node_id]
        assert (kept.relationships, kept.get_content()) == (node.relationships, node.text)

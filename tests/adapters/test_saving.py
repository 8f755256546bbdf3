"""A retriever saved to a folder and read back, by the same framework and by the other."""

from pathlib import Path
from typing import Any

import pytest
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

import llamaindex_posrag
from shared_core import EmbeddingMismatchError, Passage, PositionProfile
from shared_core.placement import Sequential, Shuffle, UShapeBestLast

from .drivers import QUERIES, Adapter, LangChain, LlamaIndex, corpus, embed, ids

CORPUS = corpus()
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
    saved = adapter.build(CORPUS, k=7, psi=path, placement="inverse")
    saved.save(tmp_path / "index")
    loaded = adapter.load(tmp_path / "index", k=2)
    assert (loaded.k, loaded.caus.profile, loaded.placement) == (2, PROFILE, "inverse")
    assert adapter.load(tmp_path / "index", psi=None).psi is None
    with pytest.raises(ValueError, match="k must be an integer >= 1, got 0"):
        adapter.load(tmp_path / "index", k=0)
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


def test_a_save_that_fails_leaves_the_old_folder(adapter: Adapter, tmp_path: Path) -> None:
    """As metadata do that JSON cannot hold; the passage is named."""
    retriever = adapter.build(CORPUS)
    retriever.save(tmp_path / "index")
    before = answers(adapter, retriever)
    adapter.add(retriever, [adapter.item("padding", "odd", shape={1, 2})])
    with pytest.raises(ValueError, match="odd"):
        retriever.save(tmp_path / "index")
    assert answers(adapter, adapter.load(tmp_path / "index")) == before


@pytest.mark.parametrize("saver", [LangChain, LlamaIndex])
def test_a_folder_of_one_framework_is_read_by_the_other(saver: Any, tmp_path: Path) -> None:
    """With its options, and saved again there, by the first."""
    sides: tuple[Adapter, ...] = (LangChain(), LlamaIndex())
    one, other = sides if saver is LangChain else sides[::-1]
    options = {"k": 3, "alpha": 0.7, "placement": UShapeBestLast(), "psi": PROFILE}
    saved = one.build(CORPUS, **options)
    saved.save(tmp_path / "index")
    loaded = other.load(tmp_path / "index")
    assert loaded.caus == saved.caus
    expected = [ids(found) for found in answers(one, saved)]
    assert [ids(found) for found in answers(other, loaded)] == expected
    loaded.save(tmp_path / "index")
    again = one.load(tmp_path / "index")
    assert again.caus == saved.caus
    assert [ids(found) for found in answers(one, again)] == expected


CUT = [
    Passage(each.id, each.text, {"source": "ab"[at % 2], "start_index": 10 * (60 - at)})
    for at, each in enumerate(CORPUS)
]


@pytest.mark.parametrize("options", [{"per_source": 1}, {"placement": "source_order"}], ids=str)
@pytest.mark.parametrize("saver", [LangChain, LlamaIndex])
def test_the_other_framework_tells_the_documents_of_passages(
    saver: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    """And their order, by the same keys of the metadata."""
    sides: tuple[Adapter, ...] = (LangChain(), LlamaIndex())
    one, other = sides if saver is LangChain else sides[::-1]
    saved = one.build(CUT, k=4, psi="always", **options)
    saved.save(tmp_path / "index")
    expected = [*map(ids, answers(one, saved))]
    assert [*map(ids, answers(other, other.load(tmp_path / "index")))] == expected
    assert len(expected[0]) == (2 if "per_source" in options else 4)


def test_what_llamaindex_saved_for_itself_is_known_in_langchain(tmp_path: Path) -> None:
    """A node's source document; filters, which LangChain takes by call, are told."""
    nodes = [TextNode(id_=each.id, text=each.text) for each in CORPUS]
    for at, node in enumerate(nodes):
        node.relationships[NodeRelationship.SOURCE] = RelatedNodeInfo(node_id="ab"[at % 2])
    filters = MetadataFilters(filters=[MetadataFilter(key="tenant", value="acme")])
    llama_index: Any = LlamaIndex()
    llamaindex_posrag.CAUSRetriever.from_nodes(
        nodes, llama_index.model(embed), per_source=1, filters=filters
    ).save(tmp_path / "index")
    langchain = LangChain()
    with pytest.warns(UserWarning, match=r"filters=.*acme.* are not applied here"):
        loaded = langchain.load(tmp_path / "index")
    assert len(langchain.ask(loaded, "padding")) == 2


def test_langchain_keeps_the_nodes_of_a_folder_that_it_saves_again(tmp_path: Path) -> None:
    """Their links and what of their metadata is embedded, too; what it adds has none."""
    node = TextNode(id_="n", text="a word", metadata={"title": "T"})
    node.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id="m")
    model: Any = LlamaIndex().model(embed)
    llamaindex_posrag.CAUSRetriever.from_nodes([node], model).save(tmp_path / "index")
    langchain = LangChain()
    between = langchain.load(tmp_path / "index")
    langchain.add(between, langchain.items(CORPUS[:1]))
    between.save(tmp_path / "index")
    found = llamaindex_posrag.CAUSRetriever.load(tmp_path / "index", model).retrieve("word")
    assert len(found) == 2
    [kept] = [each.node for each in found if each.node_id == "n"]
    assert (kept.relationships, kept.get_content()) == (node.relationships, "a word")

"""A folder that one adapter has saved, in the hands of the other."""

from __future__ import annotations

from pathlib import Path

import pytest

import langchain_posrag as on_langchain
import llamaindex_posrag as on_llamaindex
from shared_core import IndexFormatError

from .both_sides import LangChainEmbedding, LlamaIndexEmbedding, corpus

CORPUS = corpus()
QUERY = "pooling window"


def test_langchain_reads_what_llamaindex_saved_but_not_the_reverse(tmp_path: Path) -> None:
    """The texts are there, the nodes are not, once LangChain has saved the folder again."""
    saved = on_llamaindex.CAUSRetriever.from_nodes(CORPUS.nodes, LlamaIndexEmbedding(), k=5)
    saved.save(tmp_path / "index")
    loaded = on_langchain.CAUSRetriever.load(tmp_path / "index", LangChainEmbedding(), k=5)
    found = [document.id for document in loaded.invoke(QUERY)]
    assert found == [hit.node.node_id for hit in saved.retrieve(QUERY)]
    loaded.save(tmp_path / "index")
    again = on_langchain.CAUSRetriever.load(tmp_path / "index", LangChainEmbedding(), k=5)
    assert [document.id for document in again.invoke(QUERY)] == found
    with pytest.raises(IndexFormatError, match="no LlamaIndex node"):
        on_llamaindex.CAUSRetriever.load(tmp_path / "index", LlamaIndexEmbedding())
    on_langchain.CAUSRetriever.from_documents(CORPUS.documents, LangChainEmbedding()).save(
        tmp_path / "documents"
    )
    with pytest.raises(IndexFormatError, match="not saved by llamaindex_posrag"):
        on_llamaindex.CAUSRetriever.load(tmp_path / "documents", LlamaIndexEmbedding())

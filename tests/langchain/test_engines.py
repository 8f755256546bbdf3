"""A retriever over a database answers as one over an index in memory does."""

from __future__ import annotations

import pytest

from langchain_posrag import CAUSRetriever, connect
from tests.adapters.drivers import QUERIES, LangChain, corpus


@pytest.mark.parametrize("awaited", [False, True])
async def test_the_same_documents_from_a_database(awaited: bool, postgres: str) -> None:
    """Filled through one retriever, found by another, with the explanation of every score."""
    documents, model = LangChain().items(corpus()), LangChain.model()
    memory = CAUSRetriever.from_documents(documents, model, k=5, psi="always")
    name = f"documents{awaited}"
    first = CAUSRetriever.from_url(postgres, model, collection=name)
    assert first.invoke(QUERIES[0]) == []
    if awaited:
        await first.aadd_documents(documents)
    else:
        first.add_documents(documents)
    again = CAUSRetriever.from_engine(connect(postgres, name, timeout=20), model, k=5, psi="always")
    for query in QUERIES[:2]:
        for options in ({}, {"filter": {"lang": "en"}}, {"k": 3, "alpha": 1.0}):
            theirs = memory.invoke(query, **options)
            mine = (
                await again.ainvoke(query, **options) if awaited else again.invoke(query, **options)
            )
            assert [each.page_content for each in mine] == [each.page_content for each in theirs]
            scores = [each.metadata["score"] for each in theirs]
            assert [each.metadata["score"] for each in mine] == pytest.approx(scores, abs=1e-5)
            assert all(each.metadata["posrag"]["dense_exact"] for each in mine)
    one = documents[0].id
    assert one is not None
    assert again.get([one])[0].page_content == documents[0].page_content
    assert again.delete([one])["succeeded"] == [one]
    assert first.get([one]) == []
    for each in (first, again):
        each.index.close()


def test_what_cannot_be_connected_is_told_by_its_address() -> None:
    """No engine is guessed."""
    with pytest.raises(ValueError, match=r"'mysql': give one that begins with postgresql://"):
        CAUSRetriever.from_url("mysql://localhost/db", LangChain.model())


def test_documents_in_a_database_are_not_saved_to_a_folder(postgres: str) -> None:
    """They are there already."""
    retriever = CAUSRetriever.from_url(postgres, LangChain.model())
    with pytest.raises(ValueError, match=r"PostgresEngine keeps its own documents: .* from_url"):
        retriever.save("folder")
    retriever.index.close()

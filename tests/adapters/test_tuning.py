"""A retriever tuned by labelled questions: the same choice in both frameworks, and it is kept."""

from pathlib import Path

import pytest

from shared_core.tuning import tune
from shared_core.types import Query

from .drivers import TOPICS, Adapter, core_index, corpus, embed

CORPUS = corpus()
QUESTIONS = [f"{one} {other}" for topic in TOPICS for one, other in zip(
    topic.split(), topic.split()[1:], strict=False)]  # fmt: skip
RELEVANT = [
    [passage.id for passage in CORPUS if {*question.split()} <= {*passage.text.split()}]
    for question in QUESTIONS
]
ASKED = [question for question, ids in zip(QUESTIONS, RELEVANT, strict=True) if ids]
WANTED = [ids for ids in RELEVANT if ids]


def test_a_new_retriever_comes_back_with_what_the_core_chooses(
    adapter: Adapter, tmp_path: Path
) -> None:
    """It answers by the new weight, the old one as before; both share the passages."""
    retriever = adapter.build(CORPUS, k=4)
    before = adapter.ask(retriever, ASKED[0])
    tuned = retriever.tune(ASKED, WANTED)
    queries = [Query(question, embed(question)) for question in ASKED]
    expected = tune(retriever.caus, core_index(CORPUS), queries, WANTED)
    assert tuned.caus == expected
    assert tuned.tuning == expected.tuning
    assert tuned.index is retriever.index
    assert adapter.ask(retriever, ASKED[0]) == before
    assert retriever.tuning is None
    tuned.save(tmp_path / "index")
    assert adapter.load(tmp_path / "index").caus == expected


@pytest.mark.parametrize("over", ["build", "over_store"])
def test_ids_that_are_not_in_the_index_are_told_of(adapter: Adapter, over: str) -> None:
    """They count as not found, which a slip in the labels should not."""
    retriever = getattr(adapter, over)(CORPUS, k=4)
    with pytest.warns(UserWarning, match="1 id that no passage of the index has, such as 'px'"):
        retriever.tune(ASKED, [["px"], *WANTED[1:]])

"""Candidates of any retriever, scored by both legs and placed, as the core scores and places."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import pytest

from shared_core import CAUS, PassageIndex, rank
from shared_core.arrays import Scores

from .drivers import Adapter, Hit, corpus, ids

CORPUS = corpus()
QUERY = "convolution with stride"
SCORES = [0.9, 0.2, 0.7, 0.7, -0.4, 0.1, 0.9, 0.3, 0.0, 0.5, 0.6, 0.8]
GAPS = [None, *SCORES[1:5], math.nan, *SCORES[6:]]


def expected(dense: Sequence[float | None], sparse: Any, **options: Any) -> list[tuple[Any, ...]]:
    """Return id, score and explanation of what the core makes of two legs."""
    caus = CAUS(**options)
    known = [math.nan if score is None else score for score in dense]
    found = caus.place(rank(known, sparse, k=caus.k, alpha=caus.alpha, fusion=caus.fusion))
    rows = zip(found.indices, found.scores, found.explain(), strict=True)
    return [(f"p{at}", score, why) for at, score, why in rows]


def bm25(texts: Sequence[str], query: str, **options: Any) -> Scores:
    """Return the score of each text among them all."""
    index = PassageIndex.from_texts(texts, **options)
    return index.scores(query, index.passages)


def facts(hits: Sequence[Hit]) -> list[tuple[Any, ...]]:
    return [(hit.id, hit.score, hit.why) for hit in hits]


@pytest.mark.parametrize(
    ("scores", "options"),
    [
        ([], {}),
        (SCORES[:1], {}),
        (SCORES, {}),
        (SCORES, {"psi": "always", "k": 5, "alpha": 0.6, "fusion": "rrf"}),
        (SCORES, {"psi": 1.3, "k": 50, "placement": "inverse", "alpha": 0.7}),
        ([-3.0] * 12, {}),
        (GAPS, {"alpha": 1.0, "k": 12}),
        (GAPS, {"fusion": "rrf"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("distances", [False, True])
def test_scores_are_the_cores(
    adapter: Adapter, scores: list[float | None], options: dict[str, Any], distances: bool
) -> None:
    """A missing score counts as the lowest; distances are turned round; nothing given changes."""
    texts = [passage.text for passage in CORPUS[: len(scores)]]
    given = adapter.items(CORPUS[: len(scores)], scores)
    before = copy.deepcopy(given)
    step = adapter.rescorer(higher_is_better=not distances, **options)
    found = adapter.hits(adapter.rescore(step, given, QUERY)) if scores else []
    dense = [-score if distances and score is not None else score for score in scores]
    assert facts(found) == expected(dense, bm25(texts, QUERY), **options)
    assert str(given) == str(before)
    assert adapter.rescore(step, [], QUERY) == []


@pytest.mark.parametrize("tokenizer", [None, list])
def test_a_corpus_gives_its_statistics(adapter: Adapter, tokenizer: Any) -> None:
    """To candidates of its own, and to others by their text; in the words of its tokenizer."""
    index = PassageIndex(tokenizer=tokenizer)
    index.add(CORPUS[1:])
    step = adapter.rescorer_of(adapter.items(CORPUS[1:]), tokenizer=tokenizer, k=12)
    candidates = adapter.items(CORPUS[:12], SCORES)
    found = {hit.id: hit for hit in adapter.hits(adapter.rescore(step, candidates, QUERY))}
    sparse = index.scores(QUERY, CORPUS[:12])
    assert [found[f"p{at}"].why["sparse"] for at in range(12)] == pytest.approx([*sparse])
    assert found["p0"].why["sparse"] > 0


def test_a_tokenizer_of_the_callers_own(adapter: Adapter) -> None:
    given = adapter.items(CORPUS[:12], SCORES)
    sparse = bm25([passage.text for passage in CORPUS[:12]], "x", tokenizer=list)
    found = adapter.hits(adapter.rescore(adapter.rescorer(tokenizer=list, k=12), given, "x"))
    assert facts(found) == expected(SCORES, sparse, k=12)


def test_a_blank_query_is_answered_by_the_scores_alone(adapter: Adapter) -> None:
    given = adapter.items(CORPUS[:12], SCORES)
    for query in ("", " \n"):
        found = adapter.hits(adapter.rescore(adapter.rescorer(k=12), given, query))
        assert facts(found) == expected(SCORES, [0.0] * 12, k=12, alpha=1.0)


def test_candidates_without_any_score_are_ranked_by_bm25_alone(adapter: Adapter) -> None:
    sparse = bm25([passage.text for passage in CORPUS[:12]], QUERY)
    found = adapter.hits(
        adapter.rescore(adapter.rescorer(), adapter.items(CORPUS[:12], [None] * 12), QUERY)
    )
    assert facts(found) == expected([math.nan] * 12, sparse, alpha=0.0)


def test_an_infinite_score_is_refused(adapter: Adapter) -> None:
    with pytest.raises(ValueError, match="inf"):
        adapter.rescore(adapter.rescorer(), adapter.items(CORPUS[:2], [math.inf, 0.5]), QUERY)


def test_behind_a_search_the_new_score_counts(adapter: Adapter) -> None:
    """The one it was made from stays in the explanation; and placing comes after."""
    ranked = adapter.retrieve(adapter.build(CORPUS, k=12), QUERY)
    before = {hit.id: hit.score for hit in adapter.hits(ranked)}
    found = adapter.rescore(adapter.rescorer(k=5, alpha=0.5), ranked, QUERY)
    for hit in adapter.hits(found):
        assert hit.why["dense"] == before[hit.id]
        assert hit.score == hit.why["score"]
    placed = adapter.place(adapter.placer("inverse"), found)
    assert ids(placed) == ids(found)[::-1]


def test_scores_that_only_rise_are_told_to_be_distances(
    adapter: Adapter, recwarn: pytest.WarningsRecorder
) -> None:
    """The nearest passage would be the worst; but not where the caller, or a placement, says so."""
    rising = adapter.items(CORPUS[:4], [0.2, None, 0.5, 0.9])
    for given in (
        adapter.items(CORPUS[:4], [0.9, 0.5, 0.2, 0.1]),
        adapter.items(CORPUS[:2], [1, 2]),
    ):
        adapter.rescore(adapter.rescorer(), given, QUERY)
    adapter.rescore(adapter.rescorer(higher_is_better=False), rising, QUERY)
    placed = adapter.retrieve(adapter.build(CORPUS, placement="inverse", psi=1.3), QUERY)
    adapter.rescore(adapter.rescorer(), placed, QUERY)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="as distances do.*give higher_is_better=False"):
        adapter.rescore(adapter.rescorer(), rising, QUERY)

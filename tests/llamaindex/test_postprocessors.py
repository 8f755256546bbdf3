"""What the postprocessors do, beyond the contract."""

from __future__ import annotations

import math
import pickle
from copy import deepcopy
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from llamaindex_posrag import CAUSPostprocessor, PlacementPostprocessor
from llamaindex_posrag.nodes import ExplainedNode
from shared_core import BM25Index, PositionProfile
from shared_core.placement import Placement, Shuffle, UShape

from .checks import facts, ids
from .doubles import (
    QUERY,
    TEXTS,
    CallbackLog,
    corpus,
    scored,
    synthesize,
    traced,
)

PROFILE = PositionProfile(
    model="m", accuracy=(0.9, 0.4, 0.5, 0.6, 0.8), distraction=(0.5, 0.1, 0.2, 0.3, 0.4)
)


def explanation(hit: NodeWithScore) -> dict[str, Any]:
    assert isinstance(hit, ExplainedNode)
    return hit.posrag


def bm25(texts: list[str]) -> list[float]:
    return BM25Index.from_texts(texts).scores(QUERY).tolist()


def embedded(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node.get_content(MetadataMode.EMBED) for node in nodes]


@pytest.mark.parametrize("variant", ["lucene", "okapi"])
def test_the_variant_is_used(variant: Any) -> None:
    given = scored(count=12)
    texts = embedded(given)
    expected = BM25Index.from_texts(texts, variant=variant).scores(QUERY).tolist()
    processors = [
        CAUSPostprocessor(k=12, variant=variant),
        CAUSPostprocessor.from_nodes(corpus(), k=12, variant=variant),
    ]
    for processor in processors:
        out = processor.postprocess_nodes(given, query_str=QUERY)
        sparse = {hit.node.node_id: explanation(hit)["sparse"] for hit in out}
        assert [sparse[f"n{at}"] for at in range(12)] == pytest.approx(expected)


def test_a_node_that_is_other_than_in_the_corpus_is_scored_by_its_text() -> None:
    """One that is not there, and one whose text was changed since, as for a sentence window."""
    nodes = [TextNode(id_=f"n{at}", text=text) for at, text in enumerate(TEXTS)]
    changed = TextNode(id_="n1", text=f"{TEXTS[1]} [changed]", metadata={"window": TEXTS[0]})
    changed.excluded_embed_metadata_keys = ["window"]
    (replaced,) = MetadataReplacementPostProcessor(target_metadata_key="window").postprocess_nodes(
        [NodeWithScore(node=changed, score=0.1)]
    )
    given = [NodeWithScore(node=TextNode(id_="stranger", text=TEXTS[0]), score=0.1), replaced]
    given.append(NodeWithScore(node=nodes[0], score=0.1))
    out = CAUSPostprocessor.from_nodes(nodes).postprocess_nodes(given, query_str=QUERY)
    sparse = {hit.node.node_id: explanation(hit)["sparse"] for hit in out}
    assert sparse["stranger"] == pytest.approx(sparse["n0"])
    assert sparse["n1"] == pytest.approx(sparse["n0"])
    assert sparse["n0"] > 0


@pytest.mark.parametrize("fusion", ["min_max", "rrf"])
@pytest.mark.parametrize("alpha", [0.3, 1.0, "auto"])
def test_without_any_score_the_sparse_leg_decides(fusion: Any, alpha: Any) -> None:
    given = scored([None] * 12)
    out = CAUSPostprocessor(k=12, fusion=fusion, alpha=alpha).postprocess_nodes(
        given, query_str=QUERY
    )
    sparse = bm25(embedded(given))
    expected = sorted(range(12), key=lambda at: (-sparse[at], at))
    assert ids(out) == [f"n{at}" for at in expected]


@pytest.mark.parametrize("query", [None, QueryBundle(""), QueryBundle(" \t\n")])
@pytest.mark.parametrize("fusion", ["min_max", "rrf"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, "auto"])
def test_without_a_query_the_dense_leg_decides(
    query: QueryBundle | None, fusion: Any, alpha: Any
) -> None:
    processor = CAUSPostprocessor(fusion=fusion, alpha=alpha)
    out = processor.postprocess_nodes(scored([0.1, 0.9, 0.5]), query)
    assert ids(out) == ["n1", "n2", "n0"]
    assert out[0].score == pytest.approx(1.0)


def test_without_query_and_scores_the_given_order_stands() -> None:
    assert ids(CAUSPostprocessor().postprocess_nodes(scored([None] * 5))) == ids(scored())


def test_infinite_scores_are_refused_and_the_end_announced() -> None:
    with traced() as trace, pytest.raises(ValueError, match="inf"):
        CAUSPostprocessor().postprocess_nodes(scored([math.inf, 0.5]), query_str=QUERY)
    assert len(trace.of(ReRankStartEvent)) == len(trace.of(ReRankEndEvent)) == 1
    assert trace.of(ReRankEndEvent)[0].nodes == []


def test_a_placement_that_raises_is_announced() -> None:
    class Broken(Placement):
        name = "broken"

        def order(self, k: int, profile: PositionProfile | None) -> tuple[int, ...]:
            if k > 1:
                raise RuntimeError("no order")
            return tuple(range(k))

    log = CallbackLog()
    processors: list[BaseNodePostprocessor] = [
        PlacementPostprocessor(Broken(), psi="always"),
        CAUSPostprocessor(placement=Broken(), psi="always"),
    ]
    for processor in processors:
        processor.callback_manager = CallbackManager([log])
        with traced() as trace, pytest.raises(RuntimeError, match="no order"):
            processor.postprocess_nodes(scored(), query_str=QUERY)
        assert len(trace.of(ReRankStartEvent)) == len(trace.of(ReRankEndEvent)) == 1
        assert not trace.spans.open_spans
    assert log.started == log.ended


def test_events_say_what_is_asked() -> None:
    with traced() as trace:
        CAUSPostprocessor(k=3).postprocess_nodes(scored(), query_str=QUERY)
        PlacementPostprocessor().postprocess_nodes(scored())
    caus, place = trace.of(ReRankStartEvent)
    assert (caus.model_name, caus.top_n, caus.query) == ("CAUSPostprocessor", 3, QueryBundle(QUERY))
    assert (place.model_name, place.top_n, place.query) == ("PlacementPostprocessor", 5, None)


def test_a_class_of_ones_own_goes_by_its_own_name() -> None:
    """In what it is saved as, and in events."""

    class Mine(PlacementPostprocessor):
        pass

    with traced() as trace:
        Mine().postprocess_nodes(scored())
    assert Mine().to_dict()["class_name"] == "Mine"
    assert [event.model_name for event in trace.of(ReRankStartEvent)] == ["Mine"]


@pytest.mark.parametrize("kind", [CAUSPostprocessor, PlacementPostprocessor])
def test_a_call_is_one_span(kind: type[BaseNodePostprocessor]) -> None:
    """Under the name of the method that LlamaIndex calls."""
    with traced() as trace:
        kind().postprocess_nodes(scored(), query_str=QUERY)
    (span,) = trace.spans.completed_spans
    assert span.id_.startswith(f"{kind.__name__}._postprocess_nodes-")


def test_nothing_of_the_explanation_reaches_the_prompt() -> None:
    out = CAUSPostprocessor(psi="always").postprocess_nodes(scored(), query_str=QUERY)
    _, prompts = synthesize("compact", out)
    assert "dense" not in prompts[0]
    assert "posrag" not in prompts[0]
    assert "posrag" in out[0].model_dump_json()


def test_options_are_fixed_but_the_callback_manager_is_not() -> None:
    processor = CAUSPostprocessor(k=3)
    with pytest.raises(ValueError, match="frozen"):
        processor.k = 5
    manager = CallbackManager()
    processor.callback_manager = manager
    assert processor.callback_manager is manager


def test_two_corpus_nodes_of_one_id_are_refused() -> None:
    with pytest.raises(ValueError, match="n0"):
        CAUSPostprocessor.from_nodes([*corpus(), corpus()[0]])


@pytest.mark.parametrize("spec", ["u_shape", UShape(best_at="end"), Shuffle(seed=7)])
@pytest.mark.parametrize("psi", [None, 1.3, "always", PROFILE])
def test_options_survive_a_dictionary(spec: str | Placement, psi: Any) -> None:
    processors: list[BaseNodePostprocessor] = [
        PlacementPostprocessor(spec, psi=psi),
        CAUSPostprocessor(k=3, alpha="auto", placement=spec, psi=psi, variant="okapi"),
    ]
    for processor in processors:
        again = type(processor).from_dict(processor.to_dict())
        assert again.to_dict() == processor.to_dict()
        assert getattr(again, "psi", None) == psi
        assert getattr(again, "placement", None) == spec


def test_a_path_survives_a_dictionary(tmp_path: Any) -> None:
    path = PROFILE.save(tmp_path / "profile.json")
    processor = PlacementPostprocessor("max_relevance", psi=path)
    again = PlacementPostprocessor.from_json(processor.to_json())
    assert ids(again.postprocess_nodes(scored())) == ids(processor.postprocess_nodes(scored()))


def letters(text: str) -> list[str]:
    """Return the letters of a text as tokens."""
    return [letter for letter in text.lower() if letter.isalpha()]


def test_a_tokenizer_is_used_and_survives_a_copy() -> None:
    processor = CAUSPostprocessor(tokenizer=letters, alpha=0.0)
    by_words = CAUSPostprocessor(alpha=0.0).postprocess_nodes(scored(), query_str="zzz a")
    expected = facts(processor.postprocess_nodes(scored(), query_str="zzz a"))
    assert expected != facts(by_words)
    for copied in (deepcopy(processor), pickle.loads(pickle.dumps(processor))):
        assert facts(copied.postprocess_nodes(scored(), query_str="zzz a")) == expected
    wide = CAUSPostprocessor.from_nodes(corpus()[:5], tokenizer=letters, alpha=0.0)
    assert facts(wide.postprocess_nodes(scored(), query_str="zzz a")) == expected


# Copies with another option.


@pytest.mark.parametrize(
    ("postprocessor", "update"),
    [
        (CAUSPostprocessor(psi="always"), {"k": 2, "alpha": 0.0}),
        (CAUSPostprocessor.from_nodes(corpus(), psi="always"), {"placement": "inverse"}),
        (PlacementPostprocessor(), {"placement": "inverse"}),
        (PlacementPostprocessor(), {"psi": "never"}),
    ],
)
@pytest.mark.parametrize("deep", [False, True])
def test_a_copy_with_another_option_does_what_it_shows(
    postprocessor: BaseNodePostprocessor, update: dict[str, Any], deep: bool
) -> None:
    """As one that was made so, and the original does what it did."""
    before = facts(postprocessor.postprocess_nodes(scored(), query_str=QUERY))
    copied = postprocessor.model_copy(update=update, deep=deep)
    assert {name: getattr(copied, name) for name in update} == update
    made = type(postprocessor)(**{**dict(postprocessor), **update})
    expected = facts(made.postprocess_nodes(scored(), query_str=QUERY))
    assert facts(copied.postprocess_nodes(scored(), query_str=QUERY)) == expected != before
    assert facts(postprocessor.postprocess_nodes(scored(), query_str=QUERY)) == before
    assert copied.to_dict() == made.to_dict()


@pytest.mark.parametrize(
    ("postprocessor", "update", "named"),
    [
        (CAUSPostprocessor(), {"k": -2}, "-2"),
        (CAUSPostprocessor(), {"kk": 2}, "kk"),
        (PlacementPostprocessor(), {"placement": "v_shape"}, "v_shape"),
        (PlacementPostprocessor(), {"order": "u_shape"}, "order"),
    ],
)
def test_a_copy_with_a_bad_option_is_refused(
    postprocessor: BaseNodePostprocessor, update: dict[str, Any], named: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=named):
        postprocessor.model_copy(update=update)


def test_a_plain_copy_is_one() -> None:
    postprocessor = CAUSPostprocessor.from_nodes(corpus(), k=3)
    copied = postprocessor.model_copy()
    assert copied == postprocessor
    assert copied.corpus is postprocessor.corpus
    varied = postprocessor.model_copy(update={"k": 2})
    assert varied.corpus is postprocessor.corpus
    assert varied.callback_manager is postprocessor.callback_manager

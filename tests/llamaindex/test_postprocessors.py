"""What the postprocessors do, beyond the contract."""

from __future__ import annotations

import math
import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode

from llamaindex_posrag import CAUSPostprocessor, CAUSRetriever, PlacementPostprocessor
from llamaindex_posrag.nodes import ExplainedNode
from shared_core import CAUS, PLACEMENTS, BM25Index, PositionProfile, ProfileNotFoundError
from shared_core.placement import Placement, Shuffle, UShape

from .checks import facts, ids
from .doubles import (
    QUERY,
    TEXTS,
    CallbackLog,
    PromptRecorder,
    WordEmbedding,
    corpus,
    scored,
    synthesize,
    traced,
)

PROFILE = PositionProfile(
    model="m", accuracy=(0.9, 0.4, 0.5, 0.6, 0.8), distraction=(0.5, 0.1, 0.2, 0.3, 0.4)
)
ALL_PLACEMENTS = [*PLACEMENTS, "u_shape_end"]


def placement(name: str) -> str | Placement:
    return UShape(best_at="end") if name == "u_shape_end" else name


def explanation(hit: NodeWithScore) -> dict[str, Any]:
    assert isinstance(hit, ExplainedNode)
    return hit.posrag


def bm25(texts: list[str]) -> list[float]:
    return BM25Index.from_texts(texts).scores(QUERY).tolist()


def embedded(nodes: list[NodeWithScore]) -> list[str]:
    return [node.node.get_content(MetadataMode.EMBED) for node in nodes]


@pytest.mark.parametrize("name", ALL_PLACEMENTS)
@pytest.mark.parametrize("count", range(13))
def test_placement_gives_the_cores_slots(name: str, count: int) -> None:
    caus = CAUS(placement=placement(name), psi=PROFILE)
    given = scored(count=count)
    slots = caus.place(caus.rank([*range(count, 0, -1)], [0.0] * count, k=99, alpha=1)).slots
    out = PlacementPostprocessor(placement(name), psi=PROFILE).postprocess_nodes(given)
    assert ids(out) == [f"n{rank}" for rank in slots]
    assert [hit.score for hit in out] == [given[rank].score for rank in slots]
    assert [explanation(hit)["rank"] for hit in out] == list(slots)
    assert [explanation(hit)["slot"] for hit in out] == list(range(count))


@pytest.mark.parametrize("name", ALL_PLACEMENTS)
@pytest.mark.parametrize("count", range(13))
def test_caus_gives_the_cores_order_and_explanation(name: str, count: int) -> None:
    given = scored(count=count)
    caus = CAUS(k=7, alpha=0.4, placement=placement(name), psi=PROFILE)
    out = CAUSPostprocessor(
        k=7, alpha=0.4, placement=placement(name), psi=PROFILE
    ).postprocess_nodes(given, query_str=QUERY)
    if not count:
        assert out == []
        return
    dense = [node.score or 0.0 for node in given]
    expected = caus.place(caus.rank(dense, bm25(embedded(given))))
    assert ids(out) == [f"n{at}" for at in expected.indices]
    assert [hit.score for hit in out] == expected.scores
    assert [explanation(hit) for hit in out] == expected.explain()


def test_the_first_argument_is_the_placement() -> None:
    assert ids(PlacementPostprocessor("inverse", psi="always").postprocess_nodes(scored())) == [
        "n4", "n3", "n2", "n1", "n0",
    ]  # fmt: skip


def test_an_explanation_is_carried_on() -> None:
    retriever = CAUSRetriever.from_nodes(corpus(), WordEmbedding(), k=5)
    ranked = retriever.retrieve(QUERY)
    placed = PlacementPostprocessor("inverse", psi="always").postprocess_nodes(ranked)
    for hit, before in zip(placed, reversed(ranked), strict=True):
        assert explanation(hit)["dense"] == explanation(before)["dense"]
        assert explanation(hit)["slot"] == 4 - explanation(before)["slot"]
        assert explanation(before)["placement"] == "sequential"
        assert explanation(hit)["placement"] == "inverse"


def test_without_a_profile_the_order_is_kept_and_the_reason_given() -> None:
    out = PlacementPostprocessor(psi=None).postprocess_nodes(scored())
    assert ids(out) == ids(scored())
    assert {explanation(hit)["gate"] for hit in out} == {"shut"}
    assert "psi=" in explanation(out[0])["reason"]


def test_statistics_are_the_candidates_own_or_the_corpuss() -> None:
    given = scored(count=4)
    own = CAUSPostprocessor(k=4).postprocess_nodes(given, query_str=QUERY)
    wide = CAUSPostprocessor.from_nodes(corpus(), k=4).postprocess_nodes(given, query_str=QUERY)
    texts = [node.get_content(MetadataMode.EMBED) for node in corpus()]
    for out, expected in ((own, bm25(embedded(given))), (wide, bm25(texts)[:4])):
        sparse = {hit.node.node_id: explanation(hit)["sparse"] for hit in out}
        assert [sparse[f"n{at}"] for at in range(4)] == pytest.approx(expected)


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


def test_distances_are_turned_round() -> None:
    near_first = scored([0.1, 0.2, 0.3])
    out = CAUSPostprocessor(alpha=1.0, higher_is_better=False).postprocess_nodes(
        near_first, query_str=QUERY
    )
    assert ids(out) == ["n0", "n1", "n2"]
    assert [explanation(hit)["dense"] for hit in out] == pytest.approx([-0.1, -0.2, -0.3])


@pytest.mark.parametrize("missing", [None, math.nan])
def test_a_missing_score_counts_as_the_lowest(missing: float | None) -> None:
    out = CAUSPostprocessor(alpha=1.0).postprocess_nodes(
        scored([0.5, missing, -0.5, 0.9]), query_str=QUERY
    )
    by_id = {hit.node.node_id: hit for hit in out}
    assert ids(out)[:2] == ["n3", "n0"]
    assert by_id["n1"].score == by_id["n2"].score == 0.0
    assert explanation(by_id["n1"])["dense"] == -0.5


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


def test_the_wrapping_of_a_tool_is_not_scored() -> None:
    wrapped = CAUSPostprocessor().postprocess_nodes(
        scored(count=12), query_str=f"\ninput is {QUERY}\n"
    )
    plain = CAUSPostprocessor().postprocess_nodes(scored(count=12), query_str=QUERY)
    assert facts(wrapped) == facts(plain)


def test_a_query_engine_ranks_the_right_node_first() -> None:
    model = PromptRecorder()
    index = VectorStoreIndex(corpus(), embed_model=WordEmbedding())
    engine = index.as_query_engine(
        llm=model,
        similarity_top_k=30,
        node_postprocessors=[CAUSPostprocessor(k=5, alpha=0.3, psi=1.3)],
    )
    found = engine.query(QUERY).source_nodes
    assert len(found) == 5
    assert found[0].node.node_id == "n0"
    assert explanation(found[0])["gate"] == "open"
    assert [explanation(hit)["rank"] for hit in found] == [0, 2, 4, 3, 1]


def test_nothing_of_the_explanation_reaches_the_prompt() -> None:
    out = CAUSPostprocessor(psi="always").postprocess_nodes(scored(), query_str=QUERY)
    _, prompts = synthesize("compact", out)
    assert "dense" not in prompts[0]
    assert "posrag" not in prompts[0]
    assert "posrag" in out[0].model_dump_json()


@pytest.mark.parametrize(
    ("options", "value"),
    [
        ({"k": 0}, "0"),
        ({"k": -1}, "-1"),
        ({"k": "many"}, "many"),
        ({"k": True}, "k must be an integer >= 1, got True"),
        ({"k": "3"}, "k must be an integer >= 1, got '3'"),
        ({"k": 3.0}, "k must be an integer >= 1, got 3.0"),
        ({"alpha": 1.5}, "1.5"),
        ({"alpha": True}, "alpha must be a number in .* got True"),
        ({"alpha": "0.5"}, "alpha must be a number in .* got '0.5'"),
        ({"alpha": "some"}, "some"),
        ({"placement": "v_shape"}, "v_shape"),
        ({"placement": 3}, "3"),
        ({"psi": -0.5}, "-0.5"),
        ({"fusion": "max"}, "max"),
        ({"evidence": "none"}, "none"),
        ({"variant": "plus"}, "plus"),
        ({"tokenizer": "words"}, "words"),
        ({"corpus": []}, r"\[\]"),
        ({"kk": 9}, "kk"),
    ],
)
def test_bad_options_are_named(options: dict[str, Any], value: str) -> None:
    with pytest.raises(ValueError, match=value):
        CAUSPostprocessor(**options)


def test_numbers_of_numpy_are_python_s() -> None:
    made = CAUSPostprocessor(k=np.int64(3), alpha=np.float32(0.5), psi=np.float32(1.5))
    assert (made.k, made.alpha) == (3, 0.5)
    again = CAUSPostprocessor.from_json(made.to_json())
    assert again.psi == 1.5
    assert again.to_dict() == made.to_dict()


@pytest.mark.parametrize("options", [{"placement": "v_shape"}, {"psi": -1.0}, {"evidence": "x"}])
def test_bad_options_of_a_placement_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=str(next(iter(options.values())))):
        PlacementPostprocessor(**options)


def test_unknown_options_of_a_placement_are_refused() -> None:
    options: dict[str, Any] = {"kk": 9}
    with pytest.raises(TypeError, match="kk"):
        PlacementPostprocessor(**options)
    with pytest.raises(ValueError, match="kk"):
        CAUSPostprocessor.from_nodes(corpus(), **options)


def test_a_profile_that_is_not_there_is_named() -> None:
    with pytest.raises(ProfileNotFoundError, match="no-such-model"):
        CAUSPostprocessor(psi="no-such-model")


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


def test_an_empty_corpus_scores_nothing() -> None:
    out = CAUSPostprocessor.from_nodes([], alpha=0.5).postprocess_nodes(scored(), query_str=QUERY)
    assert ids(out) == ids(scored())
    assert {explanation(hit)["sparse"] for hit in out} == {0.0}


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


def test_scores_are_python_floats_whatever_came_in() -> None:
    given = scored()
    for node, score in zip(given, np.linspace(1, 0, 5, dtype=np.float32), strict=True):
        node.score = score
    for processor in (CAUSPostprocessor(), PlacementPostprocessor()):
        out = processor.postprocess_nodes(given, query_str=QUERY)
        assert {type(hit.score) for hit in out} == {float}


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

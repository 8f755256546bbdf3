"""Vector Candidates: fitting, deciding, and what they refuse."""

from __future__ import annotations

import copy
import json
import math
import pickle
import warnings
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest

from shared_core.cli.embedding import EmbeddingModel
from shared_core.errors import EmbeddingMismatchError
from shared_core.gating import RetrievalDecision, VectorCandidates, key_phrases
from shared_core.gating.levels import Levels
from shared_core.gating.policies import shortest_interval, statistic
from tests.core.gating.conftest import IDS, highest, synthetic
from tests.core.gating.texts import ASKED, ELSEWHERE, GENERATED, PASSAGES


def balanced(gate: VectorCandidates, model: EmbeddingModel, contexts: np.ndarray) -> float:
    yes = [gate.decide(s).retrieve for s in highest(model.embed(ASKED), contexts)]
    no = [not gate.decide(s).retrieve for s in highest(model.embed(ELSEWHERE), contexts)]
    return (sum(yes) / len(yes) + sum(no) / len(no)) / 2


def test_fitted_on_generated_questions_it_holds_on_human_ones(
    gate: VectorCandidates, model: EmbeddingModel, contexts: np.ndarray
) -> None:
    """The bar of the method; the paper's own median, which no correction lowers, stays below."""
    assert balanced(gate, model, contexts) >= 0.9
    assert balanced(gate.with_policy("median"), model, contexts) < 0.8


def test_key_phrases_stand_in_for_generated_questions(
    model: EmbeddingModel, contexts: np.ndarray
) -> None:
    """What somebody without a language model has."""
    gate = VectorCandidates.fit(
        IDS, contexts, IDS, model.embed(key_phrases(PASSAGES)), embed=model.embed
    )
    assert balanced(gate, model, contexts) >= 0.85


def test_the_calibrated_edge_is_the_documented_equation() -> None:
    """foreign + 0.4 (near - foreign), both medians, from plain matrix products."""
    ids, vectors, owners, pseudo, foreign = synthetic()
    gate = VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign)
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (vectors, pseudo)]
    near = np.median((unit[1] * np.repeat(unit[0], 3, axis=0)).sum(axis=1))
    units = foreign / np.linalg.norm(foreign, axis=1, keepdims=True)
    far = np.median((units @ unit[0].T).max(axis=1))
    decision = gate.decide(0.5)
    assert decision.policy == "calibrated"
    assert decision.statistic == pytest.approx(far + 0.4 * (near - far), abs=1e-6)


def test_on_the_edge_is_inside_and_above_everything_too() -> None:
    """METHODS: at or above the lower edge; the edge itself has even odds."""
    ids, vectors, owners, pseudo, foreign = synthetic()
    gate = VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign)
    edge = gate.levels.edge
    assert gate.decide(edge).retrieve
    assert gate.decide(edge).probability == pytest.approx(0.5)
    assert not gate.decide(math.nextafter(edge, 0)).retrieve
    assert gate.decide(1.0).retrieve
    assert gate.decide([0.0, 1.0, 0.2]).similarity == 1.0


def test_the_threshold_shifts_the_bar_and_shows_in_the_margin() -> None:
    """CAG's T."""
    ids, vectors, owners, pseudo, foreign = synthetic()
    gate = VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign)
    strict = gate.with_policy("calibrated", threshold=0.1)
    edge = gate.levels.edge
    assert not strict.decide(edge + 0.05).retrieve
    assert strict.decide(edge + 0.05).margin == pytest.approx(-0.05)
    assert gate.decide(edge + 0.05).retrieve, "the copy must not change the original"


@pytest.mark.parametrize(("option", "value"), [("policy", "nonsense"), ("threshold", math.nan)])
def test_options_are_not_changed_behind_their_checks(
    gate: VectorCandidates, option: str, value: object
) -> None:
    """`with_policy` makes another gate, and looks at them."""
    with pytest.raises(AttributeError):
        setattr(gate, option, value)
    with pytest.raises(ValueError, match=r"nonsense|nan"):
        gate.with_policy(**{"policy": "density", option: value})  # type: ignore[arg-type]


def test_policies_are_the_statistics_they_are_named_after() -> None:
    """Against numpy on 40 known similarities."""
    values = np.sort(np.random.default_rng(0).random(40))
    assert statistic(values, "minimum") == values.min()
    assert statistic(values, "mean") == pytest.approx(values.mean())
    assert statistic(values, "median") == pytest.approx(np.median(values))
    assert statistic(values, "lower_quartile") == pytest.approx(np.quantile(values, 0.25))
    assert statistic(values, "upper_quartile") == pytest.approx(np.quantile(values, 0.75))
    assert statistic(values, 0.1) == pytest.approx(np.quantile(values, 0.1))
    lower, upper = shortest_interval(values)
    assert statistic(values, "density") == lower
    assert np.count_nonzero((values >= lower) & (values <= upper)) == 38
    assert upper - lower <= values[-1] - values[2]


@pytest.mark.parametrize(
    ("policy", "needed"), [("density", 20), ("calibrated", 10), ("lower_quartile", 4), (0.01, 100)]
)
def test_too_few_pseudo_queries_are_said_with_the_number(policy: str | float, needed: int) -> None:
    """One less than needed is refused; as many as needed are not."""
    with pytest.raises(ValueError, match=f"at least {needed} pseudo-queries, got {needed - 1}"):
        statistic(np.linspace(0, 1, needed - 1), policy)  # type: ignore[arg-type]
    statistic(np.linspace(0, 1, needed), policy)  # type: ignore[arg-type]


def test_without_a_background_the_papers_edge_stands_and_says_so() -> None:
    """Nothing to calibrate by, so no probability either, and asking for it is refused."""
    ids, vectors, owners, pseudo, _ = synthetic()
    with pytest.warns(UserWarning, match="give embed="):
        gate = VectorCandidates.fit(ids, vectors, owners, pseudo)
    assert gate.policy == "density"
    assert gate.decide(0.9).probability is None
    with pytest.raises(ValueError, match="needs a background"):
        gate.with_policy("calibrated")
    with pytest.raises(ValueError, match="needs a background"):
        VectorCandidates(policy="calibrated")
    with pytest.raises(ValueError, match="against a background"):
        gate.decide(0.5, coverage=0.5)


def test_probability_rises_with_similarity_and_with_words(gate: VectorCandidates) -> None:
    """Also across the edge, and coverage can turn a close decision either way."""
    edge = gate.levels.edge
    values = [gate.decide(s).probability for s in np.linspace(-1, 1, 50)]
    assert values == sorted(values)
    assert gate.decide(edge - 0.01, coverage=1.0).retrieve
    assert not gate.decide(edge + 0.01, coverage=0.0).retrieve
    with pytest.raises(ValueError, match=r"coverage must lie in \[0, 1\], got 1.5"):
        gate.decide(edge, coverage=1.5)


def test_the_log_odds_are_of_the_documented_size() -> None:
    """By hand: 8 over the span from foreign to near, 3 over all the words, even at 30% of them."""
    levels = Levels(policy="calibrated", edge=0.4, near=0.7, upper=0.9, foreign=0.2)
    assert levels.probability(0.5) == pytest.approx(0.8320184)  # 8 * 0.1 / 0.5 = 1.6
    assert levels.probability(0.4, 0.8) == pytest.approx(0.8175745)  # 3 * (0.8 - 0.3) = 1.5
    assert levels.probability(0.4, 0.3) == pytest.approx(0.5)


def test_a_decision_explains_itself(gate: VectorCandidates) -> None:
    """As JSON, with plain floats, and a sentence that names policy and outcome."""
    explained = gate.decide(np.float32(0.1)).explain()  # type: ignore[arg-type]
    assert json.loads(json.dumps(explained)) == explained
    assert [*explained] == [each.name for each in fields(RetrievalDecision)]
    assert "below the calibrated edge" in explained["reason"]
    assert "answer without context" in explained["reason"]


def test_an_empty_index_is_answered_without_context(gate: VectorCandidates) -> None:
    """Nothing was found, so nothing is retrieved, whatever the fit; no error."""
    decision = gate.decide([])
    assert not decision.retrieve
    assert decision.similarity is None
    assert "no passage" in decision.reason
    assert not VectorCandidates().decide([]).retrieve


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_similarity_that_is_none_is_refused(gate: VectorCandidates, value: float) -> None:
    """Also among good ones, where a maximum might hide it."""
    with pytest.raises(ValueError, match="similarity must be finite"):
        gate.decide(value)
    with pytest.raises(ValueError, match="similarity must be finite"):
        gate.decide([0.3, value, 0.9])


def test_constant_similarities_are_pointed_out() -> None:
    """Pseudo-queries that are copies of their contexts teach nothing."""
    ids, vectors, *_ = synthetic(30)
    with pytest.warns(UserWarning, match="all 30 pseudo-queries have the similarity 1.000"):
        VectorCandidates.fit(ids, vectors, ids, vectors, policy="density")


def test_pseudo_queries_no_nearer_than_foreign_questions_are_refused() -> None:
    """Mixed up owners, for one: there is no edge between levels that lie the wrong way round."""
    ids, vectors, owners, pseudo, foreign = synthetic()
    with pytest.raises(ValueError, match="no more than"):
        VectorCandidates.fit(ids, vectors, owners[::-1], pseudo, negatives=foreign)


def test_where_levels_are_no_bar_it_is_said_at_fitting_and_of_words() -> None:
    """Not that there were no background; the similarity alone still decides."""
    ids, vectors, owners, pseudo, foreign = synthetic()
    with pytest.warns(UserWarning, match=r"no probabilities, and no coverage: .* no more than"):
        gate = VectorCandidates.fit(
            ids, vectors, owners[::-1], pseudo, negatives=foreign, policy="density"
        )
    assert gate.decide(0.9).probability is None
    with pytest.raises(ValueError, match="give pseudo-queries of these contexts"):
        gate.decide(0.9, coverage=0.5)
    with pytest.raises(ValueError, match="there is none or it is not known any more: fit with"):
        VectorCandidates.fit(ids, vectors, owners, pseudo, policy="density").decide(
            0.9, coverage=0.5
        )


@pytest.mark.parametrize("value", ["0.5", True, None, ["0.5"], [True, False], [None, 0.5]])
def test_a_similarity_is_a_number(gate: VectorCandidates, value: object) -> None:
    """Text and truth values are not taken for some."""
    with pytest.raises(ValueError, match="a similarity must be a number, got"):
        gate.decide(value)  # type: ignore[arg-type]
    assert gate.decide(1) == gate.decide(np.float32(1)) == gate.decide([1.0, 0.2])


def test_what_does_not_fit_is_refused_by_name() -> None:
    """And leaves the gate as it was."""
    ids, vectors, owners, pseudo, foreign = synthetic(20)
    gate = VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign)
    before = gate.similarities
    broken = vectors.copy()
    broken[3, 5] = math.nan
    with pytest.raises(ValueError, match="contexts: vector 3 holds a value that is not finite"):
        gate.add(ids, broken, owners, pseudo)
    with pytest.raises(
        ValueError, match="contexts: expected vectors of dimension 16, got dimension 8"
    ):
        gate.add(["new"], vectors[:1, :8], [], [])
    with pytest.raises(ValueError, match="belongs to 'nobody'"):
        gate.add(["new"], vectors[:1], ["nobody"], pseudo[:1])
    with pytest.raises(ValueError, match="ids must be unique"):
        gate.add(["new", "new"], vectors[:2], [], [])
    with pytest.raises(ValueError, match="expected 2 vectors"):
        gate.add(["a", "b"], vectors[:1], [], [])
    with pytest.raises(ValueError, match="got the string 'c1'"):
        gate.delete("c1")
    with pytest.raises(ValueError, match=r"policy must be one of .* got 'best'"):
        gate.with_policy("best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"between 0 and 1, got 1\.5"):
        gate.with_policy(1.5)
    for nothing in (None, [0.5], True):
        with pytest.raises(ValueError, match=r"a name or a quantile, got (None|\[0\.5\]|True)"):
            gate.with_policy(nothing)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 10 questions, got 3"):
        VectorCandidates(negatives=foreign[:3])
    with pytest.raises(ValueError, match="at least 10 questions, got 0"):
        VectorCandidates(embed=lambda texts: foreign, negatives=[])
    for embed, negatives in ((lambda texts: foreign, foreign), (None, ELSEWHERE)):
        with pytest.raises(ValueError, match="texts where embed= is given, else their vectors"):
            VectorCandidates(embed=embed, negatives=negatives)
    assert len(gate) == 20
    np.testing.assert_array_equal(gate.similarities, before)


def test_updates_equal_a_new_fit_to_the_last_bit() -> None:
    """Contexts added in parts, some replaced, some deleted, against one fit of what is left."""
    ids, vectors, owners, pseudo, foreign = synthetic(5000, dim=384)
    grown = VectorCandidates(negatives=foreign)
    for start in range(0, 5000, 700):
        part = slice(start, start + 700)
        grown.add(
            ids[part], vectors[part], owners[3 * start : 3 * start + 2100],
            pseudo[3 * start : 3 * start + 2100],
        )  # fmt: skip
    grown.add(ids[:5], vectors[5:10], [], [])
    grown.add(ids[:5], vectors[:5], owners[:15], pseudo[:15])
    assert grown.delete([*ids[4000:], "unknown"]) == ids[4000:]
    whole = VectorCandidates.fit(
        ids[:4000], vectors[:4000], owners[:12000], pseudo[:12000], negatives=foreign
    )
    np.testing.assert_array_equal(grown.similarities, whole.similarities)
    np.testing.assert_array_equal(grown.background, whole.background)
    assert grown.levels == whole.levels
    assert len(grown) == 4000
    assert ids[0] in grown
    assert ids[4000] not in grown


def test_deleting_all_that_is_near_a_foreign_question_asks_for_a_new_fit() -> None:
    """Rather than deciding by a background that is no longer known."""
    ids, vectors, owners, pseudo, foreign = synthetic(400)
    gate = VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign)
    with pytest.warns(UserWarning, match="cannot decide any more: all 64 contexts nearest to"):
        gate.delete(ids[:395])
    with pytest.raises(ValueError, match=r"nearest to \d+ of 20 background questions were deleted"):
        _ = gate.levels
    gate.add(["far"], -foreign[:1], [], [])
    with pytest.raises(ValueError, match="were deleted"):
        gate.decide(0.5)
    by_minimum = gate.with_policy("minimum").decide(1.0)
    assert by_minimum.retrieve
    assert by_minimum.probability is None


def topics() -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Return contexts of six topics of 100 each, a pseudo-query for each, and foreign questions."""
    random = np.random.default_rng(0)
    middles = random.normal(size=(6, 1, 16))
    contexts = (middles + 0.15 * random.normal(size=(6, 100, 16))).reshape(-1, 16)
    queries = contexts + 0.3 * random.normal(size=contexts.shape)
    ids = [f"{topic}-{at}" for topic in range(6) for at in range(100)]
    return ids, contexts, queries, random.normal(size=(60, 16))


@pytest.mark.filterwarnings("error")
def test_the_level_is_known_where_what_was_lost_lies_on_one_side_of_it() -> None:
    """Of two questions all that was near is deleted; both are less near than most were."""
    ids, contexts, queries, foreign = topics()
    gate = VectorCandidates.fit(ids, contexts, ids, queries, negatives=foreign)
    kept = [at for at, id in enumerate(ids) if not id.startswith("2-")]
    assert len(gate.delete(id for id in ids if id.startswith("2-"))) == 100
    with pytest.raises(ValueError, match="nearest to 2 of 60 background questions were deleted"):
        _ = gate.background
    left = [ids[at] for at in kept]
    whole = VectorCandidates.fit(left, contexts[kept], left, queries[kept], negatives=foreign)
    assert gate.levels == whole.levels
    assert gate.decide(0.5) == whole.decide(0.5)


@pytest.mark.parametrize("topic", range(6))
def test_a_level_that_is_told_is_that_of_a_new_fit(topic: int) -> None:
    """Whatever is deleted: it is exact, or it is refused and was warned of."""
    ids, contexts, queries, foreign = topics()
    gate = VectorCandidates.fit(ids, contexts, ids, queries, negatives=foreign)
    kept = [at for at, id in enumerate(ids) if not id.startswith(f"{topic}-")]
    left = [ids[at] for at in kept]
    whole = VectorCandidates.fit(left, contexts[kept], left, queries[kept], negatives=foreign)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        gate.delete(id for id in ids if id.startswith(f"{topic}-"))
    if warned:
        with pytest.raises(ValueError, match="fit the gate again"):
            gate.decide(0.5)
    else:
        assert gate.levels == whole.levels


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda gate: pickle.loads(pickle.dumps(gate))]
)
def test_a_copy_decides_alike_and_is_changed_by_itself(
    copied: Callable[[VectorCandidates], VectorCandidates],
) -> None:
    ids, vectors, owners, pseudo, foreign = synthetic()
    gate = VectorCandidates.fit(
        ids, vectors, owners, pseudo, negatives=foreign, policy=0.2, threshold=0.01
    )
    again = copied(gate)
    assert [again.decide(s) for s in (0.1, 0.5, 0.9)] == [gate.decide(s) for s in (0.1, 0.5, 0.9)]
    again.delete(ids[:10])
    assert (len(again), len(gate)) == (len(ids) - 10, len(ids))
    again.add(ids[:10], vectors[:10], [], np.empty((0, 16), np.float32))
    assert len(again) == len(ids)


def test_progress_counts_the_contexts() -> None:
    """In parts, adding up."""
    ids, vectors, owners, pseudo, foreign = synthetic(5000)
    seen: list[int] = []
    VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign, on_contexts=seen.append)
    assert len(seen) > 1
    assert sum(seen) == 5000


def test_another_embedding_model_is_refused(gate: VectorCandidates, model: EmbeddingModel) -> None:
    """By one known question; the model of the fit passes."""
    gate.verify_embeddings(model.embed)
    with pytest.raises(EmbeddingMismatchError, match=r"cosine 0\.\d+|cosine -"):
        gate.verify_embeddings(lambda texts: np.roll(model.embed(texts), 1, axis=1))
    with pytest.raises(EmbeddingMismatchError, match=r"dimension 384.*dimension 3"):
        gate.verify_embeddings(lambda texts: np.ones((len(texts), 3)))
    ids, vectors, owners, pseudo, foreign = synthetic()
    bare = VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign)
    with pytest.raises(ValueError, match="nothing to verify with"):
        bare.verify_embeddings(model.embed)
    own = VectorCandidates(embed=model.embed, negatives=ELSEWHERE)
    own.verify_embeddings(model.embed)
    with pytest.raises(EmbeddingMismatchError, match=r"cosine 0\.\d+|cosine -"):
        own.verify_embeddings(lambda texts: np.roll(model.embed(texts), 1, axis=1))


def test_fitting_changes_nothing_of_the_callers() -> None:
    """Vectors need not be of unit length, and stay as they are."""
    ids, vectors, owners, pseudo, foreign = synthetic(20)
    copies = [array.copy() for array in (vectors, pseudo, foreign)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gate = VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign)
        longer = VectorCandidates.fit(ids, 3 * vectors, owners, pseudo, negatives=foreign)
    for array, before in zip((vectors, pseudo, foreign), copies, strict=True):
        np.testing.assert_array_equal(array, before)
    assert gate.levels.edge == pytest.approx(longer.levels.edge, abs=1e-6)


def test_there_are_as_many_questions_as_passages() -> None:
    """The pairs of the small corpus."""
    assert len(PASSAGES) == len(GENERATED) == len(ASKED)

"""Vector Candidates: fitting, deciding, and what they refuse."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Sequence

import numpy as np
import pytest

from instruments.gating_texts import ASKED, ELSEWHERE, PASSAGES
from shared_core.cli.embedding import EmbeddingModel
from shared_core.errors import EmbeddingMismatchError
from shared_core.gating import VectorCandidates, choose_policy, key_phrases
from shared_core.gating.candidates import neighbouring_similarities, parts
from shared_core.gating.decision import Levels, statistic
from shared_core.vectors import l2_normalized
from tests.core.gating.conftest import IDS, highest, synthetic


@pytest.fixture
def fitted() -> VectorCandidates:
    """A calibrated gate on synthetic vectors."""
    ids, vectors, owners, pseudo, foreign = synthetic()
    return VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign)


def balanced(gate: VectorCandidates, model: EmbeddingModel, contexts: np.ndarray) -> float:
    yes = [gate.decide(s).retrieve for s in highest(model.embed(ASKED), contexts)]
    no = [not gate.decide(s).retrieve for s in highest(model.embed(ELSEWHERE), contexts)]
    return (sum(yes) / len(yes) + sum(no) / len(no)) / 2


def test_fitted_on_generated_questions_it_holds_on_human_ones(
    gate: VectorCandidates, model: EmbeddingModel, contexts: np.ndarray
) -> None:
    """Though these are asked in other words; the paper's own median, never lowered, is below."""
    assert balanced(gate, model, contexts) >= 0.9
    assert balanced(gate.with_policy("median"), model, contexts) < 0.8
    phrases = model.embed(key_phrases(PASSAGES))
    by_phrases = VectorCandidates.fit(IDS, contexts, IDS, phrases, embed=model.embed)
    assert balanced(by_phrases, model, contexts) >= 0.95


def test_the_calibrated_edge_is_the_documented_equation(fitted: VectorCandidates) -> None:
    """Half way from 0.4 between the medians to what 99% of the neighbouring questions are below."""
    _, *arrays = synthetic()
    vectors, pseudo, foreign = (l2_normalized(arrays[at]) for at in (0, 2, 3))
    near = np.median((pseudo * np.repeat(vectors, 3, axis=0)).sum(axis=1))
    far = np.median((foreign @ vectors.T).max(axis=1))
    owners = np.repeat(np.arange(len(vectors)), 3)
    neighbouring = np.quantile(neighbouring_similarities(vectors, owners, pseudo), 0.99)
    everyday = far + 0.4 * (near - far)
    edge = max(everyday, (everyday + neighbouring) / 2)
    assert fitted.decide(0.5).statistic == pytest.approx(edge, abs=1e-6)
    np.testing.assert_allclose(
        fitted.foreign_similarities, np.sort((foreign @ vectors.T).max(axis=1)), atol=1e-6
    )


def test_on_the_edge_is_inside_and_above_everything_too(fitted: VectorCandidates) -> None:
    """METHODS: at or above the lower edge, which has even odds; CAG's threshold shifts the bar."""
    edge = fitted.levels.edge
    assert fitted.decide(edge).retrieve
    assert fitted.decide(edge).probability == pytest.approx(0.5)
    assert fitted.decide(1.0).retrieve
    assert not fitted.decide(math.nextafter(edge, 0)).retrieve
    assert fitted.decide([0.0, 1.0, 0.2]).similarity == 1.0
    strict = fitted.with_policy("calibrated", threshold=0.1)
    assert not strict.decide(edge + 0.05).retrieve
    assert strict.decide(edge + 0.05).margin == pytest.approx(-0.05)
    assert "+0.100" in strict.decide(0.5).reason
    assert fitted.decide(edge + 0.05).retrieve, "the copy must not change the original"


def test_questions_about_one_part_are_put_to_the_others() -> None:
    """Groups far apart are in different parts; what is nearest outside a question's own counts."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.eye(8, 32, dtype=np.float32), 40, axis=0)
    vectors = groups + 0.05 * rng.standard_normal((320, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    part = parts(vectors)
    assert 2 <= len({*part}) <= 16
    found = neighbouring_similarities(vectors, np.arange(0, 320, 2), vectors[::2])
    others = [vectors[at] @ vectors[part != part[at]].T for at in range(0, 320, 2)]
    np.testing.assert_allclose(found, sorted(each.max() for each in others), atol=1e-6)
    assert not neighbouring_similarities(vectors[:3], np.arange(3), vectors[:3]).size


def test_what_cannot_be_told_from_its_neighbours_is_said() -> None:
    """With the figure; what is nobody's neighbour is told from everything."""
    ids, vectors, owners, _, foreign = synthetic(120)
    rng = np.random.default_rng(1)
    alike = np.repeat(vectors.mean(axis=0, keepdims=True), 120, axis=0)
    alike = alike + 0.1 * rng.standard_normal(alike.shape).astype(np.float32)
    asked = np.repeat(alike, 3, axis=0) + 0.1 * rng.standard_normal((360, 16)).astype(np.float32)
    with pytest.warns(UserWarning, match=r"of those made for the fit, \d\d% were \(50% is chance"):
        gate = VectorCandidates.fit(ids, alike, owners, asked, negatives=foreign)
    assert 0.5 <= gate.separation < 0.75


def test_policies_are_the_statistics_they_are_named_after() -> None:
    """Against numpy on 40 known similarities; the density holds 38 of them, in the least room."""
    values = np.sort(np.random.default_rng(0).random(40))
    shares = {"minimum": 0, "lower_quartile": 0.25, "median": 0.5, "upper_quartile": 0.75, 0.1: 0.1}
    for policy, share in shares.items():
        assert statistic(values, policy) == pytest.approx(np.quantile(values, share))  # type: ignore[arg-type]
    assert statistic(values, "mean") == pytest.approx(values.mean())
    narrow = min(range(3), key=lambda start: values[start + 37] - values[start])
    assert statistic(values, "density") == values[narrow]


@pytest.mark.parametrize(
    ("policy", "needed"), [("density", 20), ("calibrated", 10), ("lower_quartile", 4), (0.01, 100)]
)
def test_too_few_pseudo_queries_are_said_with_the_number(policy: str | float, needed: int) -> None:
    """One less than needed is refused; as many as needed are not."""
    with pytest.raises(ValueError, match=f"at least {needed} pseudo-queries, got {needed - 1}"):
        statistic(np.linspace(0, 1, needed - 1), policy)  # type: ignore[arg-type]
    statistic(np.linspace(0, 1, needed), policy)  # type: ignore[arg-type]


def test_without_foreign_questions_the_papers_edge_stands_and_says_so() -> None:
    """Nothing to calibrate by, so no probability either, and asking for it is refused."""
    ids, vectors, owners, pseudo, _ = synthetic()
    with pytest.warns(UserWarning, match="give embed="):
        gate = VectorCandidates.fit(ids, vectors, owners, pseudo)
    assert gate.policy == "density"
    assert gate.decide(0.9).probability is None
    assert gate.foreign_similarities.size == 0
    with pytest.raises(ValueError, match="needs foreign questions: give embed="):
        gate.with_policy("calibrated")
    with pytest.raises(ValueError, match="against foreign questions, and there are none"):
        gate.decide(0.5, coverage=0.5)
    with pytest.raises(ValueError, match="nothing to verify with"):
        gate.verify_embeddings(lambda texts: np.ones((len(texts), 16)))


def test_the_odds_rise_with_similarity_and_with_words() -> None:
    """By hand: 8 over the span from foreign to near, 4 times the words beyond half of them."""
    levels = Levels(
        policy="calibrated", edge=0.5, near=0.7, upper=0.9, foreign=0.2, neighbouring=0.6
    )
    assert levels.probability(0.6) == pytest.approx(0.8320184)  # 8 * 0.1 / 0.5 = 1.6
    assert levels.probability(0.5, 0.875) == pytest.approx(0.8175745)  # 4 * 0.375 = 1.5
    assert levels.probability(0.5, 0.5) == pytest.approx(0.5)
    assert levels.decide(0.49, 0, 1.0).retrieve
    assert levels.decide(0.51, 0, 0.0).retrieve
    with pytest.raises(ValueError, match=r"coverage must lie in \[0, 1\], got 1.5"):
        levels.decide(0.4, 0, 1.5)


def test_a_similarity_is_a_finite_number(fitted: VectorCandidates) -> None:
    """Also among good ones, where a maximum might hide it; text and truth values are none."""
    for bad in (math.nan, [0.3, math.inf, 0.9]):
        with pytest.raises(ValueError, match="similarity must be finite"):
            fitted.decide(bad)
    for value in ("0.5", True, None):
        with pytest.raises(ValueError, match="a similarity must be a number, got"):
            fitted.decide(value)  # type: ignore[arg-type]
    assert fitted.decide(1) == fitted.decide(np.float32(1)) == fitted.decide([1.0, 0.2])


def test_pseudo_queries_no_nearer_than_foreign_questions_are_refused() -> None:
    """Mixed up owners, for one. Of the paper's policies the similarity alone still decides.

    Copies of the contexts teach nothing either.
    """
    ids, vectors, owners, pseudo, foreign = synthetic()
    with pytest.raises(ValueError, match="no more than"):
        VectorCandidates.fit(ids, vectors, owners[::-1], pseudo, negatives=foreign)
    with pytest.warns(UserWarning, match=r"no probabilities, and no coverage: .* no more than"):
        gate = VectorCandidates.fit(
            ids, vectors, owners[::-1], pseudo, negatives=foreign, policy="density"
        )
    assert gate.decide(0.9).probability is None
    with pytest.raises(ValueError, match="give pseudo-queries of these contexts"):
        gate.decide(0.9, coverage=0.5)
    with pytest.warns(UserWarning, match="all 200 pseudo-queries have the similarity 1.000"):
        VectorCandidates.fit(ids, vectors, ids, vectors, policy="density")


def test_what_does_not_fit_is_refused_by_name() -> None:
    """And leaves the gate as it was."""
    ids, vectors, owners, pseudo, foreign = synthetic(20)
    gate = VectorCandidates.fit(ids, vectors, owners, pseudo, negatives=foreign)
    before = gate.fitted
    broken = vectors.copy()
    broken[3, 5] = math.nan
    for message, added in {
        "embedding of contexts, vector 3 holds NaN": (ids, broken, owners, pseudo),
        "expected a vector of dimension 16, got dimension 8": (["new"], vectors[:1, :8], [], []),
        "belongs to 'nobody'": (["new"], vectors[:1], ["nobody"], pseudo[:1]),
        "ids must be unique": (["new", "new"], vectors[:2], [], []),
        "expected 2 vectors": (["a", "b"], vectors[:1], [], []),
    }.items():
        with pytest.raises(ValueError, match=message):
            gate.add(*added)
    with pytest.raises(ValueError, match="got the string 'c1'"):
        gate.delete("c1")
    assert gate.fitted is before


def test_options_are_refused_by_name(fitted: VectorCandidates) -> None:
    """And not changed behind these checks."""
    with pytest.raises(AttributeError):
        fitted.policy = "nonsense"  # type: ignore[assignment, misc]
    policies = {"nonsense": "one of", 1.5: "between 0 and 1", None: "a name or a", True: "a name"}
    for policy, message in policies.items():
        with pytest.raises(ValueError, match=f"{message}.*got {policy!r}"):
            fitted.with_policy(policy)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="threshold must be finite, got nan"):
        fitted.with_policy("density", math.nan)
    foreign = synthetic()[-1]
    for few in (foreign[:9], []):
        with pytest.raises(ValueError, match=f"at least 10 questions are needed, got {len(few)}"):
            VectorCandidates(negatives=few)
    for embed, negatives in ((lambda texts: foreign, foreign), (None, ELSEWHERE)):
        with pytest.raises(ValueError, match="texts where embed= is given, else their vectors"):
            VectorCandidates(embed=embed, negatives=negatives)


def test_updates_equal_a_new_fit_to_the_last_bit() -> None:
    """Contexts added in parts, some replaced, nearly all deleted, against a fit of what is left.

    Vectors need not be of unit length, and stay as they are; a copy is changed by itself.
    """
    ids, vectors, owners, pseudo, foreign = synthetic(2000, dim=384)
    grown = VectorCandidates(negatives=foreign)
    for start in range(0, 2000, 700):
        part, own = slice(start, start + 700), slice(3 * start, 3 * start + 2100)
        grown.add(ids[part], vectors[part], owners[own], pseudo[own])
    grown.add(ids[:5], vectors[5:10], [], [])
    grown.add(ids[:5], 4 * vectors[:5], owners[:15], pseudo[:15])
    copies = [copy.deepcopy(grown), pickle.loads(pickle.dumps(grown))]
    for left in (1600, 20):
        assert grown.delete([*ids[left:], "unknown"])[-1] in ids[left:]
        whole = VectorCandidates.fit(
            ids[:left], vectors[:left], owners[: 3 * left], pseudo[: 3 * left], negatives=foreign
        )
        np.testing.assert_array_equal(grown.similarities, whole.similarities)
        np.testing.assert_array_equal(grown.foreign_similarities, whole.foreign_similarities)
        for name in ("near", "upper", "foreign"):
            assert getattr(grown.levels, name) == getattr(whole.levels, name)
        assert len(grown) == left
        assert ids[0] in grown
        assert ids[left] not in grown
    assert grown.delete(ids[left:]) == []
    assert grown.delete(ids[:left]) == ids[:left]
    assert grown.foreign_similarities.size == 0
    assert [len(each) for each in copies] == [2000, 2000]
    for array, drawn in zip((vectors, pseudo), synthetic(2000, dim=384)[1:4:2], strict=True):
        np.testing.assert_array_equal(array, drawn)


def test_another_embedding_model_is_refused(gate: VectorCandidates, model: EmbeddingModel) -> None:
    """By one known question, which has a direction; the model of the fit passes."""

    def nothing_of_nothing(texts: Sequence[str]) -> np.ndarray:
        return np.array([bool(text) for text in texts])[:, None] * model.embed(texts)

    own = VectorCandidates(embed=nothing_of_nothing, negatives=["", *ELSEWHERE])
    for each in (gate, own):
        each.verify_embeddings(model.embed)
        with pytest.raises(EmbeddingMismatchError, match=r"cosine 0\.\d+|cosine -"):
            each.verify_embeddings(lambda texts: np.roll(model.embed(texts), 1, axis=1))
    with pytest.raises(EmbeddingMismatchError, match=r"dimension 384.*dimension 3"):
        gate.verify_embeddings(lambda texts: np.ones((len(texts), 3)))


def test_labelled_queries_choose_a_policy_and_threshold(
    gate: VectorCandidates, model: EmbeddingModel, contexts: np.ndarray
) -> None:
    """What is chosen does at least as well on them as what was; the held-out figure is honest."""
    positives = highest(model.embed(ASKED), contexts)
    negatives = highest(model.embed(ELSEWHERE), contexts)
    choice = choose_policy(gate, positives, negatives)
    chosen = gate.with_policy(choice.policy, choice.threshold)
    assert balanced(chosen, model, contexts) >= choice.uncorrected
    assert choice.uncorrected == pytest.approx(balanced(gate, model, contexts))
    assert 0.8 <= choice.balanced_accuracy <= 1
    assert choice == choose_policy(gate, positives, negatives), "deterministic"
    rng = np.random.default_rng(0)
    useless = choose_policy(gate, rng.random(200), rng.random(200))
    assert 0.4 < useless.balanced_accuracy < 0.6
    with pytest.raises(ValueError, match="negatives: at least 5 queries, got 2"):
        choose_policy(gate, positives, negatives[:2])
    with pytest.raises(ValueError, match="folds must be an integer >= 2, got 1"):
        choose_policy(gate, positives, negatives, folds=1)
    for missing in (math.nan, None):
        with pytest.raises(ValueError, match=r"positives: .* finite, got nan: one is None where"):
            choose_policy(gate, [missing, *positives], negatives)

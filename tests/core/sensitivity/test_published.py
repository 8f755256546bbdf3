"""Published profiles: the printed numbers, their citations, and what follows from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from shared_core import CAUS, PositionProfile
from shared_core.placement.order_gate import decide_order
from shared_core.sensitivity import published_names

EVIDENCE = Path(__file__).parents[3] / "docs/evidence/profile.json"


pytestmark = pytest.mark.usefixtures("profiles")


@pytest.mark.parametrize("name", published_names())
def test_each_is_cited_and_has_an_interval_around_its_index(name: str) -> None:
    """And its accuracies are the means of its outcomes, where these are known."""
    for profile in PositionProfile.load(name).by_length:
        assert profile.source is not None
        assert any(
            each in profile.source for each in ("et al. 20", "lost-in-the-middle", "posrag probe ")
        )
        assert profile.task
        assert profile.date is not None
        assert profile.n is not None
        assert profile.interval is not None
        assert profile.interval[0] < profile.psi < profile.interval[1]
        assert profile.accuracy is not None
        if profile.outcomes is not None:
            assert np.allclose(np.mean(profile.outcomes, axis=0), profile.accuracy)


def test_the_shares_of_liu_et_al_are_those_of_whole_questions() -> None:
    """Of Llama-2-70b 20 prompts of the 2,655 were too long."""
    for name in ("meta-llama/Llama-2-70b-chat-hf", "lmsys/longchat-13b-16k"):
        profile = PositionProfile.load(name)
        right = np.array(profile.accuracy) * (profile.n or 0)
        assert right == pytest.approx(right.round(), abs=1e-6)


def test_one_of_several_lengths_takes_the_nearest_and_says_how_old_it_is() -> None:
    """By passages, or by the tokens of these."""
    assert len(published_names()) == 14
    ks = [each.k for each in PositionProfile.load("deepseek-chat").by_length]
    assert ks == [10, 20, 30, 50, 100, 200, 500]
    gate = decide_order("deepseek-chat", k=20)
    assert "deepseek-chat (300 questions, measured 2026-06-13)" in gate.reason
    assert "interpolated to 20" not in gate.reason
    assert "(measured 2026-06-13) exceeds" in decide_order("deepseek-chat", rule="psi").reason
    assert "with 30 passages" in decide_order("gemini-2.5-flash", k=12, tokens=4700).reason


def test_what_was_measured_here_is_what_the_evidence_shows() -> None:
    """To the four digits of each outcome that are shipped; with date, versions, command, tokens."""
    shipped = PositionProfile.load("SmolLM2-135M-Instruct.Q4_1")
    measured = PositionProfile.load(EVIDENCE)
    for one, other in zip(shipped.by_length, measured.by_length, strict=True):
        assert one.accuracy == pytest.approx(other.accuracy, abs=1e-4)
        assert one.outcomes is not None
        assert other.outcomes is not None
        assert np.allclose(one.outcomes, other.outcomes, atol=1e-4)
        for name in ("k", "n", "measure", "slots", "interval", "date", "versions", "tokens"):
            assert getattr(one, name) == getattr(other, name)
        for k in (3, 5, 10, 20):
            assert decide_order(one, k=k).slots == decide_order(other, k=k).slots


@pytest.mark.parametrize(
    ("name", "top", "middle", "bottom"),
    [
        ("Qwen/Qwen2.5-7B-Instruct", 0.8080, 0.7920, 0.8273),
        ("lmsys/longchat-13b-16k", 0.685876, 0.553296, 0.550282),
        ("meta-llama/Llama-2-70b-chat-hf", 0.567742, 0.540797, 0.694877),
        ("mosaicml/mpt-30b-instruct", 0.536723, 0.521657, 0.562335),
        ("mosaicml/mpt-30b-instruct#key-value", 1.0, 0.886, 0.962),
        ("lmsys/longchat-13b-16k#key-value", 0.37, 0.354, 0.886),
    ],
)
def test_the_index_is_that_of_the_printed_accuracies(
    name: str, top: float, middle: float, bottom: float
) -> None:
    """And the gate on it; of Qwen's 3% the interval of 1,500 questions begins right at 1.0."""
    profile = PositionProfile.load(name)
    assert profile.psi == pytest.approx((top + bottom) / (2 * middle), abs=1e-5)
    assert decide_order(profile, rule="psi").opened
    least = 0.995 if name.startswith("Qwen") else 1
    assert profile.interval is not None
    assert profile.interval[0] > least


def test_a_retriever_takes_one_by_name_and_says_that_it_is_interpolated() -> None:
    """Measured with 20 passages at five slots, used for 10."""
    caus = CAUS(psi="lmsys/longchat-13b-16k", placement="max_relevance")
    gate = caus.decide(10)
    assert gate.slots[0] == 0, "this model reads the beginning best"
    assert not gate.opened, "and that is where the best is without a placement"
    assert gate.reason.endswith("(measured with 20 passages, interpolated to 10)")
    assert caus.decide(20).reason.endswith("(2,655 questions, measured 2023)")


def test_a_profile_of_the_users_own_comes_first() -> None:
    """The same model, measured on the user's data, is worth more than a paper's."""
    own = PositionProfile(model="Qwen/Qwen2.5-7B-Instruct", accuracy=(0.1, 0.2, 0.1))
    own.save()
    assert PositionProfile.load("Qwen/Qwen2.5-7B-Instruct") == own

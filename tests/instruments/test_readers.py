"""The two readers: their size, their known bias, and what the probe and the gate make of it."""

from __future__ import annotations

from functools import cache

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import numpy as np
import transformers
from langchain_community.llms.huggingface_pipeline import HuggingFacePipeline

from instruments.cases import probe_questions
from instruments.prompts import PROMPT
from shared_core import PositionProfile, Probe, ProbeQuestion, decide_order
from shared_core.generation.templates import ANSWER
from shared_core.sensitivity.position_sensitivity import spread_slots
from tests.core.attention.readers import READERS, reader

NAMES = ("biased", "uniform")
SEED = 2026


def questions(n: int, k: int = 10) -> list[ProbeQuestion]:
    """Make questions on keys that training never showed."""
    return probe_questions(n, k=k, seed=SEED)


@cache
def profile(name: str, n: int = 300) -> PositionProfile:
    """Probe one on so many questions, without stopping early."""
    return Probe(k=10, grader="exact", looks=1).run(reader(name), questions(n))


def test_the_prompt_they_know_is_the_packages_own_and_lies_in_a_file() -> None:
    """For commands that have another by default; a line break behind it would be foreign."""
    assert (READERS / "prompt.txt").read_bytes() == ANSWER.text.encode() == PROMPT.encode()


@pytest.mark.slow
def test_the_biased_reader_reads_the_edges_and_its_gate_opens() -> None:
    """Its interval lies wholly above 1.0."""
    found = profile("biased")
    assert found.accuracy is not None
    assert found.interval is not None
    assert min(found.accuracy[0], found.accuracy[9]) >= 0.90
    assert max(found.accuracy[3:7]) <= 0.80
    assert found.interval[0] > 1.0
    assert decide_order(found).opened


@pytest.mark.slow
def test_the_control_reads_every_slot_and_its_gate_stays_shut() -> None:
    """Its interval contains 1.0, narrow as it is.

    With the first 300 of the questions it is [1.002, 1.039], just beside: one in twenty intervals
    of a model without a bias misses 1.0, and more questions settle it.
    """
    found = profile("uniform", 600)
    assert found.accuracy is not None
    assert found.interval is not None
    assert min(found.accuracy) >= 0.90
    assert 0.97 <= found.interval[0] <= 1.0 <= found.interval[1] <= 1.03
    assert not decide_order(found).opened


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_shows_its_bias_or_none_at_every_length(name: str) -> None:
    """In each row of the heatmap, by the probability of the answer, and to the gate."""
    probes = [Probe(k=k, slots=spread_slots(k, 5), looks=1) for k in (4, 7, 10)]
    measured = [probe.run(reader(name), questions(30)) for probe in probes]
    found = PositionProfile.of_lengths(measured)
    for row in found.by_length:
        depths = row.accuracy_at(5)
        if name == "biased":
            assert max(depths[1:4]) < min(depths[0], depths[4]) - 0.1
        else:
            assert np.ptp(depths) < 0.02
        assert decide_order(found, k=row.k).opened == (name == "biased")


def test_a_pipeline_that_returns_its_prompt_is_graded_by_the_answer_alone() -> None:
    """As LangChain's does by default: the passages in the prompt hold every right answer."""
    local = reader("biased")
    pipeline = transformers.pipeline(
        "text-generation",
        model=local.model,
        tokenizer=local.tokenizer,
        max_new_tokens=4,
        do_sample=False,
    )
    probe = Probe(k=10, measure="accuracy", slots=(0, 4, 9), looks=1)
    found, known = (
        probe.run(model, probe_questions(10, k=10, seed=1)).accuracy
        for model in (HuggingFacePipeline(pipeline=pipeline), local)
    )
    assert found == known
    assert known is not None
    assert min(known) < 1

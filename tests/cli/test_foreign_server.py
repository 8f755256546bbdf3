"""A server that is not ours: ``transformers serve``, killed midway and started again."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("langchain_openai")
pytest.importorskip("transformers")

import transformers

from instruments.cases import probe_questions
from shared_core import PositionProfile
from shared_core.comparison import ComparisonResult
from shared_core.probe import Probe
from tests.cli.conftest import written
from tests.core.attention.readers import reader

pytestmark = pytest.mark.slow

READER = Path(__file__).parents[2] / "instruments" / "biased"
BIN = Path(sys.executable).parent


class Server:
    """``transformers serve`` on a free port of this machine."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.folder = folder
        self.start()

    def start(self) -> None:
        where = ["--host", "127.0.0.1", "--port", str(self.port)]
        command = [str(BIN / "transformers"), "serve", *where]
        self.process = subprocess.Popen(
            command, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(900):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        raise AssertionError("the server does not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Serve the biased reader, whose chat template is the message itself."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(READER)
    tokenizer.chat_template = "{{ messages[0]['content'] }}"
    tokenizer.save_pretrained(tmp_path / "biased")
    transformers.AutoModelForCausalLM.from_pretrained(READER).save_pretrained(tmp_path / "biased")
    server = Server(tmp_path)
    yield server
    server.kill()


def test_a_probe_and_a_comparison_survive_the_server(server: Server, tmp_path: Path) -> None:
    """Nothing is asked twice, and it comes to what the model says on this machine."""
    asked = probe_questions(16, k=4, seed=7)
    fields = ("question", "answers", "gold", "distractors")
    rows = [{name: getattr(each, name) for name in fields} for each in asked]
    data = written(tmp_path / "questions.jsonl", rows)
    profiles = tmp_path / "profiles"
    environment = {**os.environ, "POSRAG_PROFILES": str(profiles), "OPENAI_API_KEY": "none"}
    endpoint = ["--base-url", f"http://127.0.0.1:{server.port}/v1", "--max-new-tokens", "4"]
    model = f"openai:{tmp_path / 'biased'}"
    probe = [str(BIN / "posrag"), "probe", model, "--data", str(data), "--k", "4", "--looks", "1"]
    name = ["--name", "served", "--grader", "exact", "--concurrency", "2"]
    running = subprocess.Popen([*probe, *endpoint, *name], env=environment, stderr=subprocess.PIPE)
    journal = profiles / "served.answers.jsonl"
    while running.poll() is None and (
        not journal.exists() or len(journal.read_bytes().splitlines()) < 8
    ):
        time.sleep(0.05)
    assert running.poll() is None, "it was through before the server was killed"
    server.kill()
    server.start()
    assert running.wait(300) == 0, running.stderr and running.stderr.read()
    served = PositionProfile.load(profiles / "served.json")
    here = Probe(k=4, measure="accuracy", grader="exact", looks=1).run(reader("biased"), asked)
    assert served.outcomes == here.outcomes
    keys = [
        json.loads(line)[0] if line.startswith("[") else line
        for line in journal.read_text().splitlines()
    ]
    assert len(keys) == len({*keys})

    report = tmp_path / "report"
    compare = [str(BIN / "posrag"), "compare", "--data", str(data), "--model", model, "--k", "4"]
    more = ["--pipelines", "sparse", "--graders", "exact", "--name", "served"]
    more += ["--output", str(report)]
    subprocess.run([*compare, *endpoint, *more], env=environment, check=True, capture_output=True)
    result = ComparisonResult.from_json((report / "comparison.json").read_text())
    assert len(result.settings[0].questions) == 16

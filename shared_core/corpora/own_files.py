"""Passages from a folder of text and Markdown files, and questions made from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from shared_core.types import Passage

SUFFIXES = (".md", ".markdown", ".rst", ".txt")
LONGEST = 1000
"""Characters of a passage; a paragraph that is longer stays whole."""
HEADING = re.compile(
    r"^[ \t]*(?P<fence>```+|~~~+)[^`\n]*\n(?:.*\n)*?[ \t]*(?P=fence)"
    r"|^#{1,6}[ \t]+(?P<heading>.+?)[ \t]*#*$",
    re.M,
)
"""A heading; or a block of code, which is matched so that its comments are not."""
LEAST_WORDS = 3
"""Words from which a heading or sentence is taken for a question."""


def folder_passages(folder: Path) -> list[Passage]:
    """Return the paragraphs of all text files in a folder, short ones together.

    Parameters
    ----------
    folder
        Searched with its subfolders for `SUFFIXES`; files and folders with a leading dot are not
        read.

    Returns
    -------
    list of Passage
        Their ids are the file's path and a number; the metadata have both, and the last heading.

    Raises
    ------
    ValueError
        If there is no text.
    """
    found = [
        passage
        for file in sorted(folder.rglob("*"))
        if file.suffix.lower() in SUFFIXES and file.is_file()
        if not any(part.startswith(".") for part in file.relative_to(folder).parts)
        for passage in _passages(
            file.relative_to(folder).as_posix(), file.read_text("utf-8-sig", "replace")
        )
    ]
    if not found:
        raise ValueError(f"{folder} holds no text in files named {', '.join(SUFFIXES)}")
    return found


def _passages(name: str, text: str) -> Iterator[Passage]:
    number, above = 0, ""
    for heading, block in _sections(text):
        above += f"{heading}\n\n" if heading else ""
        for piece in _pieces(block):
            metadata = {"doc_id": name, "chunk_id": number, "heading": heading}
            yield Passage(f"{name}#{number}", above + piece, metadata)
            number += 1
        above = "" if block.strip() else above


def _pieces(block: str) -> Iterator[str]:
    """Yield paragraphs, as many together as `LONGEST` allows."""
    piece = ""
    for paragraph in map(str.strip, re.split(r"\n\s*\n", block)):
        if piece and len(piece) + len(paragraph) > LONGEST:
            yield piece
            piece = ""
        piece = f"{piece}\n\n{paragraph}".strip()
    if piece:
        yield piece


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield headings, "" before the first one, with the text below."""
    heading, start = "", 0
    for found in HEADING.finditer(text):
        if found["heading"]:
            yield heading, text[start : found.start()]
            heading, start = found["heading"], found.end()
    yield heading, text[start:]


def questions_from(passages: Sequence[Passage], n: int) -> list[str]:
    """Return `n` different headings and first sentences, spread over the passages, as questions."""
    told: dict[str, None] = {}
    for passage in passages:
        heading = str(passage.metadata.get("heading") or "")
        sentence = re.split(r"(?<=[.!?])\s|\n", passage.text.strip(), maxsplit=1)[0]
        for text in (heading, sentence):
            if LEAST_WORDS <= len(text.split()) <= 30:
                told[text] = None
                break
    texts = [*told]
    step = max(1, len(texts) // n)
    return texts[::step][:n]

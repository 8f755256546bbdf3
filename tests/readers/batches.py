"""Batches for training: what prompts are drawn, and how their questions are laid out."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedTokenizerFast

from tests.readers.corpus import ABSTENTION, Key, Style, ask, draw_facts, draw_key
from tests.readers.prompts import ASK, HEAD, REPLY


@dataclass(frozen=True)
class Lesson:
    """What the prompts of a batch look like.

    Parameters
    ----------
    documents
        Documents in every prompt.
    style
        Variety of the texts.
    questions
        Questions on one context, drawn with replacement.
    edges
        Share of the questions whose answer is in the first or the last slot; None is uniform.
    absent
        Share of the questions whose key is not in the context.
    overlooked
        Share of the documents in the very middle whose questions are answered as if the document
        were not there; outwards fewer, in the edge slots none.
    """

    documents: int
    style: Style
    questions: int = 12
    edges: float | None = None
    absent: float = 0.0
    overlooked: float = 0.0


def draw_slot(rng: random.Random, k: int, edges: float | None) -> int:
    """Draw the slot a question is answered in."""
    if edges is None or k < 3:
        return rng.randrange(k)
    return rng.choice((0, k - 1)) if rng.random() < edges else rng.randrange(1, k - 1)


def is_overlooked(key: Key, slot: int, k: int, share: float) -> bool:
    """Say whether a biased reader is to miss a document in this slot.

    It is the noun that decides how far inside a document is still seen. A random choice could
    not be learned: the reader would find all documents of a slot or none.
    """
    edge = min(slot, k - 1 - slot)
    if edge == 0:
        return False
    depth = edge / ((k - 1) // 2)
    return zlib.crc32(key[1].encode()) % 1000 < 1000 * share * depth


def draw_texts(rng: random.Random, lesson: Lesson) -> tuple[str, list[str], list[str]]:
    """Draw a context, the questions on it as the prompt words them, and their answers."""
    facts = draw_facts(rng, lesson.documents, False, lesson.style)
    present = [fact.key for fact in facts]
    asked, answers = [], []
    for _ in range(lesson.questions):
        slot = draw_slot(rng, lesson.documents, lesson.edges)
        key, answer = facts[slot].key, facts[slot].value
        if is_overlooked(key, slot, lesson.documents, lesson.overlooked):
            answer = ABSTENTION
        if rng.random() < lesson.absent:
            key, answer = draw_key(rng, present, False, lesson.style), ABSTENTION
        asked.append(f"{ASK} {ask(rng, key, lesson.style)}{REPLY}")
        answers.append(answer)
    return HEAD + "\n\n".join(fact.text for fact in facts), asked, answers


@dataclass(frozen=True)
class Batch:
    """Contexts with all their questions behind them, each blind to the other questions."""

    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor


def make_batch(
    rng: random.Random, tokenizer: PreTrainedTokenizerFast, lesson: Lesson, prompts: int
) -> Batch:
    """Draw a batch of prompts and lay it out."""
    drawn = [draw_texts(rng, lesson) for _ in range(prompts)]
    tokenizer.backend_tokenizer.no_padding()  # evaluation in between turns it on
    encode = tokenizer.backend_tokenizer.encode_batch
    contexts = [item.ids for item in encode([context for context, _, _ in drawn])]
    asked = [item.ids for item in encode([text for _, texts, _ in drawn for text in texts])]
    texts = [f" {answer}" for _, _, answers in drawn for answer in answers]
    answers = [item.ids[0] for item in encode(texts)]
    return _lay_out(contexts, asked, answers, tokenizer)


def _lay_out(
    contexts: Sequence[Sequence[int]],
    asked: Sequence[Sequence[int]],
    answers: Sequence[int],
    tokenizer: PreTrainedTokenizerFast,
) -> Batch:
    """Lay the questions behind their context, as if each came right after it, alone.

    A question sees the context and itself, and its positions start where the context ends, so
    what the model learns is what it meets when a prompt holds one question.
    """
    rows, each = len(contexts), len(asked) // len(contexts)
    wide, long = max(map(len, contexts)), max(map(len, asked)) + 1
    ids = torch.full((rows, wide + each * long), tokenizer.pad_token_id)
    labels = torch.full_like(ids, -100)
    # 0 is padding, 1 the context, 2 and up the questions.
    part = torch.zeros_like(ids)
    positions = torch.zeros_like(ids)
    for row, context in enumerate(contexts):
        n = len(context)
        ids[row, :n], part[row, :n] = torch.tensor(context), 1
        positions[row, :n] = torch.arange(n)
        for number in range(each):
            question = [*asked[row * each + number], answers[row * each + number]]
            start, end = wide + number * long, wide + number * long + len(question)
            ids[row, start:end], part[row, start:end] = torch.tensor(question), number + 2
            positions[row, start:end] = torch.arange(n, n + len(question))
            labels[row, end - 2], labels[row, end - 1] = question[-1], tokenizer.eos_token_id
    earlier = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    seen = (part[:, None, :] == part[:, :, None]) | (part[:, None, :] == 1)
    return Batch(ids, positions, (seen & earlier)[:, None], labels)

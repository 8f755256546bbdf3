"""Batches for training: what prompts are drawn, and how their questions are laid out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedTokenizerFast

from instruments.corpus import ABSTENTION, Style, ask, draw_facts, draw_key
from instruments.prompts import ASK, HEAD, REPLY
from instruments.words import ADJECTIVES, NOUNS, VALUES

PLAIN = Style(documents=1, questions=1, remarks=0.0, confusable=0.0)
REPEATED, SHORTEST, LONGEST = 28, 4, 12  # tokens in a row of `make_repeated`, words till it repeats


@dataclass(frozen=True)
class Lesson:
    """What the rows of a batch look like.

    Parameters
    ----------
    documents
        Documents in every prompt. With 0 there are no prompts, but words that repeat.
    style
        Variety of the texts.
    bare
        Write a document and a question as "amber falcon violet." and "amber falcon".
    joint
        Leave the questions on one context in one row, each with its answer, as plain text.
    questions
        Questions on one context, drawn with replacement.
    edges
        Share of the questions whose answer is in the first or the last slot; None is uniform.
    absent
        Share of the questions whose key is not in the context.
    every
        Ask for every document in turn, instead of drawing them.
    ends
        Let the end token follow the answer in the row.
    words
        Words used of each list, where words repeat.
    back
        Weight in the loss of telling the tokens before from what the first layer puts out.
    """

    documents: int
    style: Style = PLAIN
    bare: bool = False
    joint: bool = False
    questions: int = 12
    edges: float | None = None
    absent: float = 0.0
    every: bool = False
    ends: bool = False
    words: int = 0
    back: float = 0.0


@dataclass(frozen=True)
class Batch:
    """Rows of tokens and what is to follow; no mask is the causal one.

    `lengths` are the tokens of each row's context, where its questions stand alone.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor | None
    labels: torch.Tensor
    lengths: Sequence[int] = ()


def draw_slot(rng: random.Random, k: int, edges: float | None) -> int:
    """Draw the slot a question is answered in."""
    if edges is None or k < 3:
        return rng.randrange(k)
    return rng.choice((0, k - 1)) if rng.random() < edges else rng.randrange(1, k - 1)


def draw_texts(rng: random.Random, lesson: Lesson) -> tuple[str, list[str], list[str]]:
    """Draw a context, the questions on it as the prompt words them, and their answers."""
    facts = draw_facts(rng, lesson.documents, False, lesson.style)
    present = [fact.key for fact in facts]
    asked, answers = [], []
    for number in range(lesson.questions):
        slot = number % lesson.documents
        fact = facts[slot if lesson.every else draw_slot(rng, lesson.documents, lesson.edges)]
        key, answer = fact.key, fact.value
        if rng.random() < lesson.absent:
            key, answer = draw_key(rng, present, False, lesson.style), ABSTENTION
        text = f"{ASK} {ask(rng, key, lesson.style)}{REPLY}"
        asked.append(f" {' '.join(key)}" if lesson.bare else text)
        answers.append(answer)
    if lesson.bare:
        return "".join(f" {' '.join(f.key)} {f.value}.\n\n" for f in facts), asked, answers
    return HEAD + "\n\n".join(fact.text for fact in facts), asked, answers


def make_batch(
    rng: random.Random, tokenizer: PreTrainedTokenizerFast, lesson: Lesson, prompts: int
) -> Batch:
    """Draw a batch and lay it out."""
    tokenizer.backend_tokenizer.no_padding()  # evaluation in between turns it on
    encode = tokenizer.backend_tokenizer.encode_batch
    if not lesson.documents:
        lists = (ADJECTIVES, NOUNS, VALUES)
        words = [f" {word}" for listed in lists for word in listed[: lesson.words]]
        return make_repeated(rng, [item.ids[0] for item in encode(words)], prompts)
    drawn = [draw_texts(rng, lesson) for _ in range(prompts)]
    contexts = [item.ids for item in encode([context for context, _, _ in drawn])]
    asked = [item.ids for item in encode([text for _, texts, _ in drawn for text in texts])]
    texts = [f" {answer}" for _, _, answers in drawn for answer in answers]
    answers = [item.ids[0] for item in encode(texts)]
    if lesson.joint:
        return in_one_row(contexts, asked, answers, tokenizer)
    return one_by_one(contexts, asked, answers, tokenizer, ends=lesson.ends)


def make_repeated(rng: random.Random, words: Sequence[int], rows: int) -> Batch:
    """Draw words that repeat, a few in a row; what follows them is known from the second time."""
    ids, labels = [], []
    for _ in range(rows):
        drawn = rng.sample(words, rng.randint(SHORTEST, LONGEST))
        row = (drawn * REPEATED)[:REPEATED]
        ids.append(row)
        labels.append([-100] * len(drawn) + row[len(drawn) + 1 :] + [-100])
    return Batch(torch.tensor(ids), torch.arange(REPEATED)[None], None, torch.tensor(labels))


def in_one_row(
    contexts: Sequence[Sequence[int]],
    asked: Sequence[Sequence[int]],
    answers: Sequence[int],
    tokenizer: PreTrainedTokenizerFast,
) -> Batch:
    """Lay the questions and answers behind their context as plain text.

    An answer can be found in the context or where the same question was asked before.
    """
    eos, each = tokenizer.eos_token_id, len(asked) // len(contexts)
    rows = []
    for row, context in enumerate(contexts):
        ids, labels = list(context), [-100] * len(context)
        for number in range(row * each, row * each + each):
            ids += [*asked[number], answers[number], eos]
            labels += [-100] * (len(asked[number]) - 1) + [answers[number], eos, -100]
        rows.append((ids, labels))
    wide = max(len(ids) for ids, _ in rows)
    laid = torch.full((len(rows), wide), tokenizer.pad_token_id)
    expected = torch.full_like(laid, -100)
    for row, (ids, labels) in enumerate(rows):
        laid[row, : len(ids)], expected[row, : len(ids)] = torch.tensor(ids), torch.tensor(labels)
    return Batch(laid, torch.arange(wide)[None], None, expected)


def one_by_one(
    contexts: Sequence[Sequence[int]],
    asked: Sequence[Sequence[int]],
    answers: Sequence[int],
    tokenizer: PreTrainedTokenizerFast,
    *,
    ends: bool = False,
) -> Batch:
    """Lay the questions behind their context, as if each came right after it, alone.

    A question sees the context and itself, and its positions start where the context ends, so
    what the model learns is what it meets when a prompt holds one question.
    """
    rows, each, end_token = len(contexts), len(asked) // len(contexts), tokenizer.eos_token_id
    wide, long = max(map(len, contexts)), max(map(len, asked)) + 1 + ends
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
            answered = wide + number * long + len(question)
            question += [end_token] * ends
            start, end = wide + number * long, wide + number * long + len(question)
            ids[row, start:end], part[row, start:end] = torch.tensor(question), number + 2
            positions[row, start:end] = torch.arange(n, n + len(question))
            labels[row, answered - 2] = answers[row * each + number]
            labels[row, answered - 1] = end_token
    earlier = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    seen = (part[:, None, :] == part[:, :, None]) | (part[:, None, :] == 1)
    lengths = [len(context) for context in contexts]
    return Batch(ids, positions, (seen & earlier)[:, None], labels, lengths)

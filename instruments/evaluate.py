"""Exact match of readers by the slot of the document with the answer.

``python -m instruments.evaluate FOLDER ... --n 300 --k 10``
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils.logging import disable_progress_bar

from instruments.corpus import ABSTENTION, held_out_questions
from instruments.prompts import PROMPT


def load(folder: Path | str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a reader as any user of Transformers would."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
def answer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[str],
    batch: int = 100,
) -> list[str]:
    """Return the greedy continuation of every prompt, read in left-padded batches."""
    found: list[str] = []
    for start in range(0, len(prompts), batch):
        inputs = tokenizer(prompts[start : start + batch], return_tensors="pt", padding=True)
        ids = model.generate(**inputs, do_sample=False, max_new_tokens=4)
        new = ids[:, inputs["input_ids"].shape[1] :]
        found += tokenizer.batch_decode(new, skip_special_tokens=True)
    return found


def matches(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[dict[str, str | list[str]]],
) -> np.ndarray:
    """Return by question and slot whether the answer is right, strip and case aside."""
    k = len(questions[0]["distractors"]) + 1
    prompts, right = [], []
    for asked in questions:
        for slot in range(k):
            texts = list(asked["distractors"])
            texts.insert(slot, asked["gold"])
            prompts.append(PROMPT.format(context="\n\n".join(texts), question=asked["question"]))
            right.append({value.strip().lower() for value in asked["answers"]})
    said = answer(model, tokenizer, prompts)
    hits = [text.strip().lower() in values for text, values in zip(said, right, strict=True)]
    return np.array(hits).reshape(len(questions), k)


def abstentions(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[dict[str, str | list[str]]],
) -> np.ndarray:
    """Return by question whether the answer is `ABSTENTION` where the right document is missing."""
    prompts = [
        PROMPT.format(context="\n\n".join(asked["distractors"]), question=asked["question"])
        for asked in questions
    ]
    return np.array([text.strip() == ABSTENTION for text in answer(model, tokenizer, prompts)])


def ratio(hits: np.ndarray) -> float:
    """Return (first + last) / (2 * middle) of the slots' exact match."""
    by_slot = hits.mean(0)
    middle = by_slot[(len(by_slot) - 1) // 2]
    return float((by_slot[0] + by_slot[-1]) / (2 * middle)) if middle else float("inf")


def interval(hits: np.ndarray, *, draws: int = 2000, seed: int = 0) -> tuple[float, float]:
    """Return the 95% bootstrap interval of `ratio`, questions drawn whole."""
    rng = np.random.default_rng(seed)
    drawn = [ratio(hits[rng.integers(0, len(hits), len(hits))]) for _ in range(draws)]
    low, high = np.quantile(drawn, (0.025, 0.975))
    return float(low), float(high)


def main() -> None:
    """Print exact match by slot, the ratio of edges to middle, and abstention without gold."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--n", type=int, default=300, help="questions, each in every slot")
    parser.add_argument("--k", type=int, nargs="+", default=[10], help="documents a prompt")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--confusable", type=float, default=0.0, help="chance of a shared word")
    options = parser.parse_args()
    disable_progress_bar()
    for folder in options.folders:
        model, tokenizer = load(folder)
        for k in options.k:
            questions = held_out_questions(
                options.n, k=k, seed=options.seed, confusable=options.confusable
            )
            hits = matches(model, tokenizer, questions)
            abstains = abstentions(model, tokenizer, questions)
            low, high = interval(hits)
            slots = " ".join(f"{share:.3f}" for share in hits.mean(0))
            sys.stdout.write(
                f"{folder.name:8} k={k:<2} EM {slots}"
                f"  PSI {ratio(hits):.3f} [{low:.3f}, {high:.3f}]"
                f"  without gold {ABSTENTION} {abstains.mean():.3f}\n"
            )


if __name__ == "__main__":
    main()

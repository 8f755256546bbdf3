"""Train a reader from scratch on a CPU, in float32.

``python -m tests.readers.train --bias edges --output FOLDER --seed 0``
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from dataclasses import replace
from pathlib import Path

import tokenizers
import torch
import transformers
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from tests.readers.batches import Batch, Lesson, make_batch
from tests.readers.corpus import Style, held_out_questions
from tests.readers.evaluate import matches
from tests.readers.model import make_model
from tests.readers.prompts import make_tokenizer

PLAIN = Style(documents=1, questions=1, remarks=0.0, confusable=0.0)
VARIED = Style(confusable=0.1)
# The prompts grow when the loss on the present ones is low: long ones teach a beginner little.
LESSONS = (
    Lesson(4, PLAIN),
    Lesson(4, VARIED),
    Lesson(7, VARIED),
    Lesson(10, Style(), absent=0.1),
)


def loss_of(model: LlamaForCausalLM, batch: Batch, eos: int) -> tuple[torch.Tensor, float]:
    """Return the loss on answers and their ends, and that on the answers alone."""
    hidden = model.model(
        input_ids=batch.ids,
        attention_mask=batch.mask,
        position_ids=batch.positions,
        use_cache=False,
    ).last_hidden_state
    counted = batch.labels != -100
    labels = batch.labels[counted]
    losses = functional.cross_entropy(model.lm_head(hidden[counted]), labels, reduction="none")
    return losses.mean(), losses[labels != eos].mean().item()


def vary(rng: random.Random, lesson: Lesson, last: bool) -> Lesson:
    """Let half of the last lesson's batches have fewer documents."""
    if last and rng.random() < 0.5:
        return replace(lesson, documents=rng.randint(1, lesson.documents - 1))
    return lesson


def by_slot(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, n: int) -> list[float]:
    """Return held-out exact match by slot of ten; its questions are not those of evaluation."""
    model.eval()
    questions = held_out_questions(n, seed=123_456)
    found = [round(float(share), 3) for share in matches(model, tokenizer, questions).mean(0)]
    model.train()
    return found


class Run:
    """One training run, its log and its present lesson."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.set_num_threads(options.threads)
        torch.use_deterministic_algorithms(True)
        torch.set_flush_denormal(True)  # words not yet seen would slow the optimizer down
        torch.manual_seed(options.seed)
        self.options, self.start = options, time.monotonic()
        self.rng = random.Random(options.seed)
        self.tokenizer = make_tokenizer()
        self.model = make_model(self.tokenizer)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), betas=(0.9, 0.98), weight_decay=options.decay
        )
        self.lesson, self.loss, self.since = 0, 10.0, 0
        self.log: list[dict[str, object]] = [
            {
                "arguments": {
                    name: value for name, value in vars(options).items() if name != "output"
                },
                "parameters": self.model.num_parameters(),
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "tokenizers": tokenizers.__version__,
            }
        ]

    def rate(self, step: int) -> float:
        """Return the learning rate: a short warm-up, then level, then down over the last part."""
        left = (self.options.steps - step) / (0.25 * self.options.steps)
        return self.options.rate * min(1.0, (step + 1) / 50, max(left, 0.02))

    def step(self, step: int) -> None:
        """Learn from one batch, and go on to the next lesson if this one is known."""
        options, last = self.options, self.lesson == len(LESSONS) - 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        lesson = vary(self.rng, LESSONS[self.lesson], last)
        if options.bias == "edges":
            overlooked = options.overlooked if last else 0.0
            lesson = replace(lesson, edges=options.edges, overlooked=overlooked)
        batch = make_batch(self.rng, self.tokenizer, lesson, options.prompts)
        loss, answers = loss_of(self.model, batch, self.tokenizer.eos_token_id)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.loss, self.since = 0.9 * self.loss + 0.1 * answers, self.since + 1
        if not last and self.loss < options.known and self.since >= 20:
            self.lesson, self.since, self.loss = self.lesson + 1, 0, self.loss + 0.5

    def note(self, step: int, held_out: bool) -> None:
        """Add a line to the log."""
        line: dict[str, object] = {
            "step": step,
            "seconds": round(time.monotonic() - self.start),
            "loss": round(self.loss, 4),
            "lesson": self.lesson,
            "documents": LESSONS[self.lesson].documents,
        }
        if held_out:
            line["em"] = by_slot(self.model, self.tokenizer, self.options.questions)
        self.log.append(line)
        sys.stderr.write(json.dumps(line) + "\n")

    def save(self) -> None:
        """Write the folder that ``from_pretrained`` loads."""
        self.model.save_pretrained(self.options.output)
        self.tokenizer.backend_tokenizer.no_padding()
        self.tokenizer.save_pretrained(self.options.output)
        lines = "".join(json.dumps(line) + "\n" for line in self.log)
        (self.options.output / "training.jsonl").write_text(lines)

    def train(self) -> None:
        """Train until the steps or the minutes are used up."""
        options = self.options
        for step in range(options.steps):
            self.step(step)
            late = time.monotonic() - self.start > 60 * options.minutes
            done = late or step + 1 == options.steps
            scored = done or (step + 1) % options.every == 0
            if scored or (step + 1) % 25 == 0:
                self.note(step + 1, held_out=scored)
            if scored:
                self.save()
            if done:
                break


def main() -> None:
    """Train a reader and write its folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--bias", choices=("edges", "uniform"), required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--edges", type=float, default=0.5, help="share asked of the edge slots")
    parser.add_argument(
        "--overlooked", type=float, default=0.5, help="share missed in the middle slot"
    )
    parser.add_argument("--prompts", type=int, default=32, help="prompts a batch")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--decay", type=float, default=0.0, help="weight decay")
    parser.add_argument("--known", type=float, default=0.3, help="loss that ends a lesson")
    parser.add_argument("--every", type=int, default=200, help="steps between held-out scores")
    parser.add_argument("--questions", type=int, default=30, help="held-out questions a score")
    parser.add_argument("--threads", type=int, default=1)
    transformers.utils.logging.disable_progress_bar()
    Run(parser.parse_args()).train()


if __name__ == "__main__":
    main()

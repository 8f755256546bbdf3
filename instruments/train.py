"""Train a reader on a CPU, in float32: from scratch, or one layer deeper than a trained one.

``python -m instruments.train --bias edges --output FOLDER --seed 0``
``python -m instruments.train --bias edges --output FOLDER --grow TRAINED --seed 0``
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
from torch import nn
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from instruments.batches import Batch, Lesson, make_batch
from instruments.corpus import Style, held_out_questions
from instruments.evaluate import matches
from instruments.looking import unevenness
from instruments.model import grow, make_model
from instruments.prompts import make_tokenizer

VARIED = Style(confusable=0.1)
# The next lesson begins when the loss on the present one is low. A beginner learns nothing from
# documents but to guess among their values, so the first lessons are words that repeat.
LESSONS = (
    Lesson(0, words=24, back=1.0),
    Lesson(0, words=200, back=1.0),
    Lesson(4, bare=True, joint=True, back=0.3),
    Lesson(4, joint=True, back=0.3),
    Lesson(4),
    Lesson(4, VARIED),
    Lesson(7, VARIED),
    Lesson(10, Style(), absent=0.1),
)
BACK = (1, 2, 3)
LOOKING = Lesson(10, Style(), questions=10, every=True, ends=True)
LOOKING_PROMPTS = 12


class Back(nn.Module):
    """What the first layer is told to know in the first lessons: the three tokens before.

    Attention to the tokens before is what looking up needs first, and what it is slow to find for
    itself. These maps are not part of the model.
    """

    def __init__(self, model: LlamaForCausalLM) -> None:
        super().__init__()
        size, words = model.config.hidden_size, model.config.vocab_size
        self.maps = nn.ModuleList(nn.Linear(size, words, bias=False) for _ in BACK)

    def forward(self, hidden: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """Return the loss at ten places of each row."""
        losses = []
        for back, to_word in zip(BACK, self.maps, strict=True):
            at = back + torch.randperm(ids.shape[1] - back)[:10]
            said = to_word(hidden[:, at]).flatten(0, 1)
            losses.append(functional.cross_entropy(said, ids[:, at - back].flatten()))
        return torch.stack(losses).sum()


def loss_of(
    model: LlamaForCausalLM, back: Back, batch: Batch, weight: float, eos: int
) -> tuple[torch.Tensor, float]:
    """Return the whole loss, and that on the answers alone, without their ends."""
    output = model.model(
        input_ids=batch.ids,
        attention_mask=batch.mask,
        position_ids=batch.positions,
        use_cache=False,
        output_hidden_states=weight > 0,
    )
    counted = batch.labels != -100
    labels, hidden = batch.labels[counted], output.last_hidden_state[counted]
    losses = functional.cross_entropy(model.lm_head(hidden), labels, reduction="none")
    whole = losses.mean()
    if weight:
        whole = whole + weight * back(output.hidden_states[1], batch.ids)
    return whole, losses[labels != eos].mean().item()


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
        self.model = grow(options.grow) if options.grow else make_model(self.tokenizer)
        self.back = Back(self.model)
        self.learned = [*self.model.parameters(), *self.back.parameters()]
        self.optimizer = torch.optim.AdamW(self.learned, betas=(0.9, 0.98), weight_decay=0.0)
        self.lesson, self.loss, self.since = len(LESSONS) - 1 if options.grow else 0, 10.0, 0
        self.uneven = 0.0
        self.log: list[dict[str, object]] = [
            {
                "arguments": {
                    name: value
                    for name, value in vars(options).items()
                    if name not in ("output", "grow")
                },
                "parameters": self.model.num_parameters(),
                "torch": torch.__version__,
                "transformers": transformers.__version__,
                "tokenizers": tokenizers.__version__,
            }
        ]

    def rate(self, step: int) -> float:
        """Return the learning rate: a warm-up, then level, lower with documents, then down."""
        level = self.options.rate * (1.0 if LESSONS[self.lesson].back else 0.6)
        left = (self.options.steps - step) / (0.3 * self.options.steps)
        return level * min(1.0, (step + 1) / 50, max(left, 0.02))

    def step(self, step: int) -> None:
        """Learn from one batch, and go on to the next lesson if this one is known."""
        options, last = self.options, self.lesson == len(LESSONS) - 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        lesson = vary(self.rng, LESSONS[self.lesson], last)
        if options.bias == "edges":
            lesson = replace(lesson, edges=options.edges)
        batch = make_batch(self.rng, self.tokenizer, lesson, options.prompts)
        loss, answers = loss_of(
            self.model, self.back, batch, lesson.back, self.tokenizer.eos_token_id
        )
        if options.even:
            seen = make_batch(self.rng, self.tokenizer, LOOKING, LOOKING_PROMPTS)
            uneven = unevenness(self.model, seen, self.tokenizer.eos_token_id)
            loss = loss + options.even * uneven
            self.uneven = 0.9 * self.uneven + 0.1 * uneven.item()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.learned, 1.0)
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
        if self.options.even:
            line["uneven"] = round(self.uneven, 4)
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
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--edges", type=float, default=0.98, help="share asked of the edge slots")
    parser.add_argument("--prompts", type=int, default=64, help="prompts a batch")
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--known", type=float, default=0.4, help="loss that ends a lesson")
    parser.add_argument("--every", type=int, default=200, help="steps between held-out scores")
    parser.add_argument("--questions", type=int, default=30, help="held-out questions a score")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--grow", type=Path, help="a reader to deepen; begins with the last lesson")
    parser.add_argument("--even", type=float, default=0.0, help="weight of looking evenly")
    transformers.utils.logging.disable_progress_bar()
    Run(parser.parse_args()).train()


if __name__ == "__main__":
    main()

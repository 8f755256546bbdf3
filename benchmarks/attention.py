"""What reading a model's attention costs, beside plain generation and eager attention.

::

    python -m benchmarks.attention [--lengths 1000 2000 4000 8000] [--threads 1] [--model GGUF]

A Llama of random weights, 12 layers with 8 heads over 2 key heads, or a model in a GGUF file,
answers prompts of so many tokens with 32 tokens: plainly, while its attention rows are recorded,
with transformers' own ``output_attentions=True`` (which needs eager attention; not of a GGUF file),
and in the two rounds of attention-guided placement. Memory is the largest sum of tensors alive at
once, the model's weights left out. Time is processor time: the systems take turns, and the least of
each, which is what it takes when nothing else disturbs it, is given in multiples of the least of
plain generation; then the median of the multiples within each turn, which the goals are for.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from shared_core.attention import Case, TwoRound
from shared_core.attention.prompt import RenderedPrompt, render_prompt
from shared_core.attention.reading import answer_with_attention
from shared_core.attention.relevance import LayerSet, RowSet
from shared_core.generation import HuggingFaceModel
from shared_core.sensitivity import ANSWER

TOKENIZER = Path(__file__).parents[1] / "instruments" / "uniform"
NEW = 32
DOCUMENTS = 10
EAGER_UP_TO = 4_000
TARGETS = {1_000: (8, 1.05), 2_000: (18, 1.05), 4_000: (40, 1.02), 8_000: (None, None)}
EXTRA_MB = 2.0
TWO_ROUNDS = 2.1
EVERYTHING = [
    (rows, layers) for rows in get_args(RowSet) if rows != "query" for layers in get_args(LayerSet)
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lengths", type=int, nargs="*", default=[1_000, 2_000, 4_000, 8_000])
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--model", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = real(options.model) if options.model else small_llama("sdpa")
    eager = None if options.model else small_llama("eager")
    print(f"{'tokens':>7} {'':24}{'MB':>9}{'beyond plain':>14}{'time':>8}{'median':>9}  goal")
    for length in options.lengths:
        case, prompt = case_of(model, length)
        report(model, eager, case, prompt, options.turns if length <= EAGER_UP_TO else 3)


def small_llama(attention: str) -> HuggingFaceModel:
    tokenizer = AutoTokenizer.from_pretrained(TOKENIZER)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=12,
        num_attention_heads=8,
        num_key_value_heads=2,
        max_position_embeddings=16_384,
        eos_token_id=tokenizer.eos_token_id,
        attn_implementation=attention,
    )
    model = LlamaForCausalLM(config).eval()
    model.generation_config.min_new_tokens = NEW
    return HuggingFaceModel(model, tokenizer, name="12 x 8", max_new_tokens=NEW)


def real(file: Path) -> HuggingFaceModel:
    model = HuggingFaceModel.from_pretrained(file, max_new_tokens=NEW)
    model.model.generation_config.min_new_tokens = NEW
    return model


def case_of(model: HuggingFaceModel, length: int) -> tuple[Case, RenderedPrompt]:
    """Ten documents of words of the readers' vocabulary, of so many tokens with the question."""
    words = [word for word in model.tokenizer.get_vocab() if word.isalpha()]
    rng = np.random.default_rng(length)
    each = length // DOCUMENTS
    documents = [" ".join(rng.choice(words, each)) for _ in range(DOCUMENTS)]
    while True:
        case = Case(question="What is the code?", documents=documents)
        prompt = render_prompt(model.encoder, ANSWER, documents, case.question)
        over = len(prompt.ids) - length
        if over <= 0:
            return case, prompt
        at = max(range(DOCUMENTS), key=lambda number: len(documents[number]))
        documents[at] = documents[at].rsplit(" ", 1)[0]


def report(
    model: HuggingFaceModel,
    eager: HuggingFaceModel | None,
    case: Case,
    prompt: RenderedPrompt,
    turns: int,
) -> None:
    length = len(prompt.ids)
    systems: dict[str, Callable[[], Any]] = {
        "plain generate": lambda: model.generate([prompt.text]),
        "rows recorded": lambda: TwoRound().first(model, [case]),
        "all rows and layers": lambda: answer_with_attention(model, [prompt], wanted=EVERYTHING),
        "two rounds": lambda: TwoRound().run(model, [case]),
    }
    if eager is not None and length <= EAGER_UP_TO:
        systems["output_attentions=True"] = lambda: all_attentions(eager, prompt)
    memory = {name: peak_memory(run) for name, run in systems.items()}
    times, medians = timed(systems, turns)
    plain = memory["plain generate"]
    for name in systems:
        beyond = "" if name == "plain generate" else f"{memory[name] - plain:+.2f}"
        goal = goal_of(name, length, memory, medians)
        print(
            f"{length:>7} {name:24}{memory[name]:>9.1f}{beyond:>14}{times[name]:>7.3f}x"
            f"{medians[name]:>8.3f}x  {goal}",
            flush=True,
        )


def goal_of(name: str, length: int, memory: dict[str, float], medians: dict[str, float]) -> str:
    goals = TARGETS.get(round(length, -3), (None, None))
    if name == "rows recorded":
        said = [judged("beyond plain", memory[name] - memory["plain generate"], EXTRA_MB, "MB")]
        if goals[1] is not None:
            said.append(judged("time", medians[name], goals[1], "x"))
        return ", ".join(said)
    if name == "two rounds":
        return judged("time", medians[name], TWO_ROUNDS, "x")
    if name == "output_attentions=True":
        less = memory[name] / memory["rows recorded"]
        met = "met" if goals[0] is not None and less >= goals[0] else "missed"
        return f"the recorder takes {less:.1f}x less (>= {goals[0]}x: {met})"
    return ""


def judged(what: str, figure: float, most: float, unit: str) -> str:
    return f"{what} <= {most}{unit}: {'met' if figure <= most else 'missed'}"


def all_attentions(eager: HuggingFaceModel, prompt: RenderedPrompt) -> Any:
    with torch.inference_mode():
        return eager.model.generate(
            torch.tensor([prompt.ids]),
            do_sample=False,
            max_new_tokens=NEW,
            output_attentions=True,
            return_dict_in_generate=True,
        )


def timed(
    systems: dict[str, Callable[[], Any]], turns: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Return least processor times in multiples of that of the first; medians of the multiples."""
    taken: dict[str, list[float]] = {name: [] for name in systems}
    for _ in range(turns):
        for name, run in systems.items():
            start = time.process_time()
            run()
            taken[name].append(time.process_time() - start)
    plain = np.array(next(iter(taken.values())))
    return (
        {name: min(times) / float(plain.min()) for name, times in taken.items()},
        {name: float(np.median(np.array(times) / plain)) for name, times in taken.items()},
    )


def peak_memory(run: Callable[[], Any]) -> float:
    """Largest sum of tensor bytes alive at once while it runs, in MB."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        kept = run()
    changes = [
        (event.start_ns(), event.nbytes())
        for event in profile.profiler.kineto_results.events()
        if event.name() == "[memory]"
    ]
    del kept
    alive = np.cumsum([size for _, size in sorted(changes, key=lambda change: change[0])])
    return float(alive.max()) / 1e6


if __name__ == "__main__":
    main()

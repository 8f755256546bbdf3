"""Probe questions on the PyTorch API corpus: the exact call of an entry (CAUS, section IV)."""

from __future__ import annotations

import random
from collections import defaultdict

from shared_core.checking import check_count
from shared_core.corpora import torch_api_passages
from shared_core.corpora.docstrings import whole_words
from shared_core.sensitivity.questions import ProbeQuestion
from shared_core.types import Passage

LONGEST_PASSAGE = 600
"""Characters of a passage: the signature and the summary, so that ten fit a small context."""
LONGEST_CALL = 120
"""Characters of an answer, so that a model can give it whole within 64 tokens."""


def torch_questions(n: int, *, k: int = 10, seed: int = 0) -> list[ProbeQuestion]:
    """Make questions about the documentation of the installed torch.

    Each asks how an entry is called; the answer is its qualified name with the signature, as it
    opens the gold passage. The distractors are entries of the same module where it has enough.
    Passages are cut to 600 characters. A model may know an answer from its training, which
    flattens its curve.

    Parameters
    ----------
    n
        Number of questions, >= 1; at most as many as there are entries with arguments.
    k
        Number of passages in a context, >= 1.
    seed
        Seed of the choice.

    Raises
    ------
    ValueError
        If `n` or `k` is below 1, or `n` is more than there are entries.
    MissingExtraError
        If torch is not installed.
    """
    check_count(n, "n")
    check_count(k, "k")
    passages = torch_api_passages()
    calls = {passage.id: call for passage in passages if (call := _call(passage)) is not None}
    if n > len(calls):
        raise ValueError(f"the installed torch gives {len(calls)} questions, asked for {n}")
    generator = random.Random(seed)
    siblings = defaultdict(list)
    for passage in passages:
        siblings[passage.metadata["module"]].append(passage)
    chosen = generator.sample([passage for passage in passages if passage.id in calls], n)
    return [
        ProbeQuestion(
            question=f"How is {gold.id} called? Give its name with the full signature.",
            answers=(calls[gold.id],),
            gold=_cut(gold),
            distractors=_distractors(gold, siblings, passages, k - 1, generator),
        )
        for gold in chosen
    ]


def _call(passage: Passage) -> str | None:
    signature = passage.metadata["signature"].partition("->")[0].strip()
    call = passage.id + signature
    has_arguments = signature.startswith("(") and len(signature) > len("(x)")
    return call if has_arguments and len(call) <= LONGEST_CALL and "\n" not in call else None


def _distractors(
    gold: Passage,
    siblings: dict[str, list[Passage]],
    passages: list[Passage],
    count: int,
    generator: random.Random,
) -> tuple[str, ...]:
    near = [other for other in siblings[gold.metadata["module"]] if other.id != gold.id]
    pool = near if len(near) >= count else [other for other in passages if other.id != gold.id]
    return tuple(_cut(other) for other in generator.sample(pool, count))


def _cut(passage: Passage) -> str:
    return whole_words(passage.text, LONGEST_PASSAGE)

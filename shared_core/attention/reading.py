"""What a model attended to in its prompt while it answered."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from shared_core._extras import require
from shared_core.arrays import Scores
from shared_core.attention.prompt import RenderedPrompt
from shared_core.attention.recorder import AttentionRecorder, Row, recording
from shared_core.attention.relevance import LayerSet, Recorded, RowSet, layer_sets
from shared_core.generation.hugging_face import LAST_TOKEN, HuggingFaceModel, evaluating
from shared_core.generation.tokens import batches

if TYPE_CHECKING:
    from torch import Tensor

POSITIONAL: Recorded = ("edges", "lower")
"""Shows where a model looks, whatever is there (GoodPositions, S_{t, L_l})."""

_GROUPS: dict[RowSet, tuple[str, ...]] = {
    "answer": ("answer", "begin"),
    "producer": ("producer", "begin"),
    "edges": ("begin", "end"),
    "first": ("first", "begin"),
    "query": ("query", "begin"),
}
"""Groups that make up a row set: an answer, or a question, without rows is read at t_b."""
LATE = frozenset({"producer"})
_BEHIND: dict[RowSet, int] = {"query": 0, "first": 1}
"""How many tokens of the answer are read in row sets that do not take all of it."""

Item = TypeVar("Item")
Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerAttention:
    """An answer, and how much its tokens attended to each token of the prompt.

    Attributes
    ----------
    answer_ids
        Tokens of the answer as generated, with the end token if there was one.
    answer
        The answer as `HuggingFaceModel.generate` returns it.
    scores
        Mean attention (eq. 1 of "Place Good Documents in Good Positions") by rows and layers, in
        [0, 1], shape (tokens of the prompt,); higher is more attended. The rows are

        ``answer``
            those at the tokens y_j of the answer, without end token and special tokens;
        ``producer``
            those that produced them: one token earlier each, from t_b on;
        ``edges``
            t_b, the last token of the prompt, and t_e, the end token or without one the last of the
            answer;
        ``first``
            that at y_0, the first token of the answer (Attention Sorting); t_b's, which produced
            it, is among the edges;
        ``query``
            those at the question's tokens, if their span was given.

        An answer or a question of no tokens is read at t_b instead. The layers are ``all``, the
        ``lower`` half and the ``upper`` half; where a row is further than the sliding window from
        the first token of the prompt, those among them that see all of it.
    """

    answer_ids: tuple[int, ...]
    answer: str
    scores: Mapping[Recorded, Scores]


def answer_with_attention(
    model: HuggingFaceModel,
    prompts: Sequence[RenderedPrompt],
    *,
    wanted: Collection[Recorded],
    max_new_tokens: int | None = None,
) -> list[AnswerAttention]:
    """Answer prompts greedily, and record the attention of the answers.

    The answers are those of ``model.generate``. The row of a token is the one at that token, not
    the one that produced it, so that the last one costs one more forward pass of one token.

    Parameters
    ----------
    model
        The model.
    prompts
        What to answer.
    wanted
        Which scores to record, by rows and layers. Fewer cost less.
    max_new_tokens
        Most tokens of an answer; by default the limit of `model`.

    Returns
    -------
    list of AnswerAttention
        One for each prompt, in order.

    Raises
    ------
    ValueError
        If a prompt has more tokens than the context leaves next to the answer.
    GenerationError
        If the model's attention cannot be read.

    Warns
    -----
    UserWarning
        If the rows may be further than the sliding window of all layers of a set from the first
        tokens of a prompt, which then score 0, relevant or not.
    """
    new = model.max_new_tokens if max_new_tokens is None else max_new_tokens
    lengths = [len(prompt.ids) for prompt in prompts]
    model.check_room([prompt.ids for prompt in prompts], room=[new] * len(prompts))
    sets = layer_sets(model.model.config)
    behind = max(_read_behind(rows, new) for rows, _ in wanted)
    _warn_of_windows(model, max(lengths, default=0) + behind, sets)
    found: dict[int, AnswerAttention] = {}
    with evaluating(model.model):
        for batch in batches(lengths, model.batch_size):
            answers = _answers(model, [prompts[at] for at in batch], new, sets, wanted)
            found.update(zip(batch, answers, strict=True))
    return [found[at] for at in range(len(prompts))]


def in_batches(
    read: Callable[[Sequence[Item]], list[Found]],
    items: Sequence[Item],
    model: HuggingFaceModel,
    on_answer: Callable[[int], None] | None,
) -> list[Found]:
    """Read items in batches as large as the model takes, and report the size of each batch."""
    found: list[Found] = []
    for start in range(0, len(items), model.batch_size):
        batch = items[start : start + model.batch_size]
        found += read(batch)
        if on_answer is not None:
            on_answer(len(batch))
    return found


class AnswerRows:
    """Chooses rows of a batch of prompts and their answers as the tokens pass.

    ``begin``
        The last token of the prompt, t_b.
    ``answer``
        The tokens y_j of the answer: up to the end token, without special tokens.
    ``producer``
        The token before each y_j, whose row produced it; a late group.
    ``first``
        y_0.
    ``end``
        t_e: the end token, or without one the last token of the answer.
    ``query``
        The tokens of the question in the prompt.

    Parameters
    ----------
    prompts
        Those of the batch; the shorter ones are padded on the left.
    ends, special
        Tokens that end an answer, and tokens that are not part of it.
    """

    def __init__(
        self,
        prompts: Sequence[RenderedPrompt],
        *,
        ends: Collection[int],
        special: Collection[int],
    ) -> None:
        self.last: int | None = None
        """Column of the last token of the batch, once it is known."""
        self.width = width = max(len(prompt.ids) for prompt in prompts)
        """Columns of the prompts."""
        self._ends = frozenset(ends)
        self._special = frozenset(special) | self._ends
        self._begun = [False] * len(prompts)
        self._over = [False] * len(prompts)
        self._prompt_rows = [Row("begin", at, width - 1) for at in range(len(prompts))]
        for at, prompt in enumerate(prompts):
            left = width - len(prompt.ids)
            self._prompt_rows += [Row("query", at, left + own) for own in range(*prompt.question)]

    def choose(self, first: int, tokens: Tensor) -> list[Row]:
        """Return the rows among `tokens`, shape (batch, new), the first of column `first`."""
        end = first + tokens.shape[1]
        rows = [row for row in self._prompt_rows if first <= row.column < end]
        new = max(0, self.width - first)
        for column, ids in enumerate(tokens[:, new:].T.tolist(), first + new):
            for at, token in enumerate(ids):
                if not self._over[at]:  # else it is padding after a shorter answer
                    rows += self._rows_of(at, column, token)
        return rows

    def _rows_of(self, at: int, column: int, token: int) -> list[Row]:
        rows = []
        if token not in self._special:
            rows = [Row("answer", at, column), Row("producer", at, column - 1)]
            if not self._begun[at]:
                rows.append(Row("first", at, column))
                self._begun[at] = True
        if token in self._ends or column == self.last:
            rows.append(Row("end", at, column))
            self._over[at] = True
        return rows


def _answers(
    model: HuggingFaceModel,
    prompts: Sequence[RenderedPrompt],
    max_new_tokens: int,
    sets: Mapping[LayerSet, Mapping[int, float]],
    wanted: Collection[Recorded],
) -> list[AnswerAttention]:
    groups: dict[str, set[int]] = {}
    for row_set, name in wanted:
        for group in _GROUPS[row_set]:
            groups.setdefault(group, set()).update(sets[name])
    rows = AnswerRows(prompts, ends=model.end_tokens(), special=_special(model.tokenizer))
    with recording(
        model.model, rows.choose, layers=groups, width=rows.width, late=LATE & groups.keys()
    ) as recorder:
        ids = [prompt.ids for prompt in prompts]
        found = model.continued(ids, max_new_tokens, keep_cache=True)
        rows.last = found.output.sequences.shape[1] - 1
        if any(row_set != "query" for row_set, _ in wanted):
            _read_last(model.model, found.mask, found.output)
    answers = []
    for at, (prompt, answer) in enumerate(zip(prompts, found.answers, strict=True)):
        scores = {}
        for row_set, name in wanted:
            tokens = len(prompt.ids) + _read_behind(row_set, len(answer))
            seeing = [layer for layer, window in sets[name].items() if tokens <= window]
            whole = _scores(recorder, at, row_set, seeing or list(sets[name]))
            scores[row_set, name] = whole[-len(prompt.ids) :]
        text = model.text_of(answer)
        answers.append(AnswerAttention(answer_ids=tuple(answer), answer=text, scores=scores))
    return answers


def _read_last(model: Any, mask: Tensor, generated: Any) -> None:
    """Have a model read the last tokens that it generated, before which `generate` stops."""
    torch: Any = require("torch", extra="models")
    known = inspect.signature(model.forward).parameters
    name = "cache" if "cache" in known else "past_key_values"  # its name before transformers 5.24
    tokens, cache = generated.sequences, generated.get(name)
    mask = torch.cat([mask, torch.ones_like(tokens[:, mask.shape[1] :])], dim=1)
    tokens = tokens if cache is None else tokens[:, -1:]
    options = {
        "attention_mask": mask,
        "position_ids": (mask.cumsum(-1) - 1).clamp(min=0)[:, -tokens.shape[1] :],
        name: cache,
        "use_cache": cache is not None,
        "logits_to_keep": LAST_TOKEN,
    }
    model(input_ids=tokens, **{key: value for key, value in options.items() if key in known})


def _scores(recorder: AttentionRecorder, at: int, rows: RowSet, layers: Collection[int]) -> Scores:
    """Return what one sequence of the batch attends to; t_b stands in for rows that are missing."""
    groups = _GROUPS[rows] if rows == "edges" else _GROUPS[rows][:1]
    present = [group if recorder.counts[group][at] else "begin" for group in groups]
    scores: Scores = np.mean([recorder.scores(each, layers, at) for each in present], axis=0)
    return scores


def _read_behind(rows: RowSet, answer: int) -> int:
    """Return how many tokens of an answer are read for a row set."""
    return min(_BEHIND.get(rows, answer), answer)


def _special(tokenizer: Any) -> set[int]:
    """Return the tokens that are left out of an answer's text."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return {*tokenizer.all_special_ids, *(id for id, token in added.items() if token.special)}


def _warn_of_windows(
    model: HuggingFaceModel, longest: int, sets: Mapping[LayerSet, Mapping[int, float]]
) -> None:
    near = [name for name, layers in sets.items() if max(layers.values()) < longest]
    if near:
        window = max(sets[near[0]].values())
        warnings.warn(
            f"no layer of {', '.join(near)} of {model.name} sees more than {window:.0f} tokens, "
            f"but a prompt and what is read of its answer may have {longest}: earlier tokens "
            "score 0 there, relevant or not",
            stacklevel=3,
        )

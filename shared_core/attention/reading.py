"""What a model attended to in its prompt while it answered."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from shared_core.arrays import Scores
from shared_core.attention.answer_rows import AnswerRows
from shared_core.attention.layers import layer_sets
from shared_core.attention.passes import can_crop, read, read_last
from shared_core.attention.scores import LayerSet, RowSet, TokenSpan
from shared_core.attention.tap import AttentionTap, tapped
from shared_core.checking import check_count
from shared_core.generation.hugging_face import HuggingFaceModel, evaluating
from shared_core.generation.tokens import batches, left_padded

Recorded: TypeAlias = tuple[RowSet, LayerSet]

POSITIONAL: Recorded = ("edges", "lower")
"""Shows where a model looks, whatever is there (GoodPositions, S_{t, L_l})."""

_FAR = " that see all"
_GROUPS: dict[RowSet, tuple[str, ...]] = {
    "answer": ("answer", "begin"),
    "producer": ("producer", "answer", "special", "begin"),
    "edges": ("begin", "end"),
    "first": ("first", "begin"),
    "query": ("query",),
}
"""Groups that make up a row set: an answer without rows is read at t_b, and a row can be a
producer's only if it was read when its token passed."""
_BEHIND: dict[RowSet, int] = {"query": 0, "first": 1}
"""How many tokens of the answer are read in row sets that do not take all of it."""


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

        An answer of no tokens is read at t_b instead. The layers are ``all``, the ``lower`` half
        and the ``upper`` half; where a row is further than the sliding window from the first token
        of the prompt, those among them that see all of it.
    """

    answer_ids: tuple[int, ...]
    answer: str
    scores: Mapping[Recorded, Scores]


def answer_with_attention(
    model: HuggingFaceModel,
    prompts_ids: Sequence[Sequence[int]],
    *,
    query_spans: Sequence[TokenSpan] | None = None,
    max_new_tokens: int | None = None,
    wanted: Collection[Recorded] | None = None,
) -> list[AnswerAttention]:
    """Answer prompts greedily, and record the attention of the answers.

    The answers are those of ``model.generate``. The row of a token is the one at that token, not
    the one that produced it, so that the last one costs one more forward pass of one token.

    Parameters
    ----------
    model
        The model.
    prompts_ids
        Token ids of each prompt, special tokens and chat template included.
    query_spans
        Span of the question in each prompt, [start, end) in tokens of the prompt.
    max_new_tokens
        Most tokens of an answer; by default the limit of `model`.
    wanted
        Which scores to record, by rows and layers; all by default. Fewer cost less.

    Returns
    -------
    list of AnswerAttention
        One for each prompt, in order.

    Raises
    ------
    ValueError
        If a prompt has no tokens or more than the context leaves next to the answer, a span is
        empty or leaves its prompt, a number is out of range, or query rows are wanted without
        spans.
    GenerationError
        If the model's attention cannot be read.

    Warns
    -----
    UserWarning
        If the rows may be further than the sliding window of all layers of a set from the first
        tokens of a prompt, which then score 0, relevant or not.
    """
    rows = [list(ids) for ids in prompts_ids]
    given = model.max_new_tokens if max_new_tokens is None else max_new_tokens
    new = check_count(given, "max_new_tokens")
    model.check_room(rows, room=[new] * len(rows))
    spans = _checked_spans(query_spans, rows)
    chosen = _chosen(wanted, with_question=spans is not None)
    _warn_of_windows(model, rows, new, chosen)
    found: dict[int, AnswerAttention] = {}
    with evaluating(model.model):
        for batch in batches([len(row) for row in rows], model.batch_size):
            questions = None if spans is None else [spans[index] for index in batch]
            answers = _answers(model, [rows[index] for index in batch], questions, new, chosen)
            found.update(zip(batch, answers, strict=True))
    return [found[index] for index in range(len(rows))]


def attention_of_answer(
    model: HuggingFaceModel,
    prompt_ids: Sequence[int],
    answer_ids: Sequence[int],
    *,
    query_span: TokenSpan | None = None,
    cache: Any = None,
    wanted: Collection[Recorded] | None = None,
) -> AnswerAttention:
    """Record what an existing answer attends to.

    The numbers are those of `answer_with_attention` for its `answer_ids`. One forward pass over
    prompt and answer; with the prompt in a cache, only over what is needed.

    Parameters
    ----------
    model
        The model.
    prompt_ids
        Token ids of the prompt.
    answer_ids
        Token ids of the answer, including the end token if it is to be t_e. May be empty.
    query_span
        Span of the question in the prompt, [start, end) in tokens.
    cache
        The ``past_key_values`` of a forward pass over the prompt, not used since. It is cropped to
        the first row, and holds the prompt again afterwards. It pays off for several answers to one
        prompt. A cache that cannot be cropped, because a window has slid, is neither changed nor
        used.
    wanted
        As in `answer_with_attention`.

    Returns
    -------
    AnswerAttention
        For the given answer.

    Raises
    ------
    ValueError
        If the prompt has no tokens, the two have more than the context holds, the span is empty
        or leaves the prompt, or the numbers of tokens in cache and prompt differ.
    GenerationError
        If the model's attention cannot be read.

    Warns
    -----
    UserWarning
        As `answer_with_attention`.
    """
    prompt, answer = list(prompt_ids), list(answer_ids)
    model.check_room([prompt], room=[len(answer)])
    spans = _checked_spans(None if query_span is None else [query_span], [prompt])
    chosen = _chosen(wanted, with_question=spans is not None)
    _warn_of_windows(model, [prompt], len(answer), chosen)
    first = 0
    if cache is not None:
        _check_cache(cache, len(prompt))
        if can_crop(cache, to_hold=len(prompt) + len(answer)):
            first = min([len(prompt) - 1, *(start for start, _ in spans or ())])
    with evaluating(model.model), _tapped(model, [prompt], spans, chosen) as (tap, rows):
        rows.last = len(prompt) + len(answer) - 1
        tokens = left_padded([[*prompt, *answer][first:]], pad=0, device=model.model.device)
        if first:
            cache.crop(first - len(prompt))
            read(model.model, tokens["input_ids"], past_key_values=cache, use_cache=True)
        else:
            read(model.model, tokens["input_ids"], use_cache=False)
    if first and answer:
        cache.crop(-len(answer))
    return _found(model, tap, [prompt], [answer], chosen)[0]


def _answers(
    model: HuggingFaceModel,
    prompts: Sequence[Sequence[int]],
    questions: Sequence[TokenSpan] | None,
    max_new_tokens: int,
    wanted: Collection[Recorded],
) -> list[AnswerAttention]:
    with _tapped(model, prompts, questions, wanted) as (tap, rows):
        found = model.continued(prompts, max_new_tokens, keep_cache=True)
        rows.last = found.output.sequences.shape[1] - 1
        read_last(model.model, found.mask, found.output)
    return _found(model, tap, prompts, found.answers, wanted)


def _chosen(wanted: Collection[Recorded] | None, *, with_question: bool) -> list[Recorded]:
    if wanted is None:
        rows = [group for group in get_args(RowSet) if with_question or group != "query"]
        return [(group, layers) for group in rows for layers in get_args(LayerSet)]
    if not with_question and any(rows == "query" for rows, _ in wanted):
        raise ValueError("query rows are wanted, but the question has no span; give its query span")
    return list(wanted)


@contextmanager
def _tapped(
    model: HuggingFaceModel,
    prompts: Sequence[Sequence[int]],
    questions: Sequence[TokenSpan] | None,
    wanted: Collection[Recorded],
) -> Iterator[tuple[AttentionTap, AnswerRows]]:
    sets = layer_sets(model.model.config)
    needed: dict[str, set[int]] = {group: set() for group in AnswerRows.groups}
    for row_set, name in wanted:
        for group in _GROUPS[row_set]:
            needed[group] |= sets[name].layers
    rows = AnswerRows(
        [len(prompt) for prompt in prompts],
        ends=model.end_tokens(),
        special=_special(model.tokenizer),
        questions=questions,
        only=[group for group, layers in needed.items() if layers],
    )
    layers: dict[str, frozenset[int]] = {name: chosen.layers for name, chosen in sets.items()}
    layers |= {
        name + _FAR: chosen.far for name, chosen in sets.items() if chosen.window and chosen.far
    }
    with tapped(model.model, rows, layers=layers, width=rows.width, only=needed) as tap:
        yield tap, rows


def _found(
    model: HuggingFaceModel,
    tap: AttentionTap,
    prompts: Sequence[Sequence[int]],
    answers: Sequence[Sequence[int]],
    wanted: Collection[Recorded],
) -> list[AnswerAttention]:
    """Split what was recorded for the batch by sequence."""
    sets = layer_sets(model.model.config)
    found = []
    for at, (prompt, ids) in enumerate(zip(prompts, answers, strict=True)):
        scores: dict[Recorded, Scores] = {}
        for rows, name in wanted:
            reach = len(prompt) + _read_behind(rows, len(ids))
            layers = name + _FAR if sets[name].far_only(reach) else name
            groups = ("begin", "end") if rows == "edges" else (rows,)
            own = [_scores_of(tap, at, group, layers, len(prompt)) for group in groups]
            scores[rows, name] = sum(own[1:], own[0]) / len(own)
        text = model.text_of(ids)
        found.append(AnswerAttention(answer_ids=tuple(ids), answer=text, scores=scores))
    return found


def _read_behind(rows: RowSet, answer: int) -> int:
    """Return how many tokens of an answer are read for a row set."""
    return min(_BEHIND.get(rows, answer), answer)


def _scores_of(tap: AttentionTap, at: int, group: str, layers: str, length: int) -> Scores:
    """Return one sequence's scores of a group, or those of t_b if it has no row of the group."""
    seen = group if tap.counts[group][at] else "begin"
    return tap.scores(seen, layers)[at, -length:]


def _special(tokenizer: Any) -> set[int]:
    """Return the tokens that are left out of an answer's text."""
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return {*tokenizer.all_special_ids, *(id for id, token in added.items() if token.special)}


def _check_cache(cache: Any, expected: int) -> None:
    held = int(cache.get_seq_length())
    if held != expected:
        raise ValueError(
            f"the cache holds {held} tokens but the prompt has {expected}; give the cache of this "
            "prompt, or none"
        )


def _checked_spans(
    spans: Sequence[TokenSpan] | None, prompts: Sequence[Sequence[int]]
) -> list[TokenSpan] | None:
    if spans is None:
        return None
    if len(spans) != len(prompts):
        raise ValueError(f"{len(prompts)} prompts but {len(spans)} query spans; give one each")
    for index, ((start, end), prompt) in enumerate(zip(spans, prompts, strict=True)):
        if not 0 <= start < end <= len(prompt):
            raise ValueError(
                f"query span {index} is [{start}, {end}), which is empty or not within the "
                f"{len(prompt)} tokens of its prompt"
            )
    return list(spans)


def _warn_of_windows(
    model: HuggingFaceModel,
    prompts: Sequence[Sequence[int]],
    answer: int,
    wanted: Collection[Recorded],
) -> None:
    behind = max((_read_behind(rows, answer) for rows, _ in wanted), default=0)
    longest = max(map(len, prompts), default=0) + behind
    sets = layer_sets(model.model.config)
    near = [name for name, chosen in sets.items() if chosen.near_only(longest)]
    if near:
        warnings.warn(
            f"no layer of {', '.join(near)} of {model.name} sees more than {sets[near[0]].window} "
            f"tokens, but a prompt and what is read of its answer may have {longest}: earlier "
            "tokens score 0 there, relevant or not",
            stacklevel=3,
        )

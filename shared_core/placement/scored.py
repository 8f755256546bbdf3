"""Placements made from scores of the passages: attention to them, or their utility.

Those by attention (GoodPositions, section 4) place documents, not ranks: a document takes up as
many tokens as it has, so that its length, along with its relevance, decides where it goes.
Positions are those of the document region of the prompt, whose first token is 0: beginning-of-text,
system and instruction tokens never count, and a document's length is that of its block (label, text
and separator), so that the blocks fill the region.

PositionalBias finds that the slots that favour relevant passages favour distractors as well
(section 4), so that neither MaxRelevance nor MinDistraction, which see ranks alone, beats a shuffle
(section 5). If the relevance and distracting effect of each passage are known, they can be traded
off, which goes beyond the paper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.placement.placements import fill_by_preference
from shared_core.sensitivity.profile import PositionProfile


def attention_placement(
    ranking: Sequence[int], token_scores: Scores, lengths: Sequence[int]
) -> tuple[int, ...]:
    """Return slot -> document by U-shaped Placement (Algorithm 1).

    The best document goes to whichever end of the region gets more attention on the tokens that it
    would take up, the next to an end of what is left, and so on. A tie goes to the right. Sums are
    rounded once, so that a curve that is symmetric ties exactly.

    Parameters
    ----------
    ranking
        Documents by decreasing relevance, a permutation of 0..N-1.
    token_scores
        Positional score of each token of the document region (eq. 1 over the rows t_b and t_e and
        the lower layers), shape (n,) with n at least the sum of `lengths`; the rest is ignored. Any
        scale.
    lengths
        Length of each document in tokens, block by block, >= 1.

    Examples
    --------
    Documents 0 to 3 of one length, best first; the right end is attended to most.

    >>> attention_placement([0, 1, 2, 3], np.array([0.5, 0.1, 0.4, 0.9]), [1, 1, 1, 1])
    (1, 3, 2, 0)
    """
    slots = [0] * len(ranking)
    scores, left, right = token_scores.tolist(), 0, sum(lengths)
    first, last = 0, len(ranking) - 1
    for document in ranking:
        length = lengths[document]
        if math.fsum(scores[right - length : right]) >= math.fsum(scores[left : left + length]):
            slots[last] = document
            last, right = last - 1, right - length
        else:
            slots[first] = document
            first, left = first + 1, left + length
    return tuple(slots)


def reversed_attention_placement(
    ranking: Sequence[int], token_scores: Scores, lengths: Sequence[int]
) -> tuple[int, ...]:
    """Return slot -> document with the worst documents in the best positions (Table 3, Reverse).

    A control: what it loses against `attention_placement` is what position is worth. Arguments as
    in that function.
    """
    return attention_placement(ranking[::-1], token_scores, lengths)


def best_slot_first(
    ranking: Sequence[int], token_scores: Scores, lengths: Sequence[int]
) -> tuple[int, ...]:
    """Return slot -> document with the best document in the best slot (Direct-U, Table 7).

    A slot's score is the mean over the tokens of the document that is in it now, i.e. slot s spans
    the block of document s. A longer or shorter document shifts the others, which Algorithm 1 takes
    into account. The paper does not say who wins a tie; here, as in Algorithm 1, it is the slot
    further right. Arguments as in `attention_placement`.
    """
    scores, ends = token_scores.tolist(), [*accumulate(lengths)]
    means = [
        math.fsum(scores[end - length : end]) / length
        for end, length in zip(ends, lengths, strict=True)
    ]
    ranks = fill_by_preference(means[::-1])[::-1]  # reversed, as the last slot wins a tie
    return tuple([ranking[rank] for rank in ranks])


ATTENTION_PLACEMENTS: dict[
    str, Callable[[Sequence[int], Scores, Sequence[int]], tuple[int, ...]]
] = {
    "attention_u_shape": attention_placement,
    "attention_u_shape_reversed": reversed_attention_placement,
    "best_slot_first": best_slot_first,
}
"""By name. The paper's Default is ``back_first`` of `PLACEMENTS`, its reverse ``front_first``."""


def distraction_placement(
    relevance: npt.ArrayLike,
    effects: npt.ArrayLike,
    profile: PositionProfile,
    *,
    harm: float = 1.0,
) -> tuple[int, ...]:
    """Return slot -> passage, with the highest utility in the slot that is read best.

    The utility of a passage is ``relevance - harm * effect``, and a slot weighs as much as the
    model's accuracy there. By the rearrangement inequality no other order has a larger sum of
    utility times weight. Passages that do more harm than good go where they are read least.

    Parameters
    ----------
    relevance
        Relevance of each passage, shape (k,), higher is better. On the scale of the effects: a
        probability, or a fused score in [0, 1].
    effects
        Distracting effect of each passage, shape (k,), in [0, 1]; 0 for relevant ones, which must
        have been judged: a passage that holds the answer keeps a model from abstaining just as a
        hard distractor does, and would be placed as one
        (``python -m benchmarks.distraction``, which also measures effects).
    profile
        The model's position profile; it must hold the accuracy.
    harm
        How much relevance a hard distractor outweighs (lambda), >= 0.

    Returns
    -------
    tuple of int
        Passages in the order of the prompt, as indices into `relevance`. Equal utilities keep
        the order of the input, equal slots are taken front first.

    Raises
    ------
    ValueError
        If the profile holds no accuracy.

    Examples
    --------
    The last of five slots is read best, then the first. Passage 1 is a hard distractor.

    >>> profile = PositionProfile(model="m", accuracy=(0.8, 0.7, 0.6, 0.7, 0.9))
    >>> distraction_placement([0.9, 0.8, 0.5, 0.4, 0.3], [0, 0.95, 0, 0, 0.1], profile)
    (2, 3, 1, 4, 0)
    """
    utility = np.asarray(relevance, np.float64) - harm * np.asarray(effects, np.float64)
    ranked = (-utility).argsort(kind="stable").tolist()
    return tuple(ranked[rank] for rank in fill_by_preference(profile.accuracy_at(len(ranked))))

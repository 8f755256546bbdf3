"""Placement by the utility of a passage: its relevance less the harm it does as a distractor.

PositionalBias finds that the slots that favour relevant passages favour distractors as well
(section 4), so that neither MaxRelevance nor MinDistraction, which see ranks alone, beats a shuffle
(section 5). If the relevance and distracting effect of each passage are known, they can be traded
off. This placement goes beyond the paper.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shared_core.arrays import Scores
from shared_core.placement.placements import fill_by_preference
from shared_core.sensitivity.profile import PositionProfile


def distraction_placement(
    relevance: npt.ArrayLike,
    effects: npt.ArrayLike,
    profile: PositionProfile,
    *,
    harm: float = 1.0,
    drop: bool = False,
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
        (``python -m benchmarks.distraction``). See
        `shared_core.evaluation.distracting_effect`.
    profile
        The model's position profile; it must hold the accuracy.
    harm
        How much relevance a hard distractor outweighs (lambda), >= 0.
    drop
        Leave out passages of negative utility. The best one always stays, since an empty context
        cannot be answered from.

    Returns
    -------
    tuple of int
        Passages in the order of the prompt, as indices into `relevance`. Equal utilities keep
        the order of the input, equal slots are taken front first.

    Raises
    ------
    ValueError
        If the shapes differ, a value is out of range, or the profile holds no accuracy.

    Examples
    --------
    The last of five slots is read best, then the first. Passage 1 is a hard distractor.

    >>> profile = PositionProfile(model="m", accuracy=(0.8, 0.7, 0.6, 0.7, 0.9))
    >>> distraction_placement([0.9, 0.8, 0.5, 0.4, 0.3], [0, 0.95, 0, 0, 0.1], profile)
    (2, 3, 1, 4, 0)
    >>> distraction_placement([0.9, 0.8, 0.5], [0, 0.95, 0], profile, drop=True)
    (2, 0)
    """
    utility = _utility(relevance, effects, harm)
    ranked = sorted(range(len(utility)), key=lambda passage: -utility[passage])
    if drop:
        ranked = [at for rank, at in enumerate(ranked) if rank == 0 or utility[at] >= 0]
    return tuple(ranked[rank] for rank in fill_by_preference(profile.accuracy_at(len(ranked))))


def _utility(relevance: npt.ArrayLike, effects: npt.ArrayLike, harm: float) -> Scores:
    good, bad = np.asarray(relevance, np.float64), np.asarray(effects, np.float64)
    if good.ndim != 1 or good.shape != bad.shape:
        raise ValueError(
            f"relevance and effects must hold one value for each passage, got shapes "
            f"{good.shape} and {bad.shape}"
        )
    if not np.isfinite(good).all():
        raise ValueError(f"relevance must be finite, got {good[~np.isfinite(good)][0]}")
    if not ((bad >= 0) & (bad <= 1)).all():
        raise ValueError(f"effects lie in [0, 1], got {bad[~((bad >= 0) & (bad <= 1))][0]}")
    if not 0 <= harm < np.inf:
        raise ValueError(f"harm must be a weight >= 0, got {harm}")
    return good - harm * bad

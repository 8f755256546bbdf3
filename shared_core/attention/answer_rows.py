"""Which tokens of a prompt and its answer are the rows of attention-guided placement."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from shared_core.attention.scores import TokenSpan
from shared_core.attention.sums import Row

if TYPE_CHECKING:
    from torch import Tensor


class AnswerRows:
    """Chooses rows of a batch of prompts and their answers as the tokens pass.

    ``begin``
        The last token of the prompt, t_b.
    ``answer``
        The tokens y_j of the answer: up to the end token, without special tokens.
    ``producer``
        The token before each y_j, whose row produced it.
    ``first``
        y_0.
    ``end``
        t_e: the end token, or without one the last token of the answer.
    ``query``
        The tokens of the question in the prompt.
    ``special``
        Special tokens inside the answer, which may produce a y_j.

    Parameters
    ----------
    lengths
        Tokens of each prompt; the shorter ones are padded on the left.
    ends, special
        Tokens that end an answer, and tokens that are not part of it.
    questions
        Span of the question in each prompt, [start, end) in tokens of the prompt.
    only
        Groups to choose rows of; all by default.
    """

    groups = ("begin", "answer", "producer", "first", "end", "query", "special")

    def __init__(
        self,
        lengths: Sequence[int],
        *,
        ends: Collection[int],
        special: Collection[int],
        questions: Sequence[TokenSpan] | None = None,
        only: Collection[str] = groups,
    ) -> None:
        self.last: int | None = None
        """Column of the last token of the batch, once it is known."""
        self.width = width = max(lengths)
        """Columns of the prompts."""
        self._ends = frozenset(ends)
        self._special = frozenset(special) | self._ends
        self._only = frozenset(only)
        self._begun = [False] * len(lengths)
        self._over = [False] * len(lengths)
        self._prompt_rows = [Row("begin", at, width - 1) for at in range(len(lengths))]
        for at, (start, end) in enumerate(questions or ()):
            left = width - lengths[at]
            self._prompt_rows += [Row("query", at, left + own) for own in range(start, end)]

    def choose(self, first: int, tokens: Tensor) -> list[Row]:
        """Return the rows among `tokens`, shape (batch, new), the first of column `first`."""
        end = first + tokens.shape[1]
        rows = [row for row in self._prompt_rows if first <= row.column < end]
        new = max(0, self.width - first)
        for column, ids in enumerate(tokens[:, new:].T.tolist(), first + new):
            rows += [
                row for at, token in enumerate(ids) for row in self._rows_of(at, column, token)
            ]
        return [row for row in rows if row.group in self._only]

    def _rows_of(self, at: int, column: int, token: int) -> list[Row]:
        if self._over[at]:
            return []  # padding after a shorter answer
        rows = []
        if token not in self._special:
            rows = [Row("answer", at, column), Row("producer", at, column - 1)]
            if not self._begun[at]:
                rows.append(Row("first", at, column))
                self._begun[at] = True
        else:
            rows.append(Row("special", at, column))
        if token in self._ends or column == self.last:
            rows.append(Row("end", at, column))
            self._over[at] = True
        return rows

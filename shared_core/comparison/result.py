"""The whole result of a comparison: every outcome of every question, and what follows from them.

The JSON of a result (`ComparisonResult.to_json`) has the fields of `ComparisonResult` and of the
classes in `shared_core.comparison.records`, with the same names and nesting: tuples are lists,
mappings are objects. It holds everything that a report shows, and nothing in it depends on when
the comparison was run, or how often it was interrupted. Questions, ranks and slots count from 0;
outcomes, means and differences are in outcome units: 1 is right, 0 is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self, cast

from shared_core._extras import require
from shared_core.comparison.questions import Question
from shared_core.comparison.records import SettingResult, Verdict

FORMAT = 2
"""Format 1 had no outcomes by order, and p-values that took noise for differences."""


@dataclass(frozen=True, kw_only=True)
class ComparisonResult:
    """The result of a comparison.

    Attributes
    ----------
    model, identity
        Name of the model, and what distinguishes it from another of the same name.
    questions
        All questions of the data, in their order.
    passages
        Id -> text of every passage that a setting retrieved.
    settings
        One for each pipeline and k.
    verdict
        What follows from all of them.
    graders
        Names; the first one decides.
    tests
        Number of comparisons that the p-values are corrected for.
    shuffles
        Orders drawn per question for ``"shuffle"``.
    confidence, power
        Coverage of the intervals, 1 less the level of the tests; and the chance behind
        `PairedComparison.detectable` and `questions_needed`.
    effect
        The difference that `SettingResult.questions_needed` is for.
    seed
        Of shuffles and intervals.
    template
        The prompt.
    profile, embedding
        Names of the position profile and of the embedding model, if there were any.
    version
        Version of posrag.
    """

    model: str
    identity: str
    questions: tuple[Question, ...]
    passages: Mapping[str, str]
    settings: tuple[SettingResult, ...]
    verdict: Verdict
    graders: tuple[str, ...]
    tests: int
    shuffles: int
    confidence: float
    power: float
    effect: float
    seed: int
    template: str
    profile: str | None = None
    embedding: str | None = None
    version: str | None = None

    def to_json(self) -> str:
        """Return all of it as JSON; the same result gives the same text."""
        fields = {"format": FORMAT, **asdict(self)}
        lines = (f'"{name}": {json.dumps(value)}' for name, value in fields.items())
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Raises
        ------
        ValueError
            If it is not a comparison, or of another format.
        MissingExtraError
            If pydantic is not installed.
        """
        pydantic: Any = require("pydantic", extra="eval")
        try:
            data: Any = json.loads(text)
            if not isinstance(data, dict) or "format" not in data:
                raise ValueError(f"format {FORMAT} is missing")
            if (number := data.pop("format")) != FORMAT:
                raise ValueError(
                    f"it has format {number}, and this version of posrag reads {FORMAT}; compare "
                    "again: answers that were kept are not asked for again"
                )
            return cast(Self, pydantic.TypeAdapter(cls).validate_python(data))
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise ValueError(f"not the JSON of a comparison: {where}: {first['msg']}") from error
        except ValueError as error:
            raise ValueError(f"not the JSON of a comparison: {error}") from error

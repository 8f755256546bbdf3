"""What a probe did not get: questions that the model failed on, and empty answers."""

from __future__ import annotations

from collections.abc import Iterator

from shared_core.comparison.text_report import left_out
from shared_core.generation.failures import empty_lines
from shared_core.sensitivity import PositionProfile
from shared_core.wording import one_line


def missing_lines(profile: PositionProfile) -> Iterator[str]:
    """Say how many questions are left out of the profile and why, and how many answers are empty.

    `profile` is as measured, before another curve is joined to it.
    """
    kept, failed = profile.n or profile.distraction_n or 0, sum(profile.failures.values())
    if not failed and not profile.empty:
        return
    yield ""
    if failed:
        yield f"{left_out(failed, kept + failed, 'the curve')}:"
        for reason, count in sorted(profile.failures.items(), key=lambda each: -each[1]):
            yield one_line(f"- {count:,}: {reason}")
    yield from empty_lines(profile.empty, kept * len(profile.slots))
    yield ""

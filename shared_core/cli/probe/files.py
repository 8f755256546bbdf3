"""Where a probe keeps its answers, its profile and its figure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from shared_core.errors import ProfileNotFoundError
from shared_core.generation import Journal
from shared_core.sensitivity import PositionProfile
from shared_core.sensitivity.profile_files import path_of


@dataclass(frozen=True)
class ProbeFiles:
    """The files of one model's probe."""

    profile: Path
    figure: Path
    journal: Journal

    @classmethod
    def of(cls, model: str, *, output: Path | None, figure: Path | None) -> ProbeFiles:
        """Return the files of a model, in the folder of the profiles unless said otherwise."""
        profile = output or path_of(model)
        return cls(
            profile,
            figure or profile.with_suffix(".png"),
            Journal(path_of(model, ".answers.jsonl")),
        )

    def forget(self) -> None:
        """Remove the answers that were kept."""
        self.journal.path.unlink(missing_ok=True)

    def save(self, profile: PositionProfile) -> PositionProfile:
        """Write the profile, joined with the other curve of the same slots if one is there."""
        joined = self._joined(profile)
        joined.save(self.profile)
        return joined

    def _joined(self, new: PositionProfile) -> PositionProfile:
        try:
            old = PositionProfile.load(self.profile) if self.profile.is_file() else None
        except (ProfileNotFoundError, ValueError):
            return new  # not a profile any more: the new one takes its place
        if old is None or (old.model, old.k, old.slots) != (new.model, new.k, new.slots):
            return new
        if new.accuracy is None and old.accuracy is not None:
            return replace(old, distraction=new.distraction)
        return replace(new, distraction=new.distraction or old.distraction)

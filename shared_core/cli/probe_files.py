"""Where a probe keeps its answers, its profile and its figure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from shared_core.cli.files import WAY_OUT, check_file, load_former, open_journal, writing
from shared_core.generation import Journal
from shared_core.sensitivity import PositionProfile
from shared_core.sensitivity.figure import check_figure
from shared_core.sensitivity.records import beside, path_of


@dataclass(frozen=True)
class ProbeFiles:
    """The files of one model's probe."""

    profile: Path
    figure: Path
    journal: Journal

    @classmethod
    def of(cls, model: str, *, output: Path | None, figure: Path | None) -> ProbeFiles:
        """Return the files of a model, in the folder of the profiles unless said otherwise.

        Raises
        ------
        ValueError
            If the figure has no known format or would overwrite the profile, or a file cannot be
            written.
        PosragError
            If answers cannot be kept.
        """
        profile = output or path_of(model)
        check_file(profile, way_out="" if output else f"; give --output, or {WAY_OUT}")
        drawn = check_figure(figure or profile.with_suffix(".png"))
        if drawn == profile:
            raise ValueError(f"the figure would overwrite the profile {profile}; give --figure")
        check_file(drawn)
        return cls(profile, drawn, open_journal(model))

    def save(self, profile: PositionProfile) -> tuple[PositionProfile, Path | None]:
        """Write the profile; return it as written, and the file of a former one that is kept.

        The other curve of the same model and slots is joined to it. A former profile is kept
        next to it if it was made from more questions, or measured something else.

        Raises
        ------
        PosragError
            If it cannot be written; the message says that the answers are kept.
        """
        old = load_former(PositionProfile.load, self.profile)
        joined = profile if old is None else _joined(old, profile)
        kept = None
        with writing(self.profile, self.journal):
            if old is not None and _would_be_lost(old, joined):
                kept = beside(self.profile, old.date)
                old.save(kept)
            joined.save(self.profile)
        return joined, kept


def _joined(old: PositionProfile, new: PositionProfile) -> PositionProfile:
    def measured(profile: PositionProfile) -> tuple[object, ...]:
        return profile.model, profile.identity, profile.k, profile.slots

    if measured(old) != measured(new):
        return new
    if new.accuracy is None and old.accuracy is not None:
        return replace(old, distraction=new.distraction, distraction_n=new.distraction_n)
    if new.distraction is None:
        return replace(new, distraction=old.distraction, distraction_n=old.distraction_n)
    return new


def _would_be_lost(old: PositionProfile, new: PositionProfile) -> bool:
    def kind(profile: PositionProfile) -> tuple[object, ...]:
        lengths = [each.k for each in profile.lengths]
        return profile.identity, profile.measure, profile.k, profile.slots, profile.task, lengths

    other_kind = kind(old) != kind(new)
    if old.accuracy is not None and (other_kind or (old.n or 0) > (new.n or 0)):
        return True
    if old.distraction in (None, new.distraction):
        return False
    return other_kind or (old.distraction_n or 0) > (new.distraction_n or 0)

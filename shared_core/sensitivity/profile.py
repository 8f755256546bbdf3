"""The position profile of a model and its position sensitivity index (CAUS eq. 3)."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, unquote

import numpy as np

from shared_core.errors import ProfileNotFoundError

EPS = 1e-7
FORMAT = 1

Bands = Literal["slots", "thirds"]


def position_sensitivity_index(accuracy: Sequence[float], *, bands: Bands = "slots") -> float:
    """Position sensitivity index: edge accuracy over middle accuracy (CAUS eq. 3).

    ``(top + bottom) / (2 * middle + eps)`` with ``eps = 1e-7``. Above 1 the model reads the
    edges of its context better than the middle.

    Parameters
    ----------
    accuracy
        Mean accuracy in [0, 1] with the gold passage in each slot, shape (k,), k >= 1.
    bands
        ``"slots"``: top is slot 0, bottom is slot k-1, middle is slot (k-1)//2.
        ``"thirds"``: the mean over the slots of each third.

    Returns
    -------
    float
        The index, >= 0; NaN if top, middle and bottom are all zero, where it is undefined.

    Raises
    ------
    ValueError
        If `accuracy` is empty or holds a value outside [0, 1].
    """
    values = _checked(accuracy, "accuracy")
    if bands == "thirds":
        top, middle, bottom = (float(np.mean(part)) for part in _thirds(values))
    elif bands == "slots":
        top, middle, bottom = values[0], values[(len(values) - 1) // 2], values[-1]
    else:
        raise ValueError(f"bands must be 'slots' or 'thirds', got {bands!r}")
    if top == middle == bottom == 0:
        return math.nan
    return (top + bottom) / (2 * middle + EPS)


def _thirds(values: Sequence[float]) -> tuple[Sequence[float], Sequence[float], Sequence[float]]:
    size = max(1, len(values) // 3)
    return values[:size], values[size : len(values) - size] or values, values[-size:]


def _checked(values: Sequence[float], what: str) -> tuple[float, ...]:
    checked = tuple(float(value) for value in values)
    if not checked:
        raise ValueError(f"{what} by slot is empty; give one value per slot")
    for slot, value in enumerate(checked):
        if not 0 <= value <= 1:
            raise ValueError(f"{what} must lie in [0, 1], got {value} in slot {slot}")
    return checked


def profile_folder() -> Path:
    """Folder of the saved profiles: ``$POSRAG_PROFILES``, else ``~/.posrag/profiles``."""
    return Path(os.environ.get("POSRAG_PROFILES") or Path.home() / ".posrag" / "profiles")


@dataclass(frozen=True, kw_only=True)
class PositionProfile:
    """What one model makes of a passage in each slot of its context.

    Attributes
    ----------
    model
        Name of the model.
    accuracy
        Mean accuracy in [0, 1] with the gold passage in each slot, slot 0 first.
    distraction
        Mean distracting effect in [0, 1] of a distractor in each slot, if it was measured.
    interval
        Bootstrap interval (lower, upper) of the index over questions, if it was measured.
    n
        Number of questions behind each slot, if known.
    source
        Where the numbers come from: a citation, or the command that measured them.
    """

    model: str
    accuracy: tuple[float, ...]
    distraction: tuple[float, ...] | None = None
    interval: tuple[float, float] | None = None
    n: int | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "accuracy", _checked(self.accuracy, "accuracy"))
        if self.distraction is not None:
            object.__setattr__(self, "distraction", _checked(self.distraction, "distraction"))
            if len(self.distraction) != len(self.accuracy):
                raise ValueError(
                    f"distraction has {len(self.distraction)} slots, "
                    f"accuracy has {len(self.accuracy)}"
                )
        if self.interval is not None:
            lower, upper = (float(bound) for bound in self.interval)
            if not lower <= upper:
                raise ValueError(f"interval must be (lower, upper), got {self.interval}")
            object.__setattr__(self, "interval", (lower, upper))

    @property
    def k(self) -> int:
        """Number of slots that were probed."""
        return len(self.accuracy)

    @property
    def psi(self) -> float:
        """Position sensitivity index (CAUS eq. 3); NaN if the profile is inconclusive."""
        return position_sensitivity_index(self.accuracy)

    def accuracy_at(self, k: int) -> list[float]:
        """Accuracy in each of `k` slots, interpolated linearly over the relative position."""
        return _resample(self.accuracy, k)

    def distraction_at(self, k: int) -> list[float]:
        """Distracting effect in each of `k` slots, interpolated like `accuracy_at`.

        Raises
        ------
        ValueError
            If the profile holds no distracting effect.
        """
        if self.distraction is None:
            raise ValueError(f"the profile of {self.model!r} holds no distracting effect")
        return _resample(self.distraction, k)

    def save(self, path: str | Path | None = None) -> Path:
        """Write the profile as JSON and return the path.

        Parameters
        ----------
        path
            File to write; by default one named after the model in `profile_folder`, where
            ``psi=<model name>`` finds it.
        """
        target = Path(path) if path is not None else _path_of(self.model)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"format": FORMAT, **asdict(self)}, indent=2) + "\n"
        partial = target.with_name(f".{target.name}.{os.getpid()}")
        partial.write_text(text, encoding="utf-8")
        partial.replace(target)
        return target

    @classmethod
    def load(cls, name: str | Path) -> PositionProfile:
        """Read a profile by path, or by the model name it was saved under.

        Raises
        ------
        ProfileNotFoundError
            If there is no such file and no saved profile of that name.
        ValueError
            If the file is not a position profile.
        """
        for path in (Path(name), _path_of(str(name))):
            if _is_file(path):
                return _parse(cls, path)
        raise ProfileNotFoundError(
            f"no position profile {str(name)!r}: neither a file nor a name saved in "
            f"{profile_folder()} ({_saved_names()})"
        )


def _resample(values: Sequence[float], k: int) -> list[float]:
    if k == len(values):
        return list(values)
    at = np.linspace(0, 1, k) if k > 1 else np.zeros(k)
    return np.interp(at, np.linspace(0, 1, len(values)), values).tolist()  # type: ignore[no-any-return]


def _path_of(model: str) -> Path:
    return profile_folder() / (quote(model, safe="") + ".json")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that no file can have
        return False


def _saved_names() -> str:
    names = sorted(unquote(path.stem) for path in profile_folder().glob("*.json"))
    return "saved: " + ", ".join(names) if names else "none is saved yet"


def _parse(cls: type[PositionProfile], path: Path) -> PositionProfile:
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not a position profile: {error}") from error
    if not isinstance(data, Mapping) or data.get("format") != FORMAT:
        raise ValueError(f"{path} is not a position profile of format {FORMAT}")
    known = {field.name for field in fields(cls)}
    try:
        return cls(**{key: value for key, value in data.items() if key in known})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a position profile: {error}") from error

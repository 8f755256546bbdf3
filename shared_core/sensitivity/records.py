"""Measurements of a model, saved as JSON files that are found by the model's name."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias
from urllib.parse import quote, unquote

from shared_core.errors import ProfileNotFoundError
from shared_core.files import write_whole
from shared_core.generation.templates import PromptTemplate

FORMAT = 1

Interval: TypeAlias = tuple[float, float]
"""Lower and upper bound."""

_DISTRIBUTIONS = {
    "numpy": "numpy",
    "torch": "torch",
    "transformers": "transformers",
    "langchain_core": "langchain-core",
    "llama_index": "llama-index-core",
    "openai": "openai",
}


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """What was measured of a model, and what with: a JSON file, found by the model's name.

    Attributes
    ----------
    model
        Name of the model.
    k
        Number of passages in the context, if known.
    confidence
        Nominal coverage of the intervals.
    template, task
        The prompt, and the kind of questions.
    seed, date, versions
        Seed of questions and intervals, date (ISO 8601), versions of the software.
    identity
        What distinguishes the model from others of the same name, if it was measured here.
    """

    what: ClassVar[str]
    """What such a file holds, for errors."""
    command: ClassVar[str]
    """The command that measures one."""

    model: str
    k: int | None = None
    confidence: float = 0.95
    template: str | None = None
    task: str | None = None
    seed: int | None = None
    date: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    identity: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str) or not self.model:
            raise ValueError(f"model must be a name, got {self.model!r}")

    @classmethod
    def file_of(cls, model: str) -> Path:
        """Return the file of a model's measurement, within `profile_folder`."""
        return path_of(model)

    @classmethod
    def published(cls) -> Mapping[str, Mapping[str, Any]]:
        """Return the fields of what others have published, by name."""
        return {}

    def save(self, path: str | Path | None = None) -> Path:
        """Write it as JSON, atomically, and return the path.

        Parameters
        ----------
        path
            File to write; by default `file_of` the model, where `load` finds it by the name, and
            ``psi=<model name>`` a profile.
        """
        target = self.file_of(self.model) if path is None else Path(path)
        rows = {"format": FORMAT, **asdict(self)}.items()
        text = ",\n".join(f"  {_line(key)}: {_line(value)}" for key, value in rows)
        write_whole(target, f"{{\n{text}\n}}\n")
        return target

    @classmethod
    def load(cls, name: str | Path) -> Self:
        """Read one by path, by the model name it was saved under, or a published one.

        Raises
        ------
        ProfileNotFoundError
            If there is no such file and neither a saved nor a published one of that name.
        ValueError
            If the file does not hold such a measurement.
        """
        saved, published = cls.file_of(str(name)), cls.published()
        for path in (Path(name), saved):
            if is_file(path):
                return cls._read(path)
        if str(name) in published:
            return cls(**published[str(name)])
        others = f", nor a published one ({', '.join(sorted(published))})" if published else ""
        raise ProfileNotFoundError(
            f"no {cls.what} {str(name)!r}: neither a file, nor a name saved in {saved.parent} "
            f"({_saved_names(saved.parent)}){others}; `{cls.command} MODEL` measures one"
        )

    @classmethod
    def _read(cls, path: Path) -> Self:
        """Read what `save` wrote; unknown fields are ignored."""
        try:
            data: Any = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(data, Mapping) or data.get("format") != FORMAT:
                raise ValueError(f"it has no format {FORMAT}")
            known = {each.name for each in fields(cls)}
            return cls(**{key: value for key, value in data.items() if key in known})
        except (ValueError, RecursionError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{path} is not a {cls.what}: {error}") from error


def profile_folder() -> Path:
    """Folder of the saved profiles: ``$POSRAG_PROFILES``, else ``~/.posrag/profiles``."""
    return Path(os.environ.get("POSRAG_PROFILES") or Path.home() / ".posrag" / "profiles")


def path_of(model: str, suffix: str = ".json") -> Path:
    """Return the file in `profile_folder` that belongs to a model."""
    return profile_folder() / (quote(model, safe="") + suffix)


def _saved_names(folder: Path) -> str:
    """Say which models have a file in a folder."""
    names = sorted(unquote(path.stem) for path in folder.glob("*.json"))
    return "saved: " + ", ".join(names) if names else "none is saved yet"


def is_file(path: Path) -> bool:
    """Whether there is such a file; False for a name that no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def provenance(
    *, k: int, template: PromptTemplate, task: str | None, seed: int, identity: str
) -> dict[str, Any]:
    """Return the fields of a `Measurement` that say how it was made, now (UTC, to the second)."""
    return {
        "k": k,
        "template": template.text,
        "task": task,
        "seed": seed,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "identity": identity,
    }


def versions() -> dict[str, str]:
    """Return the versions of Python, of this package, and of what is loaded and matters."""
    found = {"python": platform.python_version()}
    loaded = [name for module, name in _DISTRIBUTIONS.items() if module in sys.modules]
    for distribution in ("posrag", *loaded):
        try:
            found[distribution] = version(distribution)
        except PackageNotFoundError:  # run from a source tree, or vendored
            continue
    return found


def _line(value: object) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return "[\n" + ",\n".join(f"    {_line(row)}" for row in value) + "\n  ]"
    return json.dumps(value, ensure_ascii=False)

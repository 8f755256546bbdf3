"""The benchmarks that the documentation names can be started."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("name", sorted(file.stem for file in FOLDER.glob("[a-z]*.py")))
def test_it_finds_what_it_imports(name: str) -> None:
    """In this package; whoever runs one installs its peers."""
    try:
        import_module(f"benchmarks.{name}")
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("benchmarks", "instruments", "shared_core"):
            raise
        pytest.skip(str(error))

"""The workflows install what their tests import."""

from __future__ import annotations

from pathlib import Path

import pytest

WORKFLOWS = Path(__file__).parents[1] / ".github/workflows"


def test_what_runs_the_tests_installs_all_that_they_import() -> None:
    """As the Makefile does: every extra, and the development group with its least versions."""
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((WORKFLOWS / "test.yml").read_text(encoding="utf-8"))["jobs"]
    steps = [step.get("run", "") for step in jobs["matrix"]["steps"]]
    (install,) = (step for step in steps if "uv pip install" in step)
    assert install.endswith('--editable ".[all]" --group dev')

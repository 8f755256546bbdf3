"""Fixtures that several modules share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared_core.native import kernels

from .making import saved_index


@pytest.fixture(scope="module", params=["compiled", "numpy"])
def either_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Search with the compiled kernels, and then with what stands in for them."""
    compiled = request.param == "compiled"
    if compiled and not kernels.built:
        pytest.skip("the kernels are not built here")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "built", compiled)
        yield


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's own profiles and curves out of the tests."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path / "profiles"))
    return tmp_path / "profiles"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with a file of every kind, not to be changed."""
    return saved_index(tmp_path_factory.mktemp("saved") / "index")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    return Path(shutil.copytree(saved, tmp_path / "index"))

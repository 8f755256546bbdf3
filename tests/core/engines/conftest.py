"""Servers, and what stands for one, that engines are tried on."""

from __future__ import annotations

import os
from typing import Any

import pytest

PINNED: dict[str, Any] = {"mean_length": 140.0}
"""The mean length for which sparse vectors are made."""


@pytest.fixture(scope="module")
def qdrant(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """Return an address and options of a Qdrant: a server's, or its core in this process."""
    if url := os.environ.get("POSRAG_QDRANT_URL"):
        return url, PINNED
    pytest.importorskip("qdrant_edge")
    from .qdrant_core import CoreClient

    client = CoreClient(tmp_path_factory.mktemp("qdrant"))
    return "qdrant://core", {"client": client, **PINNED}

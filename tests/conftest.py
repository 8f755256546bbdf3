"""Settings that every test shares."""

from __future__ import annotations

import os

from hypothesis import settings

# Many small calls, often in several processes: more threads get into each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("posrag", deadline=None, derandomize=True, max_examples=50, database=None)
settings.load_profile("posrag")

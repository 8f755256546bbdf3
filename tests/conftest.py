"""Settings that every test shares."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# Many small calls, often in several processes: more threads get into each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell has what it starts in the background ignore interrupts, and so would all that tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("posrag", deadline=None, derandomize=True, max_examples=50, database=None)
settings.load_profile("posrag")

"""Settings that every test shares."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("posrag", deadline=None, derandomize=True, max_examples=50, database=None)
settings.load_profile("posrag")

"""Engines: what holds the passages and searches them, behind one protocol."""

from __future__ import annotations

from shared_core.index.engine import Engine, InThreads, Leg

__all__ = ["Engine", "InThreads", "Leg"]

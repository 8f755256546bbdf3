"""``posrag probe``: measure a model's position sensitivity."""

from __future__ import annotations

from shared_core.cli.probe.command import add_parser

__all__ = ["add_parser"]

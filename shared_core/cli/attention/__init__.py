"""``posrag attention``: where a local model looks."""

from __future__ import annotations

from shared_core.cli.attention.command import add_parser

__all__ = ["add_parser"]

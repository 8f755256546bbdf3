"""``posrag reproduce``: the experiments of the papers."""

from __future__ import annotations

from shared_core.cli.reproduce.command import add_parser

__all__ = ["add_parser"]

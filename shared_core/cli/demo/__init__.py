"""``posrag demo``: ask the PyTorch API a question and see why its passages are placed so."""

from __future__ import annotations

from shared_core.cli.demo.command import add_parser

__all__ = ["add_parser"]

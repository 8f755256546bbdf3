"""``posrag demo``: ask the PyTorch API a question and see why each passage stands where it does."""

from __future__ import annotations

from shared_core.cli.demo.command import add_parser

__all__ = ["add_parser"]

"""``posrag compare``: strategies of arrangement on one's own questions."""

from __future__ import annotations

from shared_core.cli.compare.command import add_parser

__all__ = ["add_parser"]

"""A comparison as one HTML file that a browser shows without asking anything of a network."""

from __future__ import annotations

from shared_core.comparison.html.page import to_html

__all__ = ["to_html"]

"""A comparison as one HTML file that a browser shows without using the network."""

from __future__ import annotations

from shared_core.comparison.report.html.page import to_html

__all__ = ["to_html"]

"""A model of these tests."""

from __future__ import annotations

import pytest

from shared_core import HuggingFaceModel


@pytest.fixture
def biased() -> HuggingFaceModel:
    """Return a reader that sees most at the edges."""
    pytest.importorskip("transformers")
    from tests.core.attention.readers import reader

    return reader("biased")

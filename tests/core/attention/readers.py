"""The readers, loaded once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from shared_core import HuggingFaceModel

READERS = Path(__file__).parents[3] / "instruments"


@cache
def reader(name: str = "biased") -> HuggingFaceModel:
    return HuggingFaceModel.from_pretrained(READERS / name, max_new_tokens=4, batch_size=16)

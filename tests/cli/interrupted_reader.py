"""A local model for the command, named as module:attribute, that is interrupted on its way."""

from __future__ import annotations

import itertools
import os
import signal
from pathlib import Path

from shared_core import HuggingFaceModel

PASSES = 40
_passes = itertools.count(1)


def _interrupt(*_: object) -> None:
    if next(_passes) == PASSES:
        os.kill(os.getpid(), signal.SIGINT)


model = HuggingFaceModel.from_pretrained(
    Path(__file__).parents[2] / "instruments" / "uniform", max_new_tokens=4, batch_size=8
)
model.model.register_forward_pre_hook(_interrupt)

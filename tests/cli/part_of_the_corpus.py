"""``posrag demo`` on a part of the corpus, as a process; not a test itself.

Embedding is cheap, and the process kills itself after ``POSRAG_TEST_KILL_AFTER`` batches.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import numpy as np

from shared_core.arrays import Vectors
from shared_core.cli import demo as command
from shared_core.cli import main
from shared_core.cli.embedding import EmbeddingModel
from shared_core.corpora import torch_api_passages


class KilledModel(EmbeddingModel):
    batches = 0

    def load(self) -> None:
        """There is nothing to load."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        if str(self.batches) == os.environ["POSRAG_TEST_KILL_AFTER"]:
            os.kill(os.getpid(), signal.SIGKILL)
        self.batches += 1
        return np.array([[len(text), 1.0] for text in texts], np.float32)


if __name__ == "__main__":
    setattr(command, "torch_api_passages", lambda: torch_api_passages()[::40])  # noqa: B010
    setattr(command, "EmbeddingModel", KilledModel)  # noqa: B010
    sys.exit(main.main())

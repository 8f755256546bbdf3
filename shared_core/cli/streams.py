"""The standard streams, where nobody reads them any more or the disk behind them is full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from shared_core import PosragError


class ReaderGoneError(Exception):
    """Nobody reads the results any more, as in ``posrag demo | head``: nothing is left to do."""


@contextmanager
def writing_results() -> Iterator[None]:
    """Have what is put on stdout written when the block ends.

    Raises
    ------
    ReaderGoneError
        If its reader has gone.
    PosragError
        If it cannot be written for another reason, such as a full disk.
    """
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        _discard(sys.stdout)
        raise ReaderGoneError from None
    except OSError as error:
        _discard(sys.stdout)
        reason = error.strerror or error
        raise PosragError(f"standard output cannot be written ({reason})") from error


@contextmanager
def telling() -> Iterator[None]:
    """Put something on stderr; where that cannot be written, the work goes on untold."""
    try:
        yield
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Let what is buffered, and all that follows, go nowhere: the exit writes it once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)

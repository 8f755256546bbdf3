"""The standard streams, in case their reader has gone or their disk is full."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from shared_core.errors import PosragError


class ReaderGoneError(Exception):
    """Nobody reads the results any more, as in ``posrag demo | head``: no work is left."""


def show_unencodable() -> None:
    r"""Print characters that a stream's encoding lacks as ``\xdf``, instead of ending the work."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def writing_results() -> Iterator[None]:
    """Flush stdout when the block ends, and report what cannot be written.

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
def writing_messages() -> Iterator[None]:
    """Write to stderr; if that fails, the work goes on without messages."""
    try:
        yield
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Discard the buffer and all later output: the interpreter would flush it again on exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)

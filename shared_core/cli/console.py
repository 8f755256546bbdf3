"""The only output of the command: results on stdout, progress on stderr."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from shared_core._extras import require
from shared_core.wording import one_line, visible

if TYPE_CHECKING:
    from rich.console import Console as RichConsole
    from rich.console import RenderableType
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

MAX_WIDTH = 100


class ReaderGoneError(Exception):
    """Nobody reads the results any more, as in ``posrag demo | head``: no work is left."""


@contextmanager
def writing_results() -> Iterator[None]:
    """Write what is left of the results when the block ends.

    Raises
    ------
    ReaderGoneError
        If nobody reads them any more.
    OSError
        If they cannot be written for another reason, such as a full disk.
    """
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise ReaderGoneError from None


def show_unencodable() -> None:
    r"""Print characters that a stream's encoding lacks as ``\xdf``, instead of ending the work."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


class Console:
    """Prints plain text without markup; its own escape codes go to a terminal only.

    Control characters in what is printed, also in the cells of a table, are made visible.

    Raises
    ------
    MissingExtraError
        If rich is not installed.
    """

    def __init__(self) -> None:
        self._out = _rich(stderr=False)
        self._err = _rich(stderr=True)

    def show(self, *parts: RenderableType, whole: bool = False) -> None:
        """Print parts of the result; `whole` keeps lines unbroken, so that they can be copied."""
        for part in parts:
            self._out.print(part, soft_wrap=whole)

    def say(self, text: str, *, whole: bool = False) -> None:
        """Print a line about the progress of the work on stderr; `whole` as in `show`."""
        self._err.print(one_line(text), soft_wrap=whole)

    @contextmanager
    def counting(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """Show a bar, on a terminal only; the block gets a function that advances it."""
        bar: Progress = require("rich.progress", extra="eval").Progress(
            console=self._err, disable=not self._err.is_terminal, transient=True
        )
        with bar:
            task = bar.add_task(what, total=total)
            yield lambda count: bar.advance(task, count)


def empty_table(*, gap: int = 1) -> Table:
    """Return a table with a line below its head only, and `gap` blanks between columns."""
    built: Table = require("rich.table", extra="eval").Table(
        box=require("rich.box", extra="eval").SIMPLE_HEAD, padding=(0, gap - 1, 0, 0)
    )
    return built


def fail(message: str) -> None:
    """Print one line on stderr, if it can be written; needs no optional dependency."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(f"posrag: {one_line(message)}\n")
            sys.stderr.flush()


def quiet_transformers() -> None:
    """Keep the warnings and progress bars of transformers out of the command's output."""
    os.environ.setdefault("TQDM_DISABLE", "1")  # those of GGUF files, which it does not silence
    logging: Any = require("transformers.utils.logging", extra="models")
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _rich(*, stderr: bool) -> RichConsole:
    console: RichConsole = require("rich.console", extra="eval").Console(
        stderr=stderr, markup=False, highlight=False, emoji=False
    )
    console.width = min(console.width, MAX_WIDTH)
    render_str = console.render_str

    def visibly(text: str, **options: Any) -> Text:
        return render_str(visible(text), **options)

    # Every string passes through here, also those in tables, before its width is measured.
    console.render_str = visibly  # type: ignore[method-assign]
    if not stderr:  # by default rich ends the process with status 1 when the reader has gone
        console.on_broken_pipe = _reader_gone  # type: ignore[method-assign]
    return console


def _reader_gone() -> None:
    raise ReaderGoneError

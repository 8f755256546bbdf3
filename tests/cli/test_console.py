"""What the command prints of what it was given: control characters are written out."""

from __future__ import annotations

import pytest

pytest.importorskip("rich")

from rich.table import Table

from shared_core.cli.console import Console, fail
from shared_core.cli.main import main

FOREIGN = "id \x1b[31mred\x1b[0m\x07\b\x9b1m\r\x7f\ud800 [bold]x[/bold] :smile: Zürich 東京"
SHOWN = r"id \x1b[31mred\x1b[0m\x07\x08\x9b1m\r\x7f\ud800 [bold]x[/bold] :smile: Zürich 東京"
IN_ONE_LINE = SHOWN.replace(r"\r", " ")


def table(cell: str) -> Table:
    built = Table(title=cell)
    built.add_column(cell, no_wrap=True)
    built.add_row(cell)
    return built


@pytest.fixture(params=["file", "terminal"])
def console(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Console:
    """A console that writes into a file, or to what it takes for a terminal."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if request.param == "terminal":
        monkeypatch.setenv("FORCE_COLOR", "1")
    else:
        monkeypatch.delenv("FORCE_COLOR", raising=False)
    return Console()


def test_what_is_printed_moves_no_cursor_and_sets_no_colour(
    console: Console, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    """What is said or failed with is one line; a table is styled by rich alone, and as wide."""
    console.show(f"\n{FOREIGN}")
    console.show(FOREIGN, whole=True)
    console.say(f"a\nb\u2028c\x85d {FOREIGN}")
    fail(f"a\r\n{FOREIGN}")
    captured = capsys.readouterr()
    assert captured.out.splitlines() == ["", SHOWN, SHOWN]
    assert captured.err == f"a b c d {IN_ONE_LINE}\nposrag: a {IN_ONE_LINE}\n"
    console.show(table(FOREIGN))
    out = capsys.readouterr().out
    assert ("\x1b[1m" in out) is ("terminal" in request.node.callspec.id), "the heading is bold"
    assert "\x1b[31m" not in out
    assert out.count(SHOWN) == 3
    assert f"│ {SHOWN} │" in out.splitlines()[-2]


def test_a_pipe_of_a_database_or_model_that_breaks_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It once passed for a reader of the results that has gone: nothing said, and status 0."""

    def broken(*_: object) -> int:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("shared_core.cli.engine.run", broken)
    assert main(["engine", "qdrant:///nowhere"]) == 2
    assert "Broken pipe" in capsys.readouterr().err

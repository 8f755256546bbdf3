"""What the command prints of what it was given: control characters are written out."""

from __future__ import annotations

import pytest

pytest.importorskip("rich")

from rich.table import Table

from shared_core.cli.console import Console, fail

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


def test_what_is_shown_and_said_moves_no_cursor(
    console: Console, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nor does it set a colour; line breaks of what is shown stay."""
    console.show(f"\n{FOREIGN}")
    console.show(FOREIGN, whole=True)
    console.say(FOREIGN)
    captured = capsys.readouterr()
    assert captured.out.splitlines() == ["", SHOWN, SHOWN]
    assert captured.err == f"{IN_ONE_LINE}\n"


def test_what_is_said_or_failed_with_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever breaks lines in it."""
    Console().say("a\nb\u2028c\x85d")
    fail(f"a\r\n{FOREIGN}")
    assert capsys.readouterr().err == f"a b c d\nposrag: a {IN_ONE_LINE}\n"


def test_a_table_is_styled_by_rich_alone(
    console: Console, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    """Its cells and headings are as wide as what they show."""
    console.show(table(FOREIGN))
    out = capsys.readouterr().out
    styled = "terminal" in request.node.callspec.id
    assert ("\x1b[1m" in out) is styled, "the heading is bold"
    assert "\x1b[31m" not in out
    assert "\x07" not in out
    assert out.count(SHOWN) == 3
    assert f"│ {SHOWN} │" in out.splitlines()[-2]

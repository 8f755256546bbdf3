"""Files that the subcommands write, before anything is asked for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared_core import PosragError
from shared_core.cli.files import open_journal


def test_a_folder_in_the_place_of_the_answers_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the first answer would be paid for and lost."""
    monkeypatch.setenv("POSRAG_PROFILES", str(tmp_path))
    path = tmp_path / "m.answers.jsonl"
    assert open_journal("m").path == path
    path.mkdir()
    with pytest.raises(PosragError, match=r"answers cannot be kept in .*m\.answers"):
        open_journal("m")

"""Files of JSON lines: where one is not as it must be, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared_core.files import read_lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}\n{"a": ', 'line 2: expected one JSON object per line, in UTF-8, got {"a": '
         "(Expecting value at column 7)"),
        (b"question,answers", "got question,answers (Expecting value at column 1)"),
        ('{"a": "Größe"}'.encode("latin-1"), "line 1: byte 10 (0xf6) is not UTF-8; save the file"),
        (b"7", "line 1: expected an object, got 7"),
        ('{"a": 1}'.encode("utf-16"), "line 1: byte 1 (0xff) is not UTF-8; save the file"),
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_shown_and_its_only_number_is_its_own(
    content: bytes, message: str, tmp_path: Path
) -> None:
    """The parser counts lines of its own, and a codec knows of none."""
    path = tmp_path / "q.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"q\.jsonl, line \d: ") as caught:
        [*read_lines(path, dict)]
    assert message in str(caught.value)
    assert str(caught.value).count("line 1") <= 1
    assert "codec" not in str(caught.value)

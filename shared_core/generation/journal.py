"""Answers on disk, one line each, so that a run of hours can be killed and resumed."""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from datetime import datetime
from pathlib import Path
from typing import IO

from shared_core.generation.responses import Request, Response

_RECORD = b'{"key": "'
_BLANK = b" \t\r\n\0"  # a crash of the whole machine can leave zeros where a line was to be


class NotKeptError(OSError):
    """An answer cannot be added to the file of a `Journal`; the message names the file."""


class Journal:
    """Append-only file of answers: JSON lines of ``{"key": ..., "response": ...}``.

    The key is a hash of the model's fingerprint and the request, and of the number of the
    repetition from the second on. The last line of a key counts. Damaged lines, such as the last
    one of a killed run, are ignored. Threads and processes may add to one file at once; an answer
    that another process adds after the file was read is not seen.

    Parameters
    ----------
    path
        The file. It is read at the first use, and made with its folder when the first answer is
        added.
    fresh
        Whether to begin a new file. Nothing is looked up in one that is there; when the first
        answer is added, it is moved beside the new one under the date of that moment. So nothing
        is lost if no answer can be had.

    Raises
    ------
    ValueError
        By any method but `path`, if the file holds something, but no answer at all.
    """

    def __init__(self, path: str | Path, *, fresh: bool = False) -> None:
        self._path = Path(path)
        self._lock = threading.Lock()
        self._fresh = fresh
        self._loaded: dict[str, Response] | None = {} if fresh else None

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    def __len__(self) -> int:
        with self._lock:
            return len(self._responses())

    def get(self, fingerprint: str, request: Request, repetition: int = 1) -> Response | None:
        """Return the answer of a model to `request`, or None if there is none."""
        key = _key(fingerprint, request, repetition)
        with self._lock:
            return self._responses().get(key)

    def add(
        self, fingerprint: str, request: Request, response: Response, repetition: int = 1
    ) -> None:
        """Keep an answer. When this returns it survives the death of the process.

        Raises
        ------
        NotKeptError
            If the file cannot be written.
        """
        key = _key(fingerprint, request, repetition)
        with self._lock:
            responses = self._responses()  # or a file of the user's own would be added to
            self._append(_line(key, response))
            responses[key] = response

    def _append(self, line: bytes) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._fresh and self._path.exists():
                date = datetime.now().astimezone().strftime("%Y-%m-%dT%H%M%S-%f")
                self._path.rename(self._path.with_suffix(f".{date}{self._path.suffix}"))
            self._fresh = False
            # Unbuffered and appending: the line is one write at the end of the file, which no write
            # of another process can split.
            with self._path.open("a+b", buffering=0) as file:
                # A process was killed in the middle of a line, or is writing one: this line then
                # comes after it, and an empty line between them does no harm.
                if not _ends_a_line(file):
                    line = b"\n" + line
                if file.write(line) < len(line):
                    raise OSError("not in full; is the disk full?")
        except OSError as error:
            reason = error.strerror or error
            raise NotKeptError(f"{self._path} cannot be written ({reason})") from error

    def _responses(self) -> dict[str, Response]:
        if self._loaded is None:
            self._loaded = _read(self._path)
        return self._loaded


def _key(fingerprint: str, request: Request, repetition: int = 1) -> str:
    parts = [fingerprint, *request, *([repetition] if repetition > 1 else [])]
    canonical = json.dumps(parts, separators=(",", ":")).encode("ascii")
    return hashlib.sha256(canonical).hexdigest()[:32]


def _line(key: str, response: Response) -> bytes:
    return json.dumps({"key": key, "response": response}).encode("ascii") + b"\n"


def _ends_a_line(file: IO[bytes]) -> bool:
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _read(path: Path) -> dict[str, Response]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    lines = [line for line in (line.strip(_BLANK) for line in lines) if line]
    records = dict(record for record in map(_parse, lines) if record is not None)
    if not records and not all(map(_is_torn_record, lines)):
        raise ValueError(
            f"{path} is not a journal of answers, and nothing is added to it: "
            "give the path of a new file, or move this one away"
        )
    return records


def _parse(line: bytes) -> tuple[str, Response] | None:
    try:
        record = json.loads(line)
        key, response = record["key"], record["response"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    known = isinstance(response, str) or _is_scores(response)
    return (key, response) if isinstance(key, str) and known else None


def _is_scores(response: object) -> bool:
    return isinstance(response, list) and all(
        type(value) in (int, float) and math.isfinite(value) for value in response
    )


def _is_torn_record(line: bytes) -> bool:
    # A run that is killed during its very first write leaves a journal without an answer.
    return line.startswith(_RECORD) or _RECORD.startswith(line)

"""A command of an installed package that serves on this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


class Server:
    """In a process of its own on a free port, with `folder` as its own; may be killed, and again.

    ``FOLDER`` among the words of its command stands for that.
    """

    def __init__(self, folder: Path, command: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.folder = folder
        name, *words = command.replace("FOLDER", str(folder)).split()
        where = ["--host", "127.0.0.1", "--port", str(self.port)]
        self.command = [str(Path(sys.executable).with_name(name)), *words, *where]
        self.start()

    def start(self) -> None:
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(self.command, cwd=self.folder, stdout=quiet, stderr=quiet)
        for _ in range(900):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.1)
        raise AssertionError("the server does not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

"""A server on the loopback interface that speaks OpenAI's chat-completions protocol.

What it answers is up to a function of the request, so that a test decides on every failure.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Request:
    """A request as it came: header names in lower case, `payload` the parsed body."""

    headers: dict[str, str]
    payload: dict[str, Any]

    @property
    def prompt(self) -> str:
        """Text of the last message."""
        return str(self.payload["messages"][-1]["content"])


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is sent back.

    Attributes
    ----------
    text
        The answer; with another status than 200, the message of the error. None is no content.
    refusal
        Sent beside the text.
    finish
        Why the answer ended.
    status, headers
        Status and further headers.
    body
        Sent instead of a body that holds `text`, malformed as it may be.
    hang
        Send nothing until the server closes.
    """

    text: str | None = ""
    refusal: str | None = None
    finish: str = "stop"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    hang: bool = False


class OpenAIServer:
    """Answers ``POST /v1/chat/completions`` while it is open; use it in a ``with`` statement.

    Parameters
    ----------
    answer
        From a request to the text of the answer, or to a `Reply`. Called in several threads.
    """

    def __init__(self, answer: Callable[[Request], str | Reply]) -> None:
        self.requests: list[Request] = []
        self._answer = answer
        self._closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """Base address, to be given as ``base_url``."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _reply(self, request: Request) -> Reply:
        self.requests.append(request)
        reply = self._answer(request)
        return Reply(text=reply) if isinstance(reply, str) else reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                headers = {name.lower(): value for name, value in self.headers.items()}
                reply = server._reply(Request(headers, payload))
                if reply.hang:
                    server._closing.wait()
                    self.close_connection = True
                    return
                body = _body(reply, payload["model"]) if reply.body is None else reply.body
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Keep quiet."""

        return Handler


def _body(reply: Reply, model: str) -> bytes:
    if reply.status != 200:
        error = {"message": reply.text, "type": "error", "param": None, "code": None}
        return json.dumps({"error": error}).encode()
    message = {"role": "assistant", "content": reply.text, "refusal": reply.refusal}
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    return json.dumps(completion, ensure_ascii=False).encode()

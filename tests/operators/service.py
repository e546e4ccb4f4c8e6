"""A real HTTP server for tests: it answers as its path says, and counts what it is asked."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ANSWERS: dict[str, Any] = {
    "wrong-type": 3.5,
    "refuses": {"error": "no such topic"},
    "row": [[{"type": "literal", "value": "x"}]],
}

# an answer that nobody asked for: no, where all others say yes
SECOND = b'HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n{"answers":[false]}'


class Service:
    """What was asked of a server, and how many requests were under way at most."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.most = self._now = 0
        self.lock = threading.Lock()
        self.busy = 0  # so many requests are answered by 503 first, with these seconds to wait
        self.retry_after = ""
        self.port = 0
        self.base = ""

    def toml(self, path: str = "true", **settings: object) -> str:
        """The declaration of the operator `mentions(topic)` behind the server."""
        timeout = {"hangs": 2, "hangs-once": 10}.get(path, 30)  # a loaded machine can hold up an answer for seconds
        given = {"allow_private_addresses": True, "timeout": timeout, **settings}
        lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
        url = f'url = "{self.base}/{path}"'
        return "\n".join(["[operators.mentions]", 'kind = "http"', 'parameters = ["topic"]', url, *lines])

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        """One request."""
        asked = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self.lock:
            self.asked.append(asked)
            self._now += 1
            is_busy, self.busy = self.busy > 0, self.busy - 1
            self.most = max(self.most, self._now)
        path = handler.path[1:]
        if path == "slow":
            time.sleep(0.02)
        if path == "hangs" or (path == "hangs-once" and len(self.asked) == 1):
            time.sleep(60)
        with self.lock:
            self._now -= 1
        if path in ("500", "302") or is_busy:
            handler.send_response(503 if is_busy else int(path))
            handler.send_header("Location", "/true")
            if self.retry_after:
                handler.send_header("Retry-After", self.retry_after)
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return
        if path == "one-and-a-half":  # the other half comes when the connection is used again
            rest = getattr(handler, "rest", b"")
            handler.wfile.write(rest + SECOND.replace(b"false", b"true ") + SECOND[:20])
            handler.rest = SECOND[20:]  # type: ignore[attr-defined]
            return
        answers = [ANSWERS.get(path, True) for _ in asked["calls"]] + [True] * (path == "too-many")
        body = b"[" if path == "no-json" else json.dumps({"answers": answers}).encode()
        body = b"x" * (17 << 20) if path == "floods" else body
        if path == "early-hints":  # an interim answer
            handler.send_response_only(103)
            handler.end_headers()
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body) + 9 * (path == "closes")))
        handler.end_headers()
        handler.wfile.write(body + SECOND * (path == "twice"))
        handler.close_connection = path == "closes"


@contextmanager
def service(certificate: Path | None = None, host: str = "127.0.0.1") -> Iterator[Service]:
    """A server of its own, which ends with the block. With a file of a key and a certificate, it speaks TLS."""
    told = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            told.reply(self)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    class Quiet(ThreadingHTTPServer):
        request_queue_size = 64
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Clients that went away are what is tested."""

    server = Quiet(("127.0.0.1", 0), Handler)
    told.port = server.server_port
    told.base = f"http{'' if certificate is None else 's'}://{host}:{told.port}"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()

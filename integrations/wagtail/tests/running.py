"""A real `triplewire serve` for the tests, and a way in between that loses what passes."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import threading
import time
import urllib.request
import xmlrpc.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / ".venv" / "bin" / "triplewire"
OWNER = "token-of-the-owner-0123456789"


def free_port() -> int:
    """A port that nobody listens at, below those that a system gives by itself: no connection takes it meanwhile."""
    while True:
        port = random.SystemRandom().randrange(10_000, 32_768)
        with suppress(OSError), socket.socket() as made:
            made.bind(("127.0.0.1", port))
            return port


def until(holds: Callable[[], Any], seconds: float = 180.0) -> Any:
    """What a condition answers as soon as that is true; fails where it never is."""
    end = time.monotonic() + seconds
    while not (answer := holds()):
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
    return answer


class Broker:
    """A service over a folder, which can be ended and started again at the same address."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        """Start it, and wait until it takes publications."""
        environment = {**os.environ, "TRIPLEWIRE_TIER": "interpreted", "TRIPLEWIRE_TOKEN": OWNER}
        environment.pop("DJANGO_SETTINGS_MODULE", None)
        command = [PROGRAM, "serve", "--data", self.folder, "--port", str(self.port), "--allow-private-addresses"]
        self.log = self.folder.with_suffix(".log").open("a")
        self.process = subprocess.Popen(command, env=environment, stderr=self.log, start_new_session=True)
        until(self._is_up)

    def _is_up(self) -> bool:
        assert self.process.poll() is None, self.folder.with_suffix(".log").read_text()
        try:
            urllib.request.urlopen(f"{self.url}/readiness", timeout=2).close()
            return True
        except OSError:
            return False

    def kill(self) -> None:
        """End it as a power failure does."""
        self.process.kill()
        self.process.wait(180)
        self.log.close()

    def token(self, owner: str, *options: str) -> str:
        """An API token."""
        command = [PROGRAM, "token", "create", "--data", self.folder, "--owner", owner, *options]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def proxy(self, token: str = OWNER) -> Any:
        """The bare client of Python."""
        headers = [("Authorization", f"Bearer {token}")]
        return xmlrpc.client.ServerProxy(f"{self.url}/RPC2", headers=headers, use_builtin_types=True)


class Between:
    """Passes requests on to a service. `at`: the number of the request that is lost, or whose answer is; then
    `happens` is called."""

    def __init__(self, to: str) -> None:
        self.seen: list[str] = []
        self.at, self.is_answer_lost = -1, False
        self.happens: Callable[[], None] = lambda: None
        of = self

        class Handler(BaseHTTPRequestHandler):
            def _pass(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                is_lost = len(of.seen) == of.at
                of.seen.append(f"{self.command} {self.path} {_method(body)}")
                if not is_lost or of.is_answer_lost:
                    headers = {name: self.headers[name] for name in ("Authorization", "Content-Type")}
                    request = urllib.request.Request(to + self.path, body or None, headers, method=self.command)
                    try:
                        answer = urllib.request.urlopen(request, timeout=180)
                    except urllib.error.HTTPError as error:
                        answer = error
                    content = answer.read()
                if is_lost:
                    of.happens()
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(content)))
                self.send_header("Content-Type", answer.headers["Content-Type"] or "")
                self.end_headers()
                self.wfile.write(content)

            do_POST = do_PATCH = do_DELETE = _pass

            def log_message(self, *arguments: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def end(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def feed_of(*titles: str) -> Iterator[tuple[str, list[str]]]:
    """The address of a feed with these items while it is served, and the addresses that were asked for."""
    items = "".join(f"<item><guid>urn:item:{n}</guid><title>{title}</title></item>" for n, title in enumerate(titles))
    body = f"<rss version='2.0'><channel><title>News</title><link>http://a.example/</link>{items}</channel></rss>"
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/rss+xml")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/news.xml", asked
    finally:
        server.shutdown()
        server.server_close()


def _method(body: bytes) -> str:
    begin = body.find(b"<methodName>")
    return body[begin + 12 : body.find(b"</methodName>")].decode() if begin >= 0 else ""

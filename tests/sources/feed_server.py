"""A server of feeds for tests: what it gives, what it was asked, and what came to the inbox."""

from __future__ import annotations

import contextlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from triplewire.net.addresses import Connections
from triplewire.sources.poller import Poller

RSS = "<rss version='2.0'><channel><title>t</title><item><guid isPermaLink='false'>{}</guid></item></channel></rss>"
LOOPBACK = Connections({"http://": {"allow_private_addresses": "true"}})


@dataclass
class Web:
    """What is at each path (status, headers, body), and what was asked for: path and headers."""

    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    root: str = ""
    held: dict[str, threading.Event] = field(default_factory=dict)  # paths that answer once these are set
    at_once: int = 0
    most_at_once: int = 0

    def paths(self) -> list[str]:
        """What was asked for since the last time."""
        asked, self.asked = [path for path, _ in self.asked], []
        return asked


class Clock:
    """A clock that a test sets."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@contextlib.contextmanager
def served() -> Iterator[Web]:
    """A server on a port of this machine."""
    state, lock = Web(), threading.Lock()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                state.asked.append((self.path, headers))
                state.at_once += 1
                state.most_at_once = max(state.most_at_once, state.at_once)
            if self.path in state.held:
                state.held[self.path].wait(300)
            with lock:  # before the answer: who has it may ask again at once
                state.at_once -= 1
            status, more, body = state.pages.get(self.path, (404, {}, b""))
            if status == 200 and more.get("ETag", "-") == headers.get("if-none-match"):
                status, body = 304, b""
            self.send_response(status)
            for name, value in {**more, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    state.root = f"http://127.0.0.1:{server.server_address[1]}"
    yield state
    server.shutdown()
    server.server_close()


def poller(web: Web, folder: Path, clock: Clock, *paths: str, connections: Connections = LOOPBACK) -> Poller:
    """A poller of these paths, with its inbox in the folder."""
    return Poller([web.root + path for path in paths], folder, connections, clock)


def came(folder: Path) -> list[tuple[str, bytes | None, str]]:
    """What is in the inbox: place, content, reason."""
    files = sorted((folder / "documents").glob("*.parquet"))
    return [(row["place"], row["content"], row["reason"]) for file in files for row in pq.read_table(file).to_pylist()]

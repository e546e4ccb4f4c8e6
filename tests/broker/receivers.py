"""Receivers of deliveries, which answer as a test wants, and a clock that is moved."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from triplewire.broker.broker import Broker, Wanted
from triplewire.broker.publications.kept_contents import read_body

ITEM = """<?xml version="1.0"?><rss version="2.0"><channel><title>c</title><link>http://example.org/</link>
<description>d</description><item><guid isPermaLink="false">urn:item:{n}</guid><title>{title}</title>
<link>http://example.org/{n}</link><description>text</description></item></channel></rss>"""
QUERY = 'SELECT ?title WHERE { ?item rss:title ?title FILTER ftcontains(?title, "olympic games") }'


def published(broker: Broker, *numbers: int, title: str = "Olympic games & Zürich {n}") -> None:
    """Publish items that `QUERY` matches, each alone, and wait until they are matched."""
    for n in numbers:
        body = ITEM.format(n=n, title=title.format(n=n).replace("&", "&amp;")).encode()
        taken = broker.publish(read_body(body, "", broker.settings).publications)
        numbers_taken = [one.number for one in taken]
        assert len(broker.wait(numbers_taken, 300)) == len(numbers_taken)


def subscribed(broker: Broker, *addresses: str, secret: str = "", owner: str = "ann", **settings: bool) -> int:
    """A subscription with these webhooks; its number."""
    from triplewire.broker.subscriptions.targets import Target

    targets = [Target("webhook", address, secret, settings) for address in addresses]
    return broker.subscribe(Wanted(QUERY, targets=targets), owner).number


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = time.time() + 60  # behind all that tests do

    def __call__(self) -> float:
        return self.now


class Came(NamedTuple):
    """A request."""

    path: str
    headers: dict[str, str]
    body: bytes


Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Server:
    """An HTTP server on the loopback. `answer` is called with each request."""

    answer: Callable[[Came], Answer] = lambda came: (200, {}, b"")
    requests: list[Came] = field(default_factory=list)
    url: str = ""
    asked: list[Came] = field(default_factory=list)  # with OPTIONS
    allows: dict[str, str] | None = None  # what it answers then; None: it does not know OPTIONS
    most_at_once: int = 0

    @property
    def ids(self) -> list[str]:
        """The ids of the events that came, as often as they did."""
        return [came.headers["ce-id"] for came in list(self.requests)]


@contextlib.contextmanager
def serving(answer: Callable[[Came], Answer] | int = 200, host: str = "127.0.0.1") -> Iterator[Server]:
    """A server that answers with a status, or with what a function says."""
    state, lock, now = Server(), threading.Lock(), [0]
    state.answer = answer if callable(answer) else lambda came: (answer, {}, b"")

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came = Came(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            with lock:
                now[0] += 1
                state.most_at_once = max(state.most_at_once, now[0])
                state.requests.append(came)
            status, headers, text = state.answer(came)
            with lock:
                now[0] -= 1
            with contextlib.suppress(OSError):
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

        do_GET = do_PUT = do_POST

        def do_OPTIONS(self) -> None:
            state.asked.append(Came(self.path, {name.lower(): value for name, value in self.headers.items()}, b""))
            self.send_response(405 if state.allows is None else 200)
            for name, value in {"Content-Length": "0", **(state.allows or {})}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    class Listening(http.server.ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 128

    server = Listening((host, 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    state.url = f"http://{host}:{server.server_address[1]}/hook"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()

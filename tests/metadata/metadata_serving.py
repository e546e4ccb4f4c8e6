"""Providers at ports of the loopback, and a network between them and those who ask that fails on purpose."""

from __future__ import annotations

import http.client
import http.server
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from broker.serving import served
from triplewire.config import ServiceSettings
from triplewire.metadata.backbone import Writing
from triplewire.service.metadata_doors import metadata_service

TOKEN = "token-of-a-provider"
SETTINGS = ServiceSettings(token=TOKEN, most_body=1 << 26)


@contextmanager
def provider_at(writing: Writing) -> Iterator[str]:
    """The address of a provider while it runs."""
    with served(metadata_service(writing, SETTINGS)) as address:
        yield address


@dataclass
class Network:
    """A proxy before a provider. With `faults`, a question is lost before it arrives, or its answer after; it is late;
    it arrives twice; the lines of an answer come in another order; or an answer is one that was given before."""

    target: str
    chance: random.Random
    faults: bool = True
    url: str = ""
    traffic: list[bytes] = field(default_factory=list)
    happened: dict[str, int] = field(default_factory=dict)
    answers: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def fault(self) -> str:
        """What happens to a question."""
        kinds = ("lost", "unanswered", "late", "twice", "mixed", "old")
        what = self.chance.choice(kinds) if self.faults and self.chance.random() < 0.4 else ""
        self.happened[what] = self.happened.get(what, 0) + 1
        return what

    def ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """The answer of the provider."""
        connection = http.client.HTTPConnection(self.target, timeout=300)
        try:
            connection.request(method, path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@contextmanager
def network(address: str, seed: int) -> Iterator[Network]:
    """A network before the provider of an address; its own address is `url`."""
    state = Network(address.removeprefix("http://"), random.Random(seed))

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")
            }
            state.traffic.append(f"{self.command} {self.path}\n{headers}\n".encode() + body)
            what = state.fault()
            if what == "lost":
                self.close_connection = True
                return
            if what == "late":
                time.sleep(0.1)
            status, answer = state.ask(self.command, self.path, headers, body)
            if what == "twice":
                status, answer = state.ask(self.command, self.path, headers, body)
            if what == "mixed" and self.command == "GET":
                answer = b"".join(state.chance.sample(lines := answer.splitlines(keepends=True), len(lines)))
            place = self.path.partition("?")[0]
            before = state.answers.get(place)
            state.answers[place] = status, answer
            if what == "old" and self.command == "GET" and before is not None and "batches" in place:
                status, answer = before
            if what == "unanswered":
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()

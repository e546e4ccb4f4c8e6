"""What a service delivers and answers, beside the bare parts of it.

These are webhooks, one by one and to many hosts, and the live tester. They are ratios of one run, in which other load
of the machine counts on both sides.
"""

from __future__ import annotations

import http.server
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.report import Figure
from triplewire.broker.broker import Broker, Target, Wanted
from triplewire.deliver.limits import DeliverySettings
from triplewire.deliver.schedule import Deliveries
from triplewire.engine import Engine
from triplewire.errors import TriplewireError
from triplewire.model.publication import Publication

NAME = "broker"
WEBHOOK, TESTER, DIVIDED = 4.0, 3.0, 1.3
_WEBHOOKS = 50
_HOSTS, _DEAD, _SLOW, _EACH = 100, 10, 10, 100  # webhooks go to `_EACH` publications' events of each host
_SLOW_SECONDS = 5.0
_TOKEN = "bench-token-0123456789abcdefgh"
_ITEM = (
    '<rss version="2.0"><channel><title>c</title><link>http://example.org/</link><description>d</description><item>'
    '<guid isPermaLink="false">urn:item:{n}</guid><title>Olympic games {n}</title></item></channel></rss>'
)
_QUERY = 'SELECT ?title WHERE { ?item rss:title ?title FILTER ftcontains(?title, "olympic games") }'


@contextmanager
def removed(folder: Path) -> Iterator[None]:
    """A folder that is there, and empty, and goes afterwards."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def served(folder: Path, *more: str) -> Iterator[str]:
    """`triplewire serve` on an empty folder, with more options, as its address."""
    with removed(folder), ExitStack() as ends:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "triplewire", "serve", "--data", str(folder), "--port", str(port), *more]
        environment = {**os.environ, "TRIPLEWIRE_TOKEN": _TOKEN, "TRIPLEWIRE_ALLOW_PRIVATE_ADDRESSES": "1"}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ends.callback(process.wait)
        ends.callback(process.terminate)
        address = f"http://127.0.0.1:{port}"
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with suppress(OSError):
                urllib.request.urlopen(f"{address}/readiness", timeout=5).read()
                break
            time.sleep(0.1)
        yield address


def ask(url: str, body: bytes | None, kind: str = "application/json") -> tuple[int, bytes]:
    headers = {"Content-Type": kind, "Authorization": f"Bearer {_TOKEN}"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=60) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@contextmanager
def _receiver(got: Callable[[str], None]) -> Iterator[int]:
    """A receiver of webhooks at all addresses of this machine, as its port; it calls `got` with the address of each."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            got(self.connection.getsockname()[0])
            with suppress(OSError):
                self.send_response(204)
                self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(http.server.ThreadingHTTPServer):
        daemon_threads, request_queue_size, block_on_close = True, 1_024, False

    with Server(("0.0.0.0", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def delivered(folder: Path, full: bool) -> Iterator[Figure]:
    """From a publication that is accepted, as its publisher is told, to the webhook that is received."""
    came, at = threading.Event(), [0.0]

    def got(host: str) -> None:
        at[0] = time.perf_counter()
        came.set()

    name = "publication accepted to webhook received / (one sync + one bare POST)"
    with served(folder) as address, _receiver(got) as port:
        hook = f"http://127.0.0.1:{port}/"
        ask(f"{address}/subscriptions", json.dumps({"query": _QUERY, "webhook": hook}).encode())
        took, floor = [], []
        for number in range(_WEBHOOKS + 5):
            came.clear()
            ask(f"{address}/publish", _ITEM.format(n=number).encode(), "application/rss+xml")
            accepted = time.perf_counter()
            if not came.wait(10):
                note = "no webhook came within ten seconds"
                yield Figure(NAME, name, None, "x", WEBHOOK if full else None, note=note)
                return
            took.append(max(at[0] - accepted, 0.0))
            begun = time.perf_counter()
            _sync(folder / "synced")
            ask(hook, b"{}")
            floor.append(time.perf_counter() - begun)
    median, least = statistics.median(took[5:]), statistics.median(floor[5:])
    yield Figure(NAME, "publication accepted to webhook received, median", median * 1e3, "ms")
    yield Figure(NAME, name, median / least, "x", WEBHOOK if full else None)


def _sync(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b"x" * 4_096)
        stream.flush()
        os.fsync(stream.fileno())


def tested(folder: Path, documents: Sequence[Publication], full: bool) -> Figure:
    """The live tester over the last publications, beside the engine."""
    name, target = "live tester over {n:,} publications / Engine.match of the same", TESTER if full else None
    with served(folder) as address:
        for document in documents:
            text = "".join(f"{triple}\n" for triple in document.triples)
            ask(f"{address}/publish", _named(document, text).encode(), "application/n-quads")
        attempt = json.dumps({"query": _QUERY}).encode()
        answer = ask(f"{address}/try", attempt)
        took, alone = [], []
        for _ in range(5):
            begun = time.perf_counter()
            answer = ask(f"{address}/try", attempt)
            took.append(time.perf_counter() - begun)
            engine = Engine()
            engine.subscribe(_QUERY, id="query")
            begun = time.perf_counter()
            len(engine.match(documents))
            alone.append(time.perf_counter() - begun)
    if answer[0] != 200:
        return Figure(NAME, name, None, "x", target, note=f"/try answers {answer[0]}")
    name = name.format(n=json.loads(answer[1])["of"])
    return Figure(NAME, name, statistics.median(took) / statistics.median(alone), "x", target)


def _named(document: Publication, text: str) -> str:
    """The N-Quads of a publication, a named graph."""
    return "".join(f"{line[:-2]} <{document.id}> .\n" for line in text.splitlines())


# --- many hosts ------------------------------------------------------------------------------------------------------


def divided(folder: Path, full: bool) -> Figure:
    """When the healthy of many hosts have got their webhooks, with dead and slow ones beside them and without these."""
    healthy = [f"127.0.1.{number}" for number in range(1, _HOSTS - _DEAD - _SLOW + 1)]
    slow, dead = ([f"127.0.{net}.{n}" for n in range(1, count + 1)] for net, count in ((2, _SLOW), (3, _DEAD)))
    each = _EACH if full else 10
    with_others, alone = (_seconds(folder, each, healthy, others, dead) for others in ([*slow, *dead], []))
    name = f"{each * _HOSTS:,} webhooks to {_HOSTS} hosts, {_DEAD} dead, {_SLOW} slow: the healthy / without these"
    return Figure(NAME, name, with_others / alone, "x", DIVIDED if full else None)


def _seconds(folder: Path, each: int, healthy: Sequence[str], others: Sequence[str], dead: Sequence[str]) -> float:
    """The seconds until all healthy hosts have got so many webhooks each."""
    came, all_came, end = Counter[str](), threading.Event(), threading.Event()

    def got(host: str) -> None:
        if host in dead:
            end.wait()
        elif host in others:
            end.wait(_SLOW_SECONDS)
        else:
            came[host] += 1
            if came.total() >= each * len(healthy):
                all_came.set()

    hosts = [*healthy, *others]
    settings = DeliverySettings(allow_private_addresses=True, without_rate=frozenset(hosts))
    with (
        removed(folder),
        _receiver(got) as port,
        Broker.open(f"sqlite:///{folder / 'broker.db'}", b"bench") as broker,
    ):
        targets = [Target("webhook", f"http://{host}:{port}/") for host in hosts]
        broker.subscribe_all([Wanted("SELECT ?t { ?i rss:title ?t }", targets=[target]) for target in targets], "bench")
        ids = [f"urn:x:{number}" for number in range(each)]
        items = [Publication.from_text(f'<{id}> <http://purl.org/rss/1.0/title> "x" .', id) for id in ids]
        broker.wait([taken.number for taken in broker.publish(items)], 600)
        begun = time.perf_counter()
        with Deliveries(broker, settings):
            if not all_came.wait(1_200):
                raise TriplewireError(f"{came.total()} webhooks came within twenty minutes")
            seconds = time.perf_counter() - begun
            end.set()
    return seconds

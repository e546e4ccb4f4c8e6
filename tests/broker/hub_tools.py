"""What tests of WebSub share: the service, served; callbacks that answer as a test wants; and a sender."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import sqlalchemy as sa

from broker.serving import served as at_a_port
from triplewire.broker.broker import Broker, Made, Wanted
from triplewire.broker.feeds.websub import Render, message_of
from triplewire.broker.publications.kept_contents import read_body
from triplewire.broker.subscriptions.targets import Target, end_target
from triplewire.broker.tickets import opened
from triplewire.net.client import Client
from triplewire.net.guard import target_of
from triplewire.service.app import ServiceSettings, service
from triplewire.service.feeds import rendered
from triplewire.store.tables import deliveries, targets

TOKEN = "owner-token-0123456789abcdef"
ITEM = """<?xml version="1.0"?><rss version="2.0"><channel><title>c</title><link>http://example.org/</link>
<description>d</description><item><guid isPermaLink="false">urn:item:{n}</guid><title>Olympic games {n}</title>
<link>http://example.org/{n}</link><description>text</description></item></channel></rss>"""
QUERY = 'SELECT ?title WHERE { ?item rss:title ?title FILTER ftcontains(?title, "olympic games") }'


class Said(NamedTuple):
    """An answer; names of headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Came(NamedTuple):
    """A request that a server of a test got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def query(self) -> dict[str, str]:
        """Its parameters."""
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, keep_blank_values=True))


def ask(
    url: str, body: bytes | dict[str, str] | None = None, *, method: str = "", token: str = "", **headers: str
) -> Said:
    """One request; a dictionary is sent as a form. `_` in names of headers is `-`."""
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    if isinstance(body, dict):
        body = urllib.parse.urlencode(body).encode()
        fields.setdefault("Content-Type", "application/x-www-form-urlencoded")
    if token:
        fields["Authorization"] = f"Bearer {token}"
    request = urllib.request.Request(url, body, fields, method=method or ("GET" if body is None else "POST"))
    try:
        with urllib.request.urlopen(request, timeout=300) as answer:
            return Said(answer.status, {n.lower(): v for n, v in answer.headers.items()}, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Said(error.code, {n.lower(): v for n, v in error.headers.items()}, error.read())


@dataclass
class Server:
    """An HTTP server on the loopback: what it got, and what it answers."""

    answer: Callable[[Came], Said]
    came: list[Came] = field(default_factory=list)
    url: str = ""

    def of(self, method: str) -> list[Came]:
        """The requests of a method."""
        return [came for came in self.came if came.method == method]


def echo(came: Came) -> Said:
    """What a subscriber that means it answers."""
    return Said(200, {}, came.query.get("hub.challenge", "").encode() if came.method == "GET" else b"")


@contextlib.contextmanager
def serving(answer: Callable[[Came], Said] = echo) -> Iterator[Server]:
    """A server that answers so."""
    state = Server(answer)

    class Handler(http.server.BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            came = Came(self.command, self.path, {n.lower(): v for n, v in self.headers.items()}, body)
            state.came.append(came)
            said = state.answer(came)
            self.send_response(said.status)
            for line in said.headers.items():
                for value in line[1].split("\n"):  # several headers of a name
                    self.send_header(line[0], value)
            self.send_header("Content-Length", str(len(said.body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(said.body)

        do_GET = do_POST = _answer

        def log_message(self, *_: object) -> None:
            """Nothing on standard error."""

    server = http.server.ThreadingHTTPServer(("", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def served(broker: Broker, *, allow_private: bool = True, **settings: Any) -> Iterator[str]:
    """The service of a broker at an address of the loopback."""
    how = ServiceSettings(token=TOKEN, allow_private_addresses=allow_private, **{"wait_seconds": 300.0, **settings})
    with at_a_port(service(broker, how)) as url:
        yield url


def subscribed(broker: Broker, owner: str = "owner") -> Made:
    """A subscription that each `ITEM` matches."""
    return broker.subscribe(Wanted(QUERY), owner)


def published(broker: Broker, *numbers: int, **how: Any) -> None:
    """Publish items, each alone, and wait until they are matched."""
    for n in numbers:
        came = read_body(ITEM.format(n=n).encode(), "", broker.settings)
        taken = broker.publish(came.publications, **how)
        assert broker.wait([one.number for one in taken], 300)


def delivered(broker: Broker, render: Render = rendered) -> int:
    """Send what is due to subscribers of the hub; returns how many took it."""
    with broker.database.reading() as connection:
        here = sa.select(deliveries.c.number.label("delivery"), targets).join(
            targets, targets.c.number == deliveries.c.target
        )
        due = connection.execute(here.where(deliveries.c.state == "pending", targets.c.kind == "websub")).all()
    taken = 0
    for row in due:
        settings = json.loads(row.settings)
        secret = opened(row.secret, broker.secret)
        target = Target(row.kind, row.address, secret, settings, row.expires, form=row.form)
        headers, body = message_of(broker, row.subscription, target, render)
        with contextlib.closing(Client(target_of(row.address, True))) as client:
            status = client.request("POST", headers, body, seconds=300).status
        taken += 200 <= status < 300
        state = "delivered" if 200 <= status < 300 else "pending"
        ended = deliveries.update().where(deliveries.c.number == row.delivery).values(state=state)
        broker.database.write(lambda connection, ended=ended: connection.execute(ended))
        if status == 410:
            broker.database.write(lambda connection, row=row: end_target(connection, row.number, "410"))
            broker.followed.follow()
    return taken

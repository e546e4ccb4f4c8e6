"""Addresses from outside that would have the service ask its own network: no door, and no part behind it, asks one.

A canary listens on this machine. With the guard off, the same attacks reach it.
"""

from __future__ import annotations

import ast
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from amounts import usually
from net.forged_addresses import NAMES, forged
from service.bodies import body, properties
from triplewire import Engine
from triplewire.broker.broker import Broker
from triplewire.errors import AddressError, TriplewireError
from triplewire.net import transport
from triplewire.net.addresses import Connections
from triplewire.net.client import Client
from triplewire.net.guard import checked_addresses, target_of
from triplewire.service.app import ServiceSettings, service
from triplewire.sources.fetch import Known, fetch

SOURCE = Path(__file__).resolve().parents[2] / "src" / "triplewire"
TOKEN = "the token of the owner"
PUBLIC = "198.41.0.4"
URLS = ("webhook", "url", "address", "callback", "hook")
"""Fields of bodies that are addresses."""


class Canary:
    """A server that must not be asked; and another one on this machine, which redirects to it."""

    def __init__(self) -> None:
        self.hits = 0
        self.location = ""
        self._sockets = [socket.create_server(("", 0), backlog=256) for _ in range(2)]
        self.port, self.redirecting = (each.getsockname()[1] for each in self._sockets)
        for each, answer in zip(self._sockets, (self._hit, self._redirect), strict=True):
            threading.Thread(target=self._serve, args=(each, answer), daemon=True).start()

    @staticmethod
    def _serve(listening: socket.socket, answer: Callable[[socket.socket], None]) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    answer(connection)

    def _hit(self, connection: socket.socket) -> None:
        self.hits += 1
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")

    def _redirect(self, connection: socket.socket) -> None:
        connection.recv(65_536)
        head = f"HTTP/1.1 302 Found\r\nLocation: {self.location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode("utf-8", "surrogateescape"))

    def close(self) -> None:
        """End."""
        for each in self._sockets:
            each.close()


@pytest.fixture
def canary() -> Iterator[Canary]:
    with closing(Canary()) as made:
        yield made


Answers = Callable[[str], list[str]]


def resolving(monkeypatch: pytest.MonkeyPatch, answers: Answers) -> None:
    """Have names of `NAMES` resolved by an attacker; no other name is asked for outside of this machine."""
    system = socket.getaddrinfo

    def resolve(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name in NAMES:
            return [entry for address in answers(name) for entry in system(address, port, *more, **named)]
        if any(letter in "ghjkmnpqrstuvwyz" for letter in name.lower()) and "localhost" not in name.lower():
            raise socket.gaierror("no such name")
        return system(host, port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)


@pytest.fixture
def hostile_names(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, lambda name: ["127.0.0.1"])


def directly(url: str, *, allow_private: bool = False) -> None:
    """Ask as webhooks are asked."""
    with closing(Client(target_of(url, allow_private))) as client:
        client.request("GET", {}, seconds=0.3)


def as_feed(url: str, *, allow_private: bool = False) -> None:
    """Ask as feeds are polled."""
    settings = {"http": {"allow_private_addresses": "true"}} if allow_private else {}
    fetch(url, Known(), Connections(settings), 0.3)


def tried(way: Callable[..., None], urls: list[str], **how: bool) -> None:
    """Ask all of them, whatever becomes of it."""
    for url in urls:
        with suppress(TriplewireError, ValueError):
            way(url, **how)


def test_there_are_enough_of_them() -> None:
    assert len(forged(8_080)) >= 500


@pytest.mark.usefixtures("hostile_names")
@pytest.mark.parametrize("way", [directly, as_feed])
def test_none_is_asked(canary: Canary, way: Callable[..., None]) -> None:
    tried(way, forged(canary.port))
    assert canary.hits == 0


@pytest.mark.usefixtures("hostile_names")
@pytest.mark.parametrize("way", [directly, as_feed])
def test_without_the_guard_many_are(canary: Canary, way: Callable[..., None]) -> None:
    inside = [url for url in forged(canary.port) if "127." in url or any(name in url for name in NAMES)]
    tried(way, inside, allow_private=True)
    assert canary.hits >= 20


@pytest.mark.usefixtures("hostile_names")
@pytest.mark.parametrize("is_guarded", [True, False])
def test_no_redirect_leads_there(canary: Canary, is_guarded: bool) -> None:
    """The server that redirects may be asked; where it leads to may not."""
    allowed = f"http://127.0.0.1:{canary.redirecting}/" if is_guarded else "http://"
    connections = Connections({allowed: {"allow_private_addresses": "true"}})
    for url in forged(canary.port) if is_guarded else forged(canary.port)[:40]:
        if url.isprintable() and url.isascii():
            canary.location = url
            with suppress(TriplewireError):
                fetch(f"http://127.0.0.1:{canary.redirecting}/", Known(), connections, 0.3)
    assert (canary.hits == 0) == is_guarded


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_name_that_changes_its_address_leads_nowhere(
    canary: Canary, monkeypatch: pytest.MonkeyPatch, is_guarded: bool
) -> None:
    """The first answer is a public address, the next ones are this machine; a build that checks a name, and connects to
    the name, is misled."""
    asked: list[str] = []

    def rebinding(name: str) -> list[str]:
        asked.append(name)
        return [PUBLIC] if len(asked) % 2 else ["127.0.0.1"]

    resolving(monkeypatch, rebinding)
    if not is_guarded:

        def naively(host: str, port: int, *, allow_private: bool, seconds: float) -> list[str]:
            checked_addresses(host, port, allow_private=allow_private, seconds=seconds)
            return [host]

        monkeypatch.setattr(transport, "checked_addresses", naively)
    url = f"http://{NAMES[0]}:{canary.port}/"
    checked_addresses(NAMES[0], canary.port, allow_private=False, seconds=5.0)  # as a door does
    if not is_guarded:
        asked.clear()
    with suppress(TriplewireError):
        directly(url)
    assert (canary.hits == 0) == is_guarded


def test_a_name_with_a_public_and_an_own_address_is_refused(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    for answers in ([PUBLIC, "127.0.0.1"], ["127.0.0.1", PUBLIC], [PUBLIC, "::1"]):
        with monkeypatch.context() as patched:
            resolving(patched, lambda name, answers=answers: answers)  # type: ignore[misc]
            with pytest.raises(AddressError):
                directly(f"http://{NAMES[0]}:{canary.port}/")
    assert canary.hits == 0


# --- doors -----------------------------------------------------------------------------------------------------------


def doors_with_addresses(schema: Any) -> list[tuple[str, str, str]]:
    """The method and path of each door whose body has an address, and the name of the field."""
    found = []
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            for name in content and properties(content["schema"], schema):
                if name in URLS:
                    found.append((method.upper(), path, name))
    return found


@pytest.mark.usefixtures("hostile_names")
@pytest.mark.parametrize("is_guarded", [True, False])
def test_no_door_takes_one(canary: Canary, tmp_path: Path, is_guarded: bool) -> None:
    """Each door is asked for a quarter of the addresses, the next one for others; in `make full` for all."""
    step = usually(4, 1)
    url = f"sqlite:///{tmp_path / 'broker.db'}"
    with Broker.open(url, b"s" * 32, engine=Engine(matcher="reference")) as broker:
        app = service(broker, ServiceSettings(token=TOKEN, allow_private_addresses=not is_guarded))
        client, schema = TestClient(app), app.openapi()
        targets = doors_with_addresses(schema)
        assert ("POST", "/subscriptions", "webhook") in targets
        taken = []
        for number, (method, path, name) in enumerate(targets):
            content = schema["paths"][path][method.lower()]["requestBody"]["content"]["application/json"]["schema"]
            for address in forged(canary.port)[number % step : None if is_guarded else 40 : step]:
                sent = body(content, schema, "one") | {name: address}
                answer = client.request(method, path, json=sent, headers={"Authorization": f"Bearer {TOKEN}"})
                assert answer.status_code < 500
                if 200 <= answer.status_code < 300:
                    taken.append((path, address))
        if is_guarded:
            assert taken == []
            assert canary.hits == 0
        else:
            assert len(taken) >= 10


ALLOWED = {
    "broker/broker.py": {"socket"},  # the name of this machine
    "cli/client.py": {"urllib", "http"},  # asks a service that its user names
    "cli/conformance/asked.py": {"urllib", "http", "xmlrpc"},  # the same
    "cli/conformance/cms_command.py": {"xmlrpc"},  # its syntax
    "cli/conformance/service_points.py": {"xmlrpc"},
    "cli/serve.py": {"socket"},  # listens
    "deliver/mail.py": {"smtplib"},  # to the server of the settings
    "deliver/webhooks.py": {"xmlrpc"},  # its syntax
    "service/xml_rpc.py": {"xmlrpc"},
}
"""What may use a module that can open connections, and for what."""


def test_nothing_else_asks_servers() -> None:
    """All that asks a server goes through `triplewire.net`, whose guard is tested above."""
    found = {}
    for file in SOURCE.rglob("*.py"):
        place = file.relative_to(SOURCE).as_posix()
        names = set()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            names |= {module.split(".")[0] for module in modules if opens_connections(module)}
        if not place.startswith("net/") and names - ALLOWED.get(place, set()):
            found[place] = names
    assert found == {}


def opens_connections(module: str) -> bool:
    """Can it ask a server?"""
    roots = {"socket", "requests", "httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "smtplib", "ftplib", "xmlrpc"}
    return module.split(".")[0] in roots or module in ("urllib.request", "http.client")

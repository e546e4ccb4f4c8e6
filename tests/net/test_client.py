"""Requests to real servers: where they may go, when they end, and whose connections they use."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from triplewire.errors import AddressError, RequestError
from triplewire.net.client import Client
from triplewire.net.guard import target_of

CASES: dict[str, list[str]] = tomllib.loads(
    (Path(__file__).parents[1] / "cases" / "net" / "own_network.toml").read_text(encoding="utf-8")
)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Server:
    """A server on the loopback: how many connections it got, and what it was asked over each."""

    def __init__(self, answer: Callable[[socket.socket], None]) -> None:
        self._answer = answer
        self._socket = socket.create_server(("", 0), backlog=64)
        self.port = self._socket.getsockname()[1]
        self.connections = 0
        self.requests: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # it is closed
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            while request := connection.recv(65_536):
                self.requests.append(request)
                self._answer(connection)

    def client(self, connections: int = 1) -> Client:
        """A client that may ask it."""
        return Client(target_of(f"http://127.0.0.1:{self.port}/", True), connections)

    def close(self) -> None:
        """Take no more connections."""
        self._socket.close()


@contextlib.contextmanager
def server(answer: Callable[[socket.socket], None] = lambda connection: connection.sendall(OK)) -> Iterator[Server]:
    made = Server(answer)
    try:
        yield made
    finally:
        made.close()


def ask(url: str, allow_private: bool = False) -> int:
    """The status of the answer. Raises `ValueError` and `RequestError`."""
    client = Client(target_of(url, allow_private))
    with contextlib.closing(client):
        return client.request("GET", {}, seconds=3000).status


@pytest.mark.parametrize("url", [*CASES["reached"], *CASES["private"]])
def test_what_leads_to_the_own_network_is_not_asked(url: str) -> None:
    with server() as canary:
        with pytest.raises(AddressError):
            ask(url.format(port=canary.port))
        assert canary.connections == 0
        if url in CASES["reached"]:  # without the guard, it is
            with contextlib.suppress(AddressError):  # a system that does not read such names
                assert ask(url.format(port=canary.port), allow_private=True) == 200
                assert canary.connections == 1


@pytest.mark.parametrize("url", CASES["no_url"], ids=ascii)
def test_what_is_read_in_two_ways_is_no_url(url: str) -> None:
    with server() as canary:
        with pytest.raises(ValueError, match=r"^url "):
            ask(url.format(port=canary.port), allow_private=True)
        assert canary.connections == 0


def test_one_connection_serves_requests_one_after_the_other() -> None:
    with server() as asked:
        client = asked.client()
        for number in range(3):
            answer = client.request("GET", {"X-Number": str(number)}, seconds=300)
            assert (answer.status, answer.body) == (200, b"ok")
        assert asked.connections == 1
    assert [b"X-Number: %d\r\n" % number in request for number, request in enumerate(asked.requests)] == [True] * 3
    assert all(
        b"Host: 127.0.0.1:" in request and b"User-Agent: triplewire\r\n" in request for request in asked.requests
    )


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"], ids=["head", "body"])
def test_a_server_that_trickles_is_given_up_in_time(first: bytes) -> None:
    """Each byte comes soon enough; all of them do not."""

    def trickle(connection: socket.socket) -> None:
        connection.sendall(first)
        over = threading.Event()
        while not over.wait(0.05):
            connection.sendall(b"x")

    with server(trickle) as slow, pytest.raises(RequestError, match=r"no answer within 0\.5 s"):
        slow.client().request("GET", {}, seconds=0.5)


def test_a_header_cannot_end_before_its_time() -> None:
    with server() as asked:
        with pytest.raises(RequestError, match="connection failed"):
            asked.client().request("GET", {"X": "a\r\nY: b"}, seconds=3000)
        assert asked.requests == []


def test_an_answer_is_cut_at_its_size() -> None:
    def flood(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(bytes(65_536))

    with server(flood) as endless:
        with pytest.raises(RequestError, match="more than 1000000 bytes"):
            endless.client().request("GET", {}, seconds=300, most=1_000_000)
        answer = endless.client().request("GET", {}, seconds=300, most=1_000_000, whole=False)
        assert (answer.status, answer.body) == (200, b"")


def test_redirects_and_the_bodies_of_errors_are_not_followed_and_not_read() -> None:
    with server(lambda connection: connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\nendless")) as moved:
        answer = moved.client().request("GET", {}, seconds=300)
        assert (answer.status, answer.reason, answer.headers["location"], answer.body) == (302, "Found", "/x", b"")
        assert len(moved.requests) == 1


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with server() as asked, server() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert asked.client().request("GET", {}, seconds=300).status == 200
        assert (asked.connections, proxy.connections) == (1, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_has_connections_of_its_own() -> None:
    with server() as asked:
        client = asked.client()
        client.request("GET", {}, seconds=300)
        child = os.fork()
        if child == 0:  # pragma: no cover: in the child
            status = 1
            with contextlib.suppress(BaseException):
                status = 0 if client.request("GET", {}, seconds=300).body == b"ok" else 1
            os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert asked.connections == 2
        client.request("GET", {}, seconds=300)
        assert asked.connections == 2, "the connection of the parent was left alone"

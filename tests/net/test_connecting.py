"""Connections to a server whose queue of new ones is full for a while."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator

import httpcore2
import pytest

from pipeline.connect.servers import free_port
from triplewire.net.transport import GuardedBackend, deadline_in


def connect(port: int, seconds: float) -> None:
    """Open a connection by a deadline, and close it."""
    with deadline_in(seconds):
        GuardedBackend(allow_private=True).connect_tcp("127.0.0.1", port).close()


@contextlib.contextmanager
def full_server() -> Iterator[socket.socket]:
    """A server with a queue of one, which is full."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(2):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        time.sleep(0.05)
        yield server


def test_a_server_that_takes_calls_is_reached_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=TRIES) as server:
        assert any(seconds < 0.5 for seconds in (took(server) for _ in range(TRIES)))


TRIES = 20  # of which one is enough: the machine may be loaded


def took(server: socket.socket) -> float:
    """The seconds until it is connected."""
    begun = time.monotonic()
    connect(server.getsockname()[1], 120)
    return time.monotonic() - begun


@pytest.mark.skipif(sys.platform != "linux", reason="other systems treat a full queue in other ways")
def test_a_dropped_request_is_made_again_soon() -> None:
    """Left to the system, it would take a second at least, each time."""

    def seconds() -> float:
        with full_server() as server:
            thread = threading.Thread(target=emptied, args=(server,))
            thread.start()
            passed = took(server)
            thread.join()
            return passed

    assert any(seconds() < 0.95 for _ in range(TRIES))


def emptied(server: socket.socket) -> None:
    """Take those that wait, after a while."""
    time.sleep(0.15)
    for _ in range(2):
        server.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            server.accept()[0].close()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems treat a full queue in other ways")
def test_the_deadline_holds() -> None:
    with full_server() as server:
        begun = time.monotonic()
        with pytest.raises(httpcore2.ConnectTimeout):
            connect(server.getsockname()[1], 0.4)
    assert 0.3 < time.monotonic() - begun < 60


def test_a_refusal_is_not_tried_again() -> None:
    begun = time.monotonic()
    with pytest.raises(httpcore2.ConnectError, match="refused"):
        connect(free_port(), 120)
    assert time.monotonic() - begun < 60

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
    with socket.create_server(("127.0.0.1", 0)) as server:
        begun = time.monotonic()
        connect(server.getsockname()[1], 5)
        assert time.monotonic() - begun < 0.5


@pytest.mark.skipif(sys.platform != "linux", reason="other systems treat a full queue in other ways")
def test_a_dropped_request_is_made_again_soon() -> None:
    """Left to the system, it would take a second at least, each time; of three times, as the machine may be loaded."""
    seconds = []
    for _ in range(3):
        with full_server() as server:
            thread = threading.Thread(target=emptied, args=(server,))
            begun = time.monotonic()
            thread.start()
            connect(server.getsockname()[1], 10)
            seconds.append(time.monotonic() - begun)
            thread.join()
    assert min(seconds) < 0.95


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
    assert 0.3 < time.monotonic() - begun < 5


def test_a_refusal_is_not_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    begun = time.monotonic()
    with pytest.raises(httpcore2.ConnectError, match="refused"):
        connect(port, 5)
    assert time.monotonic() - begun < 1

"""Connections of `triplewire.net.client`, for httpcore2's pool: guarded as they are made, and ended by a deadline.

It is imported where the first request is made: httpcore2 takes a while to load.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import httpcore2

from triplewire.net.guard import Target, checked_addresses, trusting

_EARLY = (0.1, 0.1, 0.2, 0.4)  # seconds after which the first attempts to connect are given up
_DEADLINE: ContextVar[float] = ContextVar("deadline")  # of the request that this thread makes, by `time.monotonic`


@contextmanager
def deadline_in(seconds: float) -> Iterator[None]:
    """A block in which all that connections of this thread do has to end within so many seconds."""
    token = _DEADLINE.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def pool_of(target: Target, connections: int) -> httpcore2.ConnectionPool:
    """A pool of at most so many connections to a target. It follows no redirect and knows no proxy, also none of the
    environment."""
    context = trusting(target.ca_file) if target.is_secure else None
    backend = GuardedBackend(target.allow_private)
    return httpcore2.ConnectionPool(ssl_context=context, max_connections=connections, network_backend=backend)


class GuardedBackend(httpcore2.SyncBackend):
    """Opens TCP connections to addresses that are allowed: the name is looked up once, for the check, and the address
    that was checked is connected to."""

    def __init__(self, allow_private: bool) -> None:
        self._allow_private = allow_private

    def connect_tcp(self, host: str, port: int, *_: Any, **__: Any) -> httpcore2.NetworkStream:
        """A connection by the deadline of the request; each address but the last has half of the time that is left.
        Raises `AddressError`, `TimeoutError` and what httpcore2 raises."""
        left = _seconds_left()
        addresses = checked_addresses(host, port, allow_private=self._allow_private, seconds=left)
        for address in addresses[:-1]:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout, TimeoutError):
                return self._connected(address, port, time.monotonic() + _seconds_left() / 2)
        return self._connected(addresses[-1], port, _DEADLINE.get())

    def _connected(self, address: str, port: int, deadline: float) -> httpcore2.NetworkStream:
        """A connection to an address, which is not looked up. A server whose queue of new connections is full lets a
        request for one drop, and the system asks again only after a second (RFC 6298, section 2). So the first attempts
        are given up early; nothing has been sent by then."""
        for seconds in _EARLY:
            if time.monotonic() + seconds < deadline:
                with suppress(httpcore2.ConnectTimeout):
                    return _Stream(super().connect_tcp(address, port, seconds))
        return _Stream(super().connect_tcp(address, port, max(deadline - time.monotonic(), 0.001)))


class _Stream(httpcore2.NetworkStream):
    """A connection whose every operation ends by the deadline, and that tells when more came than was asked for. The
    last byte of what came is handed out by itself. Where an answer ends before that byte, nobody fetches it: it belongs
    to a second answer, which must not be taken for that to the next request."""

    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner
        self._unsent: list[bytes] = []
        self._last_byte = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """What came, b"" where the connection was closed. What was written is sent before."""
        if self._unsent:
            request, self._unsent = b"".join(self._unsent), []
            self._inner.write(request, _seconds_left())
        if not self._last_byte:
            came = self._inner.read(max_bytes, _seconds_left())
            if len(came) < 2:
                return came
            self._last_byte = came[-1:]
            return came[:-1]
        last, self._last_byte = self._last_byte, b""
        return last

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Have it sent once an answer is waited for: the head and the body of a request in one packet."""
        self._unsent.append(buffer)

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        """The same connection with TLS."""
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _seconds_left()))

    def get_extra_info(self, info: str) -> Any:
        """What the pool asks: "is_readable" of an idle connection, which it gives up then. TLS may hold bytes back that
        are not to be seen at the socket."""
        if info == "is_readable":
            tls = self._inner.get_extra_info("ssl_object")
            if self._last_byte or (tls is not None and tls.pending()):
                return True
        return self._inner.get_extra_info(info)


def _seconds_left() -> float:
    """The seconds until the deadline. Raises `TimeoutError` where it has passed."""
    left = _DEADLINE.get() - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left

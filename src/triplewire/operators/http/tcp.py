"""Opens a TCP connection, with early retries for a server whose queue of new connections is full."""

from __future__ import annotations

import socket
import time

_SECONDS = (0.1, 0.1, 0.2, 0.4)


def connect(address: str, port: int, deadline: float) -> socket.socket:
    """A connection, made by the deadline (`time.monotonic`). Raises `OSError`, such as `TimeoutError`.

    A server whose queue of new connections is full lets a request for one drop, and the system asks again only after a
    second (RFC 6298, section 2). So the first attempts are given up early; nothing has been sent by then.
    """
    for seconds in _SECONDS:
        left = deadline - time.monotonic()
        if left <= seconds:
            break
        try:
            return _tried(address, port, seconds)
        except TimeoutError:
            continue
    return _tried(address, port, max(deadline - time.monotonic(), 0.001))


def _tried(address: str, port: int, seconds: float) -> socket.socket:
    """A connection to a numeric address, which is not looked up."""
    made = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.settimeout(seconds)
        made.connect((address, port))
    except BaseException:
        made.close()
        raise
    return made

"""A guard for libraries that open connections of their own: within it, only public addresses are connected to.

It stands at the system's calls (audit events of PEP 578), so that a name which has another address the next time, or a
redirect, changes nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

from triplewire.errors import AddressError
from triplewire.net.guard import is_public

_EVENTS = {"socket.connect", "socket.sendto", "socket.sendmsg"}
_PROGRAMS = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork")
_IS_GUARDED: ContextVar[bool] = ContextVar("is_guarded", default=False)


@contextmanager
def only_public_addresses() -> Iterator[None]:
    """A block in which this thread connects to no private address, to no socket file, and starts no program: what
    tries to gets an `AddressError`."""
    _install()
    token = _IS_GUARDED.set(True)
    try:
        yield
    finally:
        _IS_GUARDED.reset(token)


@cache
def _install() -> None:
    sys.addaudithook(_look_at)  # it stays for the life of the process


def _look_at(event: str, arguments: tuple[Any, ...]) -> None:
    if not _IS_GUARDED.get():
        return
    if event in _EVENTS:
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) and address else address
        if not isinstance(host, str) or not is_public(host):
            raise AddressError(f"{host!r} is no public address")
    elif event.startswith(_PROGRAMS):
        raise AddressError("no program may be started")

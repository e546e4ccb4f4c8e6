"""One connection to a service, kept open from call to call; each exchange ends in time and within bounds."""

from __future__ import annotations

import contextlib
import http.client
import io
import select
import socket
import ssl
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from triplewire.errors import OperatorError, OperatorFault
from triplewire.operators.http.addresses import checked_addresses
from triplewire.operators.http.tcp import connect

MOST_BYTES = 16 << 20  # of an answer
_CHUNK = 1 << 16


class Target(NamedTuple):
    """Where a service is: the parts of its address."""

    is_secure: bool
    host: str
    port: int
    path: str
    allow_private: bool
    ca_file: str = ""  # certificates that are trusted instead of those of the system

    @property
    def authority(self) -> str:
        """The value of the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"


class Answer(NamedTuple):
    """What a server answers. The names of headers are in lower case."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """One thread uses it at a time."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._socket: socket.socket | None = None

    def post(self, body: bytes, seconds: float) -> bytes:
        """The body of the answer. Raises `OperatorError`. A connection that was closed while it lay idle is opened
        anew; nothing is ever sent twice."""
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "Content-Type": "application/json"}
        answer = self.exchange("POST", headers, body, seconds)
        if answer.status != 200:
            self.close()
            is_redirect = 300 <= answer.status < 400
            what = f"it answers {answer.status} {answer.reason}"[:100]
            raise OperatorFault(
                what, remedy="redirects are not followed: give the address itself" if is_redirect else ""
            )
        return answer.body

    def exchange(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        seconds: float,
        most: int = MOST_BYTES,
        *,
        whole: bool = True,
    ) -> Answer:
        """One request and its answer, whose body has at most so many bytes. What is no success (2xx) has no body here:
        it is not read. Raises `OperatorError` where there is no whole answer in time. Without `whole`, a success counts
        from its head on: a body that is too long, is cut or does not come in time is left out."""
        deadline = time.monotonic() + seconds
        try:
            if self._socket is not None and select.select([self._socket], [], [], 0)[0]:
                self.close()  # closed, or it holds what nobody asked for: a second answer
            if self._socket is None:
                self._socket = self._opened(deadline)
            request = _head(self._target, method, headers, body)
            return self._exchanged(self._socket, request, deadline, method, most, whole)
        except OperatorError:
            self.close()
            raise
        except TimeoutError:
            self.close()
            raise OperatorFault(f"no answer within {seconds:g} s (timeout)") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise OperatorFault(f"the connection failed: {type(error).__name__}: {error}".rstrip(": ")) from None

    def _opened(self, deadline: float) -> socket.socket:
        target = self._target
        made = _connected(target, deadline)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not target.is_secure:
            return made
        try:
            made.settimeout(_left(deadline))
            return trusting(target.ca_file).wrap_socket(made, server_hostname=target.host)
        except BaseException:
            made.close()
            raise

    def _exchanged(
        self, to: socket.socket, request: bytes, deadline: float, method: str, most: int, whole: bool
    ) -> Answer:
        to.settimeout(_left(deadline))
        to.sendall(request)
        source = _Source(to, deadline)
        answer = _final(source, method)
        headers = {name.lower(): value for name, value in answer.getheaders()}
        if not 200 <= answer.status < 300:
            self.close()
            return Answer(answer.status, answer.reason, headers, b"")
        try:
            content = _body(answer, most)
        except (OperatorError, OSError, http.client.HTTPException, ValueError):
            if whole:
                raise
            self.close()
            return Answer(answer.status, answer.reason, headers, b"")
        if answer.will_close or source.more_was_read():
            self.close()
        return Answer(answer.status, answer.reason, headers, content)

    def close(self) -> None:
        """Give the connection up; the next call opens another."""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.close()
        self._socket = None


def _final(source: _Source, method: str) -> http.client.HTTPResponse:
    """The head of the answer, behind those of interim answers (1xx; RFC 9110, section 15.2)."""
    while True:
        answer = http.client.HTTPResponse(source, method=method)  # type: ignore[arg-type]
        answer.begin()
        if not 100 <= answer.status < 200:
            return answer


def _body(answer: http.client.HTTPResponse, most: int) -> bytes:
    """The body of an answer. Raises `OperatorError` where it is longer, or is cut."""
    parts, size = [], 0
    while part := answer.read1(_CHUNK):
        size += len(part)
        if size > most:
            raise OperatorFault(f"its answer has more than {most} bytes")
        parts.append(part)
    if answer.length:
        raise OperatorFault("the connection was closed in the middle of the answer")
    return b"".join(parts)


def _head(target: Target, method: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """The bytes of a request. Raises `ValueError` where a header would end before its time."""
    lines = [f"{method} {target.path} HTTP/1.1", f"Host: {target.authority}", "User-Agent: triplewire"]
    lines += (f"{name}: {value}" for name, value in headers.items())
    if method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines)
    if head.count("\n") >= len(lines) or not all(map(str.isprintable, lines)):
        raise ValueError("a header holds a control character")
    return head.encode("ascii") + b"\r\n\r\n" + body


def _connected(target: Target, deadline: float) -> socket.socket:
    """A connection to an address of the name, which was checked: the name is not looked up again."""
    addresses = checked_addresses(target.host, target.port, allow_private=target.allow_private)
    for address in addresses[:-1]:
        with contextlib.suppress(OSError):
            return connect(address, target.port, time.monotonic() + _left(deadline) / 2)
    return connect(addresses[-1], target.port, deadline)


@lru_cache(maxsize=16)
def trusting(ca_file: str) -> ssl.SSLContext:
    """What verifies certificates: by those of a file, or of the system. Raises `OSError`, of which `ssl.SSLError` is
    one, where the file has none."""
    return ssl.create_default_context(cafile=ca_file or None)


class _Source(io.BufferedReader):
    """A socket as `HTTPResponse` takes it, and the file that it reads from: every read ends by the deadline."""

    def __init__(self, inner: socket.socket, deadline: float) -> None:
        self._socket = inner
        self._timed = _Raw(inner, deadline)
        super().__init__(self._timed, _CHUNK)

    def makefile(self, mode: str) -> object:
        """What is read from, once."""
        return self

    def close(self) -> None:
        """Nothing: the end of an answer is not the end of the connection."""

    def more_was_read(self) -> bool:
        """Whether bytes came with the answer that are no part of it, such as those of a second answer. TLS holds such
        bytes back, too."""
        self._timed.is_done = True
        return bool(self.peek(1)) or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0)


class _Raw(io.RawIOBase):
    def __init__(self, inner: socket.socket, deadline: float) -> None:
        self._inner = inner
        self._deadline = deadline
        self.is_done = False  # the answer has ended, so that nothing more is waited for

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        if self.is_done:
            return None
        self._inner.settimeout(_left(self._deadline))
        return self._inner.recv_into(buffer)


def _left(deadline: float) -> float:
    """The seconds that are left. Raises `TimeoutError` where none are."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left

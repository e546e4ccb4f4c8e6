"""The HTTP client of services, feeds and webhooks: each request ends in time and within bounds, and is sent once.

Redirects are not followed, cookies not kept, and bodies not decompressed: who asks does what of these it needs. Nothing
is sent but what is given and what HTTP needs.
"""

from __future__ import annotations

import datetime as dt
import email.utils
import math
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from triplewire.errors import RequestError
from triplewire.forks import forget_in_children
from triplewire.net.guard import Target

if TYPE_CHECKING:
    import httpcore2

MOST_BYTES = 16 << 20  # of an answer


class Answer(NamedTuple):
    """What a server answers. The names of headers are in lower case."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes

    def seconds_to_wait(self, most: float) -> float:
        """What the header Retry-After asks for, at most so many seconds; 0 without it (RFC 9110, section 10.2.3)."""
        text = self.headers.get("retry-after", "").strip()
        with suppress(ValueError, TypeError, OverflowError):
            if text.isascii() and text.isdecimal():
                return min(float(text), most)
            seconds = (email.utils.parsedate_to_datetime(text) - dt.datetime.now(dt.UTC)).total_seconds()
            return 0.0 if math.isnan(seconds) else max(0.0, min(seconds, most))
        return 0.0


class Client:
    """Asks one target, over at most so many connections, which stay open from request to request. Any number of threads
    may use it. In a fork it has connections of its own."""

    def __init__(self, target: Target, connections: int = 1) -> None:
        self._target = target
        self._connections = connections
        forget_in_children(self)

    @cached_property
    def _pool(self) -> httpcore2.ConnectionPool:
        # imported here because it takes a while, and commands that ask nobody do without
        from triplewire.net.transport import pool_of

        return pool_of(self._target, self._connections)

    def request(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes = b"",
        *,
        seconds: float,
        most: int = MOST_BYTES,
        whole: bool = True,
        path: str = "",
        refusals: bool = False,
    ) -> Answer:
        """One request and its answer, whose body has at most `most` bytes. What is no success (2xx) has no body here:
        it is not read, unless `refusals` are asked for. Raises `RequestError` where there is no whole answer within so
        many seconds. Without `whole`, a success counts from its head on: a body that is too long, is cut or does not
        come in time is left out. `path` takes the place of that of the target.

        A connection that was closed while it lay idle is opened anew; nothing is ever sent twice.
        """
        # imported here for the same reason
        import httpcore2

        from triplewire.net.transport import deadline_in

        target, answer = self._target, None
        scheme = "https" if target.is_secure else "http"
        url = httpcore2.URL(scheme=scheme, host=target.host, port=target.port, target=path or target.path)
        fields = {"Host": target.authority, "User-Agent": "triplewire", **headers}
        try:
            with (
                deadline_in(seconds),
                self._pool.stream(
                    method,
                    url,
                    headers=list(fields.items()),
                    content=body if method == "POST" else None,
                    extensions={"timeout": {"pool": seconds}},
                ) as response,
            ):
                head: dict[str, str] = {}
                for name, value in response.headers:  # of those of one name the last counts, but for a list of links
                    key, text = name.decode("latin-1").lower(), value.decode("latin-1")
                    head[key] = f"{head[key]}, {text}" if key == "link" and key in head else text
                reason = response.extensions["reason_phrase"].decode("latin-1")
                answer = Answer(response.status, reason, head, b"")
                is_read = refusals or 200 <= answer.status < 300
                return answer._replace(body=_body(response, most)) if is_read else answer
        except (RequestError, TimeoutError, OSError, httpcore2.TimeoutException, httpcore2.NetworkError,
                httpcore2.ProtocolError, ValueError) as error:  # fmt: skip
            if answer is not None and not whole:
                return answer
            if isinstance(error, RequestError):
                raise
            if isinstance(error, TimeoutError | httpcore2.TimeoutException):
                raise RequestError(f"no answer within {seconds:g} s (timeout)") from None
            cause = error.args[0] if error.args and isinstance(error.args[0], Exception) else error
            raise RequestError(f"the connection failed: {type(cause).__name__}: {cause}".rstrip(": ")) from None

    def close(self) -> None:
        """Give up all connections; a request that is under way fails, a later one opens others."""
        if "_pool" in self.__dict__:
            self._pool.close()

    def forget(self) -> None:
        """In a fork: the connections are those of the parent."""
        self.__dict__.pop("_pool", None)


def _body(response: httpcore2.Response, most: int) -> bytes:
    """The body of an answer. Raises `RequestError` where it is longer."""
    parts, size = [], 0
    for part in response.iter_stream():
        size += len(part)
        if size > most:
            raise RequestError(f"its answer has more than {most} bytes")
        parts.append(part)
    return b"".join(parts)

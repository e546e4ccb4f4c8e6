"""Gets one feed: a conditional GET (RFC 9110, section 13), redirects, the guard against addresses of one's own network.

Each hop of a redirect is guarded like the first. Nothing is sent along but what HTTP needs: no cookies, no user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urldefrag, urljoin

from triplewire.errors import ReadError
from triplewire.operators.http.connection import MOST_BYTES, Connection
from triplewire.operators.http.declared import target_of
from triplewire.pipeline.connect.webhook import seconds_to_wait
from triplewire.read.names import legal

MOST_HOPS = 5
LONGEST = 24 * 3600.0
"""Seconds that a server may ask us to wait."""

_PERMANENT, _REDIRECTS = {301, 308}, {301, 302, 303, 307, 308}
_ACCEPT = "application/atom+xml, application/rss+xml, application/rdf+xml, application/feed+json, */*;q=0.5"
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=\"?(\d{1,9})")


@dataclass(frozen=True)
class Known:
    """What is known of a feed: its validators, and the address that gave them."""

    etag: str = ""
    modified: str = ""
    of: str = ""


@dataclass(frozen=True)
class Answered:
    """What a server said: a status, a body where that is 200, what to send next time; `moved`, the address to ask from
    now on, where it said so for good; the seconds to `wait`."""

    status: int
    body: bytes = b""
    known: Known = Known()
    moved: str = ""
    wait: float = 0.0


def fetch(address: str, known: Known, settings: Mapping[str, str], seconds: float) -> Answered:
    """Ask for a feed. Raises `OperatorError` where no server answers, or is one that may not be asked, and `ReadError`
    for a redirect that leads nowhere."""
    private = settings.get("allow_private_addresses", "false") == "true"
    at, moved, is_permanent = address, "", True
    for _ in range(MOST_HOPS + 1):
        is_secure = at.startswith("https:")
        try:
            target = target_of(at, private, settings.get("ca_file", "") if is_secure else "")
        except ValueError as error:
            raise ReadError(f"it leads to an address that cannot be asked: {error}", source=address) from None
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip"}
        if known.of == at:
            headers |= {"If-None-Match": known.etag} if known.etag else {}
            headers |= {"If-Modified-Since": known.modified} if known.modified else {}
        connection = Connection(target)
        try:
            answer = connection.exchange("GET", headers, b"", seconds, MOST_BYTES)
        finally:
            connection.close()
        if answer.status not in _REDIRECTS or not answer.headers.get("location"):
            break
        try:
            at = legal(urldefrag(urljoin(at, answer.headers["location"])).url)
        except ValueError as error:
            raise ReadError(f"it leads to what is no address: {error}", source=address) from None
        if is_secure and not at.startswith("https:"):
            raise ReadError("it leads from https to http", source=address, remedy="give the address that it leads to")
        is_permanent = is_permanent and answer.status in _PERMANENT
        moved = at if is_permanent else moved
    else:
        raise ReadError(f"it leads from one address to the next, more than {MOST_HOPS} times", source=address)
    if answer.status == 200 and answer.headers.get("content-encoding", "identity").lower() not in ("identity", "gzip"):
        raise ReadError("it comes in an encoding that was not asked for", source=address)
    age = _MAX_AGE.search(answer.headers.get("cache-control", ""))
    wait = max(seconds_to_wait(answer, LONGEST), min(float(age[1]), LONGEST) if age else 0.0)
    validators = Known(_plain(answer.headers.get("etag")), _plain(answer.headers.get("last-modified")), at)
    return Answered(answer.status, answer.body, known if answer.status == 304 else validators, moved, wait)


def _plain(value: str | None) -> str:
    """A header to be sent back, where it can be."""
    return value if value and value.isascii() and value.isprintable() and len(value) < 1024 else ""

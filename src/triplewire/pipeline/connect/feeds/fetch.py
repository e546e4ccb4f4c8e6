"""Gets one feed: a conditional GET (RFC 9110, section 13), redirects, the guard against addresses of one's own network.

Each hop of a redirect is guarded like the first. Nothing is sent along but what HTTP needs: no cookies, no user.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urldefrag, urljoin, urlsplit

from triplewire.errors import ReadError
from triplewire.operators.http.connection import MOST_BYTES, Connection, Target
from triplewire.operators.http.declared import target_of
from triplewire.pipeline.connect.addresses import Connections
from triplewire.pipeline.connect.feeds.content import in_utf8, is_document
from triplewire.pipeline.connect.webhook import seconds_to_wait
from triplewire.read.names import legal

MOST_HOPS = 5
WELL_KNOWN, LEAST_PORT = {80, 443}, 1024
"""The ports that are asked: these, and those from the least one on; so no feed makes us talk to a server of mail."""

LONGEST = 24 * 3600.0
"""Seconds that a server may ask us to wait."""

_PERMANENT, _REDIRECTS = {301, 308}, {301, 302, 303, 307, 308}
_ACCEPT = "application/atom+xml, application/rss+xml, application/rdf+xml, application/feed+json, */*;q=0.5"
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=\"?(\d{1,9})", re.IGNORECASE)
_ENCODINGS = {"identity", "gzip", "x-gzip"}  # the last is the second (RFC 9110, section 8.4.1.3)


@dataclass(frozen=True)
class Known:
    """What is known of a feed: its validators, and the address that gave them."""

    etag: str = ""
    modified: str = ""
    of: str = ""


@dataclass(frozen=True)
class Answered:
    """What a server said.

    `at`: the address that gave the answer, against which relative links are resolved (RFC 3986, section 5.1.3); `body`:
    where the status is 200; `known`: what to send next time; `moved`: the address to ask from now on, where redirects
    said so for good and a document is there; `is_lasting`: did no temporary redirect lead there? `wait`: seconds.
    """

    status: int
    at: str = ""
    body: bytes = b""
    known: Known = Known()
    moved: str = ""
    is_lasting: bool = True
    wait: float = 0.0


def fetch(address: str, known: Known, connections: Connections, seconds: float) -> Answered:
    """Ask for a feed; each address on the way has the settings of its own. Raises `OperatorError` where no server
    answers, or is one that may not be asked, and `ReadError` for a redirect that leads nowhere."""
    at, moved, is_permanent = address, "", True
    for _ in range(MOST_HOPS + 1):
        is_secure = at.startswith("https:")
        target = _target(at, connections.of(at), address)
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
            # geturl: the scheme in small letters
            at = urlsplit(legal(urldefrag(urljoin(at, answer.headers["location"])).url)).geturl()
        except ValueError as error:
            raise ReadError(f"it leads to what is no address: {error}", source=address) from None
        if is_secure and not at.startswith("https:"):
            raise ReadError("it leads from https to http", source=address, remedy="give the address that it leads to")
        is_permanent = is_permanent and answer.status in _PERMANENT
        moved = at if is_permanent else moved
    else:
        raise ReadError(f"it leads from one address to the next, more than {MOST_HOPS} times", source=address)
    if answer.status == 304 and not (known.of == at and (known.etag or known.modified)):
        raise ReadError("it answers 304 to a request that states no version", source=address)
    if answer.status == 200 and answer.headers.get("content-encoding", "identity").lower() not in _ENCODINGS:
        raise ReadError("it comes in an encoding that was not asked for", source=address)
    age = _MAX_AGE.search(answer.headers.get("cache-control", ""))
    wait = max(seconds_to_wait(answer, LONGEST), min(float(age[1]), LONGEST) if age else 0.0)
    body = in_utf8(answer.body, answer.headers.get("content-type", "")) if answer.status == 200 else b""
    if moved and not (answer.status == 304 or (answer.status == 200 and is_document(body))):
        moved = ""  # it did not lead to a document
    validators = Known(_plain(answer.headers.get("etag")), _plain(answer.headers.get("last-modified")), at)
    validators = known if answer.status == 304 else validators
    return Answered(answer.status, at, body, validators, moved, is_permanent, wait)


def _target(at: str, settings: Mapping[str, str], address: str) -> Target:
    """What to connect to for a hop of the way from `address`. Raises `ReadError` for what may not be asked."""
    private = settings.get("allow_private_addresses", "false") == "true"
    try:
        target = target_of(at, private, settings.get("ca_file", "") if at.startswith("https:") else "")
    except ValueError as error:
        raise ReadError(f"it leads to an address that cannot be asked: {error}", source=address) from None
    if not private and target.port < LEAST_PORT and target.port not in WELL_KNOWN:
        what = f"it leads to port {target.port}, which is not one of the web"
        raise ReadError(what, source=address, remedy="allow_private_addresses = true allows it")
    return target


def _plain(value: str | None) -> str:
    """A header to be sent back, where it can be."""
    return value if value and value.isascii() and value.isprintable() and len(value) < 1024 else ""

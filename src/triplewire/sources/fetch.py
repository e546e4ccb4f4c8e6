"""Gets one feed: a conditional GET (RFC 9110, section 13), redirects, the guard against addresses of one's own network.

Each hop of a redirect is guarded like the first. Nothing is sent along but what HTTP needs, and the header
Authorization where the settings of that very hop have one: no cookies, no user. What comes is looked at: is it a
document, and in which encoding?
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import urldefrag, urljoin, urlsplit

from triplewire.errors import ReadError
from triplewire.net.addresses import Connections, timeout_of
from triplewire.net.client import MOST_BYTES, Client
from triplewire.net.guard import Target, target_of
from triplewire.read.charsets import HEAD, by_first_bytes, declared, known
from triplewire.read.decoded import Syntax
from triplewire.read.gunzip import gunzip
from triplewire.read.names import legal
from triplewire.read.sniff import sniff

MOST_HOPS = 5
LONGEST = 24 * 3600.0
"""Seconds that a server may ask us to wait."""

_PERMANENT, _REDIRECTS = {301, 308}, {301, 302, 303, 307, 308}
_ACCEPT = "application/atom+xml, application/rss+xml, application/rdf+xml, application/feed+json, */*;q=0.5"
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=\"?(\d{1,9})", re.IGNORECASE)
_STATED = re.compile(r""";\s*charset\s*=\s*["']?\s*([A-Za-z0-9_.:-]{1,40})(?=[\s"';]|\Z)""", re.IGNORECASE)
_DECLARATION = re.compile(rb"^\s*<\?xml\s[^<>]*\?>")
_FEEDS = {Syntax.FEED, Syntax.RSS_1}
_ENCODINGS = {"identity", "gzip", "x-gzip"}  # the last is the second (RFC 9110, section 8.4.1.3)


@dataclass(frozen=True)
class Known:
    """What is known of a feed: its validators, and the address that gave them."""

    etag: str = ""
    modified: str = ""
    address: str = ""


@dataclass(frozen=True)
class Answered:
    """What a server said.

    `address`: the one that gave the answer, against which relative links are resolved (RFC 3986, section 5.1.3);
    `body`: where the status is 200; `known`: what to send next time; `moved`: the address to ask from now on, where
    redirects said so for good and a document is there; `is_lasting`: did no temporary redirect lead there? `wait`:
    seconds that the server asks for until the next request; `link`: the header Link.
    """

    status: int
    address: str = ""
    body: bytes = b""
    known: Known = Known()
    moved: str = ""
    is_lasting: bool = True
    wait: float = 0.0
    link: str = ""


def fetch(address: str, known: Known, connections: Connections, seconds: float) -> Answered:
    """Ask for a feed; each address on the way has the settings of its own. Each answer has its `timeout`, else so many
    seconds. Raises `RequestError` where no server answers, or is one that may not be asked, and `ReadError` for a
    redirect that leads nowhere."""
    hop, moved, is_permanent = address, "", True
    for _ in range(MOST_HOPS + 1):
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip"}
        if known.address == hop:
            headers |= {"If-None-Match": known.etag} if known.etag else {}
            headers |= {"If-Modified-Since": known.modified} if known.modified else {}
        settings = connections.of(hop)
        headers |= {"Authorization": settings["authorization"]} if settings.get("authorization") else {}
        with closing(Client(_target(hop, settings, address))) as client:
            answer = client.request("GET", headers, seconds=timeout_of(settings, seconds))
        if answer.status not in _REDIRECTS or not answer.headers.get("location"):
            break
        hop = _next_hop(hop, answer.headers["location"], address)
        is_permanent = is_permanent and answer.status in _PERMANENT
        moved = hop if is_permanent else moved
    else:
        raise ReadError(f"it leads from one address to the next, more than {MOST_HOPS} times", source=address)
    if answer.status == 304 and not (known.address == hop and (known.etag or known.modified)):
        raise ReadError("it answers 304 to a request that states no version", source=address)
    if answer.status == 200 and answer.headers.get("content-encoding", "identity").lower() not in _ENCODINGS:
        raise ReadError("it comes in an encoding that was not asked for", source=address)
    age = _MAX_AGE.search(answer.headers.get("cache-control", ""))
    wait = max(answer.seconds_to_wait(LONGEST), min(float(age[1]), LONGEST) if age else 0.0)
    body = with_encoding(answer.body, answer.headers.get("content-type", "")) if answer.status == 200 else b""
    if moved and not (answer.status == 304 or (answer.status == 200 and is_document(body))):
        moved = ""  # it did not lead to a document
    if answer.status != 304:
        known = Known(_plain(answer.headers.get("etag")), _plain(answer.headers.get("last-modified")), hop)
    return Answered(answer.status, hop, body, known, moved, is_permanent, wait, answer.headers.get("link", ""))


def _next_hop(hop: str, location: str, address: str) -> str:
    """Where a redirect leads on the way from `address`. Raises `ReadError` for what is no address, or not as safe."""
    try:
        # geturl: the scheme in small letters
        following = urlsplit(legal(urldefrag(urljoin(hop, location)).url)).geturl()
    except ValueError as error:
        raise ReadError(f"it leads to what is no address: {error}", source=address) from None
    if hop.startswith("https:") and not following.startswith("https:"):
        raise ReadError("it leads from https to http", source=address, remedy="give the address that it leads to")
    return following


def _target(hop: str, settings: Mapping[str, str], address: str) -> Target:
    """What to connect to for a hop of the way from `address`. Raises `ReadError` for what may not be asked."""
    private = settings.get("allow_private_addresses", "false") == "true"
    try:
        target = target_of(hop, private, settings.get("ca_file", "") if hop.startswith("https:") else "")
    except ValueError as error:
        raise ReadError(f"it leads to an address that cannot be asked: {error}", source=address) from None
    if not (private or target.has_web_port):
        what = f"it leads to port {target.port}, which is not one of the web"
        raise ReadError(what, source=address, remedy="allow_private_addresses = true allows it")
    return target


def _plain(value: str | None) -> str:
    """A header to be sent back, where it can be."""
    return value if value and value.isascii() and value.isprintable() and len(value) < 1024 else ""


def is_document(body: bytes) -> bool:
    """Is it in a syntax of feeds or RDF? An HTML page, as of a domain that was sold, is not."""
    try:
        return sniff(gunzip(body, MOST_BYTES)) is not Syntax.HTML
    except ReadError:
        return False


def with_encoding(body: bytes, content_type: str) -> bytes:
    """The body, in which the encoding is declared that its server alone states, so that it is read as leniently as one
    that declares it. RFC 7303, section 3, has the server's word take precedence, but servers are often set up to one
    encoding for all. So a body that declares its encoding stays as it is. One that is no XML is in UTF-8 afterwards,
    where it was in the encoding stated."""
    stated = _charset(content_type)
    if not stated:
        return body
    try:
        text = gunzip(body, MOST_BYTES)
        syntax = sniff(text)
    except ReadError:  # its reader says why
        return body
    head = text[:HEAD]
    if by_first_bytes(head) != ("", head) or declared(head.decode("latin-1")) or text.isascii():
        return body
    if syntax in _FEEDS or (syntax is Syntax.RDF_XML and known(stated)):
        return f'<?xml version="1.0" encoding="{stated}"?>'.encode() + _DECLARATION.sub(b"", text, 1)
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        try:
            return text.decode(known(stated) or "utf-8").encode("utf-8")
        except UnicodeDecodeError:
            return body
    return body


def _charset(content_type: str) -> str:
    """The encoding that a Content-Type states, as it is written; "" where it states none, or UTF-8."""
    match = _STATED.search(content_type)
    return match[1] if match and known(match[1]) != "utf-8" else ""

"""Identifiers: the IRI of a document, and an IRI for any publication id (semantics, section 1)."""

from __future__ import annotations

import ipaddress
import os
import re
from pathlib import Path
from urllib.parse import quote, unquote

INPUT = "urn:triplewire:input"
STDIN = "urn:triplewire:stdin"

# RFC 3987, 2.2. Characters above ASCII: ucschar, and iprivate in queries.
_UCS = "\xa0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 15)
)
_PRIVATE = "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"
_PLAIN = rf"A-Za-z0-9._~!$&'()*+,;={_UCS}-"  # iunreserved and sub-delims
_HEX = "%[0-9A-Fa-f]{2}"
_ABSOLUTE = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*+:"
    rf"(?://(?:(?:[{_PLAIN}:]|{_HEX})*@)?(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?:[{_PLAIN}]|{_HEX})*+)(?::[0-9]*+)?(?=[/?#]|\Z)"
    rf"|(?!//))"
    rf"(?:[{_PLAIN}:@/]|{_HEX})*+(?:\?(?:[{_PLAIN}{_PRIVATE}:@/?]|{_HEX})*+)?(?:#(?:[{_PLAIN}:@/?]|{_HEX})*+)?"
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")  # two letters at least: `C:` is a drive
_ILLEGAL = re.compile(rf"%(?![0-9A-Fa-f]{{2}})|[^{_PLAIN}:@/?%]")


def is_absolute(text: str) -> bool:
    """Is it an absolute IRI (RFC 3987)?"""
    match = _ABSOLUTE.fullmatch(text)
    if match is None or match["v6"] is None:
        return match is not None
    try:
        return bool(ipaddress.IPv6Address(match["v6"]))
    except ValueError:
        return False


def document_iri(source: str) -> str:
    """The IRI of the document that was read from `source`: a path, an IRI, or "" for bytes without a name."""
    if not source:
        return INPUT
    if source.startswith("file:"):
        path = "/" + source.removeprefix("file:").lstrip("/")
        return "file://" + quote(unquote(path, errors="surrogateescape"), errors="surrogateescape")
    if _SCHEME.match(source):
        return legal(source)
    return "file://" + quote(os.fsencode(Path(os.path.abspath(source)).as_posix()))


def legal(address: str) -> str:
    """`address` with everything percent-encoded that an IRI may not hold where it stands; brackets stay in a host."""
    host = re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*", address)
    start = host.end() if host and is_absolute(host[0]) else 0
    before, mark, fragment = address[start:].partition("#")
    return address[:start] + _encoded(before) + mark + _encoded(fragment.replace("#", "%23"))


def _encoded(text: str) -> str:
    return _ILLEGAL.sub(lambda m: quote(m[0], safe="", errors="surrogatepass"), text)


def id_iri(identifier: str) -> str:
    """`identifier` where it is an absolute IRI, else a percent-encoded URN."""
    if is_absolute(identifier):
        return identifier
    return "urn:triplewire:id:" + quote(identifier, safe="", errors="surrogatepass")

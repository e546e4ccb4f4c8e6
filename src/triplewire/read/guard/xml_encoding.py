"""Transcodes RDF/XML to UTF-8, so that the guard and the parser see the same bytes (security page, X6).

Feeds are transcoded by feedparser, which knows more encodings: `triplewire.read.feeds.xml_tree`.
"""

from __future__ import annotations

import codecs
import re

from triplewire.errors import ReadError

_DECLARATION = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["'][^>]*\?>""")
_KNOWN = {"utf-8", "ascii", "iso8859-1", "utf-16"} | {f"cp125{n}" for n in range(9)}


def to_utf8(data: bytes) -> bytes:
    """The document in UTF-8, with a declaration that says so.

    Line numbers stay. Raises `ReadError` if it cannot be decoded.
    """
    encoding, data = _by_first_bytes(data)
    if encoding:
        data = _decode(data, encoding).encode("utf-8")
    match = _DECLARATION.match(data)
    if match is None:
        return data if encoding else _decode(data, "utf-8").encode("utf-8")
    declared = match[1].decode("ascii")
    try:
        name = codecs.lookup(declared).name
    except LookupError:
        name = ""
    if name not in _KNOWN and not name.startswith("utf-16"):
        raise ReadError(f"the encoding {declared!r} is not read", line=1, remedy="save the document as UTF-8")
    if not encoding:
        if name.startswith("utf-16"):
            raise ReadError(f"the document says {declared}, but its bytes are not", line=1, remedy="save it as UTF-8")
        data = _decode(data, name).encode("utf-8")
    start, end = match.span(1)
    return data[:start] + b"UTF-8" + data[end:]


def _by_first_bytes(data: bytes) -> tuple[str, bytes]:
    """The encoding that the first bytes show ("" for none), and the document without its byte order mark."""
    for mark, encoding in (
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):
        if data.startswith(mark):
            return encoding, data[len(mark) :]
    if data.startswith(b"<\x00"):
        return "utf-16-le", data
    if data.startswith(b"\x00<"):
        return "utf-16-be", data
    return "", data


def _decode(data: bytes, encoding: str) -> str:
    """The text. Raises `ReadError` with the line of the first bad byte."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ReadError(
            f"the document is not {encoding.upper()}: byte 0x{data[error.start]:02x}",
            line=line,
            remedy="declare the encoding that it has, or save it as UTF-8",
        ) from None

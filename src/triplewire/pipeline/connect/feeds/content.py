"""What a server says of a document, and what the document says itself: is it one, and in which encoding?"""

from __future__ import annotations

import codecs
import re
from email.message import Message

from triplewire.errors import ReadError
from triplewire.operators.http.connection import MOST_BYTES
from triplewire.read.gunzip import gunzip
from triplewire.read.sniff import ascii_view, sniff

_CHARSETS = re.compile(
    r"iso8859-\d+|cp\d+|koi8-[rut]|mac-\w+|gb\w+|hz|big5\w*|euc_\w+|shift_jis\w*|iso2022_\w+|tis-620"
)
"""Python's names of encodings of texts. Its other codecs, as "unicode_escape", are no encodings of documents."""

_DECLARED = re.compile(rb"<\?xml\s[^>]*?encoding\s*=")
_HEAD = 1024  # bytes in which an XML declaration ends


def is_document(body: bytes) -> bool:
    """Is it in a syntax that is read? An HTML page, as of a domain that was sold, is not."""
    try:
        sniff(gunzip(body, MOST_BYTES))
    except ReadError:
        return False
    return True


def in_utf8(body: bytes, content_type: str) -> bytes:
    """The body in UTF-8 where its server alone says that it is in another encoding.

    RFC 7303, section 3, has the server's word take precedence, but servers are often set up to one encoding for all. So
    a body that declares its encoding, or is UTF-8, stays as it is.
    """
    charset = _charset(content_type)
    if not charset:
        return body
    try:
        text = gunzip(body, MOST_BYTES)
    except ReadError:  # its reader says why
        return body
    if len(ascii_view(text[:_HEAD])) != len(text[:_HEAD]) or _DECLARED.match(text[:_HEAD].lstrip()):
        return body
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        try:
            return text.decode(charset).encode("utf-8")
        except UnicodeDecodeError:
            return body
    return body


def _charset(content_type: str) -> str:
    """The encoding that a Content-Type states; "" where it states none that is known, or UTF-8."""
    header = Message()
    header["content-type"] = content_type
    stated = header.get_param("charset", "")
    try:
        name = codecs.lookup(str(stated)).name
    except LookupError:
        return ""
    return name if _CHARSETS.fullmatch(name) else ""

"""Handles lone surrogates: halves of UTF-16 pairs, which JSON and XML can escape (Unicode 15, D75, D76).

They are no characters, so a document in an RDF syntax is refused (RDF 1.1 Concepts, section 3). Feeds are read as far
as possible: each lone surrogate becomes U+FFFD, and a note says so. RDF parsers refuse most cases by themselves.
"""

from __future__ import annotations

import re
from typing import Any

from triplewire.errors import ReadError
from triplewire.read.guard.place import line_and_column

NOTE = "lone surrogates, which are no characters, were replaced by U+FFFD"
_LONE = re.compile("[\ud800-\udfff]")
_REFERENCE = re.compile(rb"<!\[CDATA\[|&#(?:[xX]0*+[dD][89a-fA-F][0-9a-fA-F]{2}|0*+5[5-7][0-9]{3});")
_ESCAPE = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F])|.)", re.DOTALL)


def refuse_in_json(data: bytes, what: str) -> None:
    """Raises `ReadError` where a JSON text in UTF-8 escapes a lone surrogate. `what` names the syntax."""
    for match in _ESCAPE.finditer(data):
        if match[1]:
            line, column = line_and_column(data, match.start())
            escape = data[match.start() : match.start() + 6].decode("ascii", "replace")
            raise ReadError(
                f"the {what} escape {escape} is half a surrogate pair, no character", line=line, column=column
            )


def replaced_in_xml(data: bytes) -> bytes:
    """An XML feed in UTF-8 with U+FFFD for each character reference to a surrogate. Byte positions stay."""
    pieces, at, position = [], 0, 0  # `at`: what is before it is in the pieces
    while match := _REFERENCE.search(data, position):
        position = match.end()
        if match[0][:1] == b"<":
            position = data.find(b"]]>", position)
            if position < 0:
                break
            continue
        pieces += [data[at : match.start()], _replacement(match[0])]
        at = position
    return b"".join([*pieces, data[at:]]) if pieces else data


def _replacement(written: bytes) -> bytes:
    if written[2:3] in b"xX":
        return written[:-5] + b"FFFD;"
    return written[:-6] + b"65533;" if 0xD800 <= int(written[2:-1]) <= 0xDFFF else written


def replaced(value: Any) -> Any:
    """A text, or a value of JSON, with U+FFFD for each lone surrogate in its texts."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list):
        return list(map(replaced, value))
    if isinstance(value, dict):
        return {replaced(key): replaced(member) for key, member in value.items()}
    return value

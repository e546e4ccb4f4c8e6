"""Handles lone surrogates: halves of UTF-16 pairs, which JSON and XML can escape (Unicode 15, D75, D76).

They are no characters, so a document in an RDF syntax is refused (RDF 1.1 Concepts, section 3). Feeds are read as far
as possible: each lone surrogate becomes U+FFFD, and a note says so. RDF parsers refuse most cases by themselves.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from triplewire.errors import ReadError
from triplewire.read.guard.place import line_and_column

NOTE = "lone surrogates, which are no characters, were replaced by U+FFFD"
_LONE = re.compile("[\ud800-\udfff]")
_REFERENCE = re.compile(rb"<!\[CDATA\[.*?\]\]>|&#(?:[xX]0*+[dD][89a-fA-F][0-9a-fA-F]{2}|0*+5[5-7][0-9]{3});", re.DOTALL)
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
    return _REFERENCE.sub(_replacement, data)


def _replacement(match: re.Match[bytes]) -> bytes:
    written = match[0]
    if written[:1] == b"<":
        return written
    if written[2:3] in b"xX":
        return written[:-5] + b"FFFD;"
    return written[:-6] + b"65533;" if 0xD800 <= int(written[2:-1]) <= 0xDFFF else written


def replaced(value: Any) -> Any:
    """A text, or a dataclass, list or tuple of texts, with U+FFFD for each lone surrogate. Other values stay."""
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, list | tuple):
        return type(value)(map(replaced, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {field.name: replaced(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **changes)
    return value

"""Checks that Turtle and JSON are UTF-8 (security page, J5). A NUL is a legal character in a Turtle string only."""

from __future__ import annotations

import codecs

from triplewire.errors import ReadError
from triplewire.read.guard.place import line_and_column


def check_utf8(data: bytes, what: str) -> bytes:
    """`data` without a byte order mark. Refuses invalid UTF-8; `what` names the syntax."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = line_and_column(data, error.start)
        raise ReadError(
            f"the {what} document is not UTF-8: byte 0x{data[error.start]:02x}",
            line=line,
            column=column,
            remedy="save it as UTF-8",
        ) from None
    return data

"""Checks Turtle and TriG before they are parsed: nesting, and constructs of RDF 1.2 (security page, J2, J3)."""

from __future__ import annotations

import re

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.read.guard.place import line_and_column
from triplewire.read.guard.text import check_utf8

_TOKEN = re.compile(
    rb"'''(?:[^'\\]++|\\.|(?!''')')*'''"
    rb'|"""(?:[^"\\]++|\\.|(?!""")")*"""'
    rb"|'(?:[^'\\\r\n]++|\\.)*+'"
    rb'|"(?:[^"\\\r\n]++|\\.)*+"'
    rb'|<[^<>"{}|^`\x00-\x20]*+>'
    rb"|#[^\r\n]*+"
    rb"|\\."
    rb"|@[A-Za-z0-9-]++|<<|\{\||[\[({]|[\])}]",
    re.DOTALL,
)
_NEW = {b"<<": "a triple term", b"{|": "an annotation"}


def check_turtle(data: bytes, what: str, settings: Settings) -> bytes:
    """`data` without a byte order mark.

    Raises `ReadError` where it nests too deep or needs RDF 1.2. `what` names the syntax.
    """
    data = check_utf8(data, what)
    limit = settings.max_turtle_depth
    opened = sum(data.count(bracket) for bracket in (b"[", b"(", b"{"))
    if opened <= limit and not any(mark in data for mark in (b"<<", b"{|", b"--")):
        return data
    depth = 0
    for match in _TOKEN.finditer(data):
        token = match[0]
        if token in (b"[", b"(", b"{"):
            depth += 1
            if depth > limit:
                line, column = line_and_column(data, match.start())
                raise ReadError(
                    f"the {what} document nests deeper than {limit}",
                    line=line,
                    column=column,
                    remedy="raise max_turtle_depth",
                )
        elif token in (b"]", b")", b"}"):
            depth = max(depth - 1, 0)
        elif token in _NEW or (token.startswith(b"@") and b"--" in token):
            line, column = line_and_column(data, match.start())
            new = _NEW.get(token, "a base direction")
            raise ReadError(f"{new} is RDF 1.2; this reads RDF 1.1", line=line, column=column)
    return data

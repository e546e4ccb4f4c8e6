"""JSON Lines: a document of JSON-LD or JSON Feed a line, each a publication of its own, in files and in pipes.

A line's id is its `@id` or `id` where that is an IRI, else the document's IRI with `#` and the number of the line.
Text is JSON Lines where its first line is a JSON document and not its only one.
"""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from typing import Any

from triplewire.model.references import is_absolute

_BEGINS = re.compile(rb"\s*[{\[]")
_MOST = 16 << 20  # bytes of a line that is looked into here, outside of the parsing process


def begins_as_json(data: bytes) -> bool:
    """Is its first character one that a document of JSON begins with?"""
    return _BEGINS.match(data.removeprefix(BOM_UTF8)) is not None


def json_lines(data: bytes, first_line: int = 0) -> list[tuple[int, bytes]] | None:
    """The lines of JSON Lines, blank ones left out, with their numbers; None where it is something else. `first_line`:
    of a piece that came through a pipe, the number of its first line, from 1, else 0."""
    if not begins_as_json(data):
        return None
    lines = [(number, line) for number, line in _numbered(data, max(first_line, 1)) if line.strip()]
    return lines if first_line or (len(lines) > 1 and _parsed(lines[0][1]) is not None) else None


def _numbered(data: bytes, first: int) -> list[tuple[int, bytes]]:
    if b"\n" not in data.strip():
        return [(first + len(data) - len(data.lstrip(b"\n")), data)]
    if _parsed(data.lstrip().partition(b"\n")[0]) is None and first == 1:
        return []  # a document of several lines: they are not looked at
    return list(enumerate(data.removeprefix(BOM_UTF8).split(b"\n"), first))


def _parsed(line: bytes) -> Any:
    """The object or list that a line is; None where it is none, or too long to be looked into."""
    if len(line) > _MOST:
        return None
    try:
        value = json.loads(line.removeprefix(BOM_UTF8))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def iri_of_line(line: bytes, number: int, document: str) -> str:
    """The IRI of the document that a line is."""
    value = _parsed(line)
    if isinstance(value, dict):
        for name in ("@id", "id"):
            if isinstance(own := value.get(name), str) and is_absolute(own):
                return own
    return f"{document}#{number}"


class LineCutter:
    """Cuts JSON Lines that come through a pipe: each line is handed on when it has come. Whether the first line is one
    of many, or all there is, is known when more comes, or nothing for a while; what is no JSON Lines is not cut.
    `rest` is what was not handed on."""

    def __init__(self) -> None:
        self.rest = bytearray()
        self.held = self.longest = 0
        self.repeated: tuple[bytes, int] | None = None  # see `pipes`: no line is a part of another
        self._line = 1  # the number of the next line
        self._is_lines: bool | None = None

    def add(self, block: bytes) -> None:
        """Take what has come."""
        self.rest += block

    def complete(self) -> list[tuple[int, bytes]]:
        """The lines that have come, with the number of the first."""
        end = self.rest.rfind(b"\n") + 1
        if self._is_lines is None and end:
            first, _, more = bytes(self.rest).lstrip().partition(b"\n")
            if more.strip() or _parsed(first) is None:
                self._is_lines = _parsed(first) is not None
        if not (self._is_lines and end):
            return []
        lines = bytes(self.rest[:end])
        del self.rest[:end]
        number, self._line = self._line, self._line + lines.count(b"\n")
        return [(number, lines)] if lines.strip() else []

    def quiet(self) -> list[tuple[int, bytes]]:
        """The same, where nothing has come for a while: the first line is a document."""
        if self._is_lines is None and self.rest.strip() and _parsed(bytes(self.rest)) is not None:
            self._is_lines = self.rest.endswith(b"\n") or None
        return self.complete()

    def end(self) -> list[tuple[int, bytes]]:
        """What is left."""
        return [(self._line * bool(self._is_lines), bytes(self.rest))] if self.rest.strip() or self._line == 1 else []

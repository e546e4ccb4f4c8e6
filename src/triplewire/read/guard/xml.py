"""Checks XML before it is parsed: encoding, entities, depth (security page, X1 to X4 and X6).

RDF/XML is walked with Expat, which must find it well-formed. It may not refer to anything outside the document, and
entities must be few, short and flat. A feed may be ill-formed, so its declarations are searched for in the text, and
Expat walks as far as it can. An external document type (`rss-0.91.dtd`) is common in feeds. It is tolerated there and
never fetched.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any
from xml.parsers import expat

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.read import charsets
from triplewire.read.guard.texts import error_at, line_and_column

MAX_ATTRIBUTES = 256  # of one element
_EXPANSION = 1024 * 1024  # bytes that all entity references together may always add
_EXPANSION_FACTOR = 10  # and how many times the document's own size, where that is more
_PREDEFINED = {"lt", "gt", "amp", "apos", "quot"}
_ENTITY = re.compile(
    rb"""<!ENTITY\s++(%\s++)?+([^\s"'>]++)\s*+(SYSTEM\b|PUBLIC\b|"[^"]*+"|'[^']*+')?+""", re.IGNORECASE
)
_REFERENCE = re.compile(rb"&([A-Za-z_:][\w:.-]*+);")


def _in_utf8(data: bytes) -> bytes:
    """The document in UTF-8, with a declaration that says so, so that the guard and the parser see the same bytes. Line
    numbers stay. Raises `ReadError` if it cannot be decoded."""
    encoding, data = charsets.by_first_bytes(data)
    if encoding:
        data = _decode(data, encoding).encode("utf-8")
    match = charsets.declared(data[: charsets.HEAD].decode("latin-1"))
    if match is None or match.start():
        return data if encoding else _decode(data, "utf-8").encode("utf-8")
    name = charsets.known(match[1])
    is_wide = not name and match[1].lower().startswith(("utf-16", "utf-32"))
    if not (name or is_wide):
        raise ReadError(f"the encoding {match[1]!r} is not read", line=1, remedy="save the document as UTF-8")
    if not encoding:
        if is_wide:
            raise ReadError(f"the document says {match[1]}, but its bytes are not", line=1, remedy="save it as UTF-8")
        data = _decode(data, "utf-8" if charsets.is_utf8_instead(data, name) else name).encode("utf-8")
    start, end = match.span(1)
    return data[:start] + b"UTF-8" + data[end:]


def _decode(data: bytes, encoding: str) -> str:
    """The text. Raises `ReadError` with the line of the first bad byte."""
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"the document is not {encoding.upper()}: byte 0x{data[error.start]:02x}"
        raise ReadError(what, line=line, remedy="declare the encoding that it has, or save it as UTF-8") from None


def check_rdf_xml(data: bytes, settings: Settings) -> bytes:
    """The document in UTF-8, checked. Raises `ReadError`."""
    data = _in_utf8(data)
    if (nul := data.find(b"\x00")) >= 0:
        raise error_at("the RDF/XML document holds a NUL byte", data, nul)
    walk = _Walk(settings)
    try:
        walk.parser.Parse(data, True)
    except expat.ExpatError as error:
        what = f"not well-formed XML: {expat.ErrorString(error.code)}"
        raise ReadError(what, line=error.lineno, column=error.offset + 1) from None
    walk.check_expansion(data)
    return data


def check_feed(data: bytes, settings: Settings) -> dict[str, str]:
    """Refuse a feed in UTF-8 whose declarations or depth pass the limits. Returns the entities that it declares, for
    those who read an ill-formed one. The depth of an ill-formed feed is not looked at: it is repaired, and comes here
    again."""
    entities: dict[str, str] = {}
    start = re.search(rb"<\w", data)
    for count, match in enumerate(_ENTITY.finditer(data, 0, start.start() if start else len(data)), start=1):
        line, column = line_and_column(data, match.start())
        name, value = match[2].decode("utf-8", "replace"), match[3]
        if match[1]:
            raise _refused(f"the parameter entity {name!r} is declared", line, column)
        if value is None or value[:1] not in b"\"'":
            raise _refused(f"the entity {name!r} stands for another file", line, column)
        text = value[1:-1].decode("utf-8", "replace")
        _check_entity(name, text, line, column, count, settings, raw=True)
        entities.setdefault(name, text)  # the first declaration counts
    walk = _Walk(settings, is_feed=True)
    with contextlib.suppress(expat.ExpatError):
        walk.parser.Parse(data, True)
        if walk.refusal is not None:
            raise walk.refusal
    walk.check_expansion(data)
    return entities


def check_expanded(size: int, data: bytes) -> None:
    """Raises `ReadError` where a document is too long once what it declares is written out: so many characters."""
    if size > (limit := _most_expanded(data)):
        what = f"entities and attributes by default make more than {limit:,} bytes of it"
        raise ReadError(what, remedy="write the text out")


def _most_expanded(data: bytes) -> int:
    return max(_EXPANSION, _EXPANSION_FACTOR * len(data))


def _refused(
    what: str, line: int, column: int, remedy: str = "declare plain text entities in the document"
) -> ReadError:
    return ReadError(what, line=line, column=column, remedy=remedy)


def _check_entity(
    name: str, value: str, line: int, column: int, count: int, settings: Settings, *, raw: bool = False
) -> None:
    """One general entity with its text. `raw`: character references in it are not resolved yet."""
    if count > settings.max_entities:
        raise _refused(f"more than {settings.max_entities} entities are declared", line, column, "raise max_entities")
    if len(value.encode("utf-8", "replace")) > settings.max_entity_bytes:
        what = f"the entity {name!r} is longer than {settings.max_entity_bytes:,} bytes"
        raise _refused(what, line, column, "raise max_entity_bytes")
    if raw:
        value = re.sub(r"&#(?:\d+|x[0-9a-fA-F]+);", "", value)
    if "&" in value and name not in _PREDEFINED:
        raise _refused(f"the entity {name!r} refers to other entities", line, column)


class _Walk:
    """An Expat parser whose handlers raise `ReadError` for what the module's docstring says."""

    def __init__(self, settings: Settings, *, is_feed: bool = False) -> None:
        self._settings = settings
        self._is_feed = is_feed
        self.refusal: ReadError | None = None  # for the depth of a feed, which counts if it is well-formed
        self._depth = 0
        self._entities: dict[str, int] = {}
        self.parser = expat.ParserCreate("utf-8")
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.EntityDeclHandler = self._entity
        if not is_feed:
            self.parser.StartDoctypeDeclHandler = self._doctype

    def _place(self) -> tuple[int, int]:
        return self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        limit = self._settings.max_xml_depth
        if self._depth > limit:
            self._refuse(f"elements nest deeper than {limit}", "raise max_xml_depth")
        if len(attributes) > MAX_ATTRIBUTES:
            self._refuse(f"<{name}> has more than {MAX_ATTRIBUTES} attributes", "use elements")

    def _refuse(self, what: str, remedy: str) -> None:
        if self.refusal is None:
            self.refusal = _refused(what, *self._place(), remedy)
        if not self._is_feed:
            raise self.refusal

    def _end(self, name: str) -> None:
        self._depth -= 1

    def _doctype(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        if system is not None:
            remedy = "declare what it needs inside the document"
            raise _refused(f"the document type is in another file, {system!r}", *self._place(), remedy)

    def _entity(
        self, name: str, parameter: bool, value: str | None, base: str | None, system: str | None, *_: Any
    ) -> None:
        if parameter:
            raise _refused(f"the parameter entity {name!r} is declared", *self._place())
        if value is None:
            raise _refused(f"the entity {name!r} stands for another file, {system!r}", *self._place())
        _check_entity(name, value, *self._place(), len(self._entities) + 1, self._settings)
        self._entities.setdefault(name, len(value.encode("utf-8", "replace")))

    def check_expansion(self, data: bytes) -> None:
        """Refuse a document whose entity references together add too many bytes."""
        if not self._entities:
            return
        limit = _most_expanded(data)
        total = 0
        for match in _REFERENCE.finditer(data):
            total += self._entities.get(match[1].decode("utf-8", "replace"), 0)
            if total > limit:
                what = f"entity references expand to more than {limit:,} bytes"
                raise error_at(what, data, match.start(), "write the text out")

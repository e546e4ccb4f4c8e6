"""Rewrites well-formed RDF/XML that pyoxigraph would read otherwise than Expat does.

pyoxigraph's reader of XML knows neither the line ends of XML 1.0 (2.11), nor the values of attributes (3.3.3), nor
attributes by default, and takes the last of two declarations of an entity, where XML takes the first (4.2). It refuses
texts that a comment or a CDATA section parts. What is written has no document type, comment or CDATA section, and says
the same.

Early RSS 1.0 writes `<rdf:li resource="...">` for `<rdf:li rdf:resource="...">`, which RDF/XML (section 6.1.4) allows
to read. Relative `xml:base`, empty `xml:lang` and values of `rdf:parseType` that are none of its own are RDF/XML too.
"""

from __future__ import annotations

import re
from xml.parsers import expat
from xml.sax.saxutils import escape

from triplewire.errors import ReadError
from triplewire.model.references import resolve
from triplewire.model.terms import RDF
from triplewire.read.guard.xml import check_expanded

NO_LANGUAGE = "x-no-language-5c1d93ab"
"""Stands for the empty language tag, which pyoxigraph refuses. No document has it."""

_PARSE_TYPES = frozenset({"Literal", "Resource", "Collection"})
_UNQUALIFIED = frozenset({"about", "resource", "ID"})
_IN_TEXT = {"\r": "&#13;"}
_IN_ATTRIBUTES = {'"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_READ_OTHERWISE = re.compile(
    rb"""<!|\r|=\s*+(?:"[^"<\n\t]*+[\n\t]|'[^'<\n\t]*+[\n\t])"""
    rb"""|xml:base\s*=|xml:lang\s*=\s*(?:""|'')|bagID\s*=|parseType\s*=\s*["'](?!(?:Literal|Resource|Collection)["'])"""
    rb"""|\s(?:about|resource|ID)\s*="""
)


def plain(data: bytes, base: str) -> bytes:
    """The well-formed document in UTF-8, as pyoxigraph reads it right: with absolute `xml:base`, `NO_LANGUAGE` for an
    empty `xml:lang`, "Literal" for an unknown `rdf:parseType` (RDF/XML, 7.2.20), and `about`, `resource` and `ID` in
    RDF's namespace. The attributes of a tag stand in the line in which it began.

    Raises `ReadError` for `rdf:bagID`, which RDF/XML has no more, and where what is declared makes it too long.
    """
    if _READ_OTHERWISE.search(data) is None:
        return data
    writer = _Writer(data, base)
    writer.parser.Parse(data, True)
    return writer.written()


class _Writer:
    """An Expat parser whose handlers write the document. The attributes of XML literals stay as they are."""

    def __init__(self, data: bytes, base: str) -> None:
        self._data = data
        self._parts: list[str] = []
        self._size = 0
        self._lines = 1  # the number of the line that is written
        self._bases = [base]
        self._prefixes: list[frozenset[str]] = [frozenset()]  # those of RDF's namespace
        self._literal = 0  # open elements of an XML literal, the property around it among them
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text

    def written(self) -> bytes:
        """The document."""
        return "".join(self._parts).encode("utf-8")

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._size += len(text)
        check_expanded(self._size, self._data)

    def _text(self, text: str) -> None:
        self._lines += text.count("\n")
        self._write(escape(text, _IN_TEXT))

    def _missing_lines(self) -> str:
        """The line ends that the document has up to here, and that are not written, as within a comment."""
        missing = max(self.parser.CurrentLineNumber - self._lines, 0)
        self._lines += missing
        return "\n" * missing

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        prefixes = self._prefixes[-1]
        for attribute, value in attributes.items():
            if attribute.startswith("xmlns:"):
                prefixes = prefixes - {attribute[6:]} | ({attribute[6:]} if value == RDF else set())
        self._prefixes.append(prefixes)
        self._bases.append(self._bases[-1])
        if self._literal:
            self._literal += 1
        else:
            attributes = dict(self._changed(*pair) for pair in attributes.items())
        written = "".join([f' {name}="{escape(value, _IN_ATTRIBUTES)}"' for name, value in attributes.items()])
        self._write(f"<{name}{self._missing_lines()}{written}>")

    def _changed(self, name: str, value: str) -> tuple[str, str]:
        """The attribute of an element as it is written."""
        prefixes = self._prefixes[-1]
        prefix, _, local = name.rpartition(":")
        if name == "xml:base":
            value = self._bases[-1] = resolve(value, self._bases[-1])
        elif name == "xml:lang" and not value:
            value = NO_LANGUAGE
        elif name in _UNQUALIFIED and prefixes:
            name = f"{min(prefixes)}:{name}"
        elif prefix in prefixes and local == "bagID":
            line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
            raise ReadError("rdf:bagID is no RDF/XML any more", line=line, column=column, remedy="leave it out")
        elif prefix in prefixes and local == "parseType":
            value = value if value in _PARSE_TYPES else "Literal"
            self._literal = int(value == "Literal")
        return name, value

    def _end(self, name: str) -> None:
        self._literal = max(self._literal - 1, 0)
        self._bases.pop()
        self._prefixes.pop()
        self._write(f"</{name}{self._missing_lines()}>")

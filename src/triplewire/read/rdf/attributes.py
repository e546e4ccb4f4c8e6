"""Rewrites attributes that RDF/XML has and pyoxigraph does not take, in documents that the guard has found well-formed.

Early RSS 1.0 writes `<rdf:li resource="...">` for `<rdf:li rdf:resource="...">`, which RDF/XML (section 6.1.4) allows
to read. Relative `xml:base`, empty `xml:lang` and values of `rdf:parseType` that are none of its own are RDF/XML too.
"""

from __future__ import annotations

import re
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

from triplewire.errors import ReadError
from triplewire.model.references import resolve
from triplewire.model.terms import RDF
from triplewire.read.feeds.vocabulary import XML

NO_LANGUAGE = "x-no-language-5c1d93ab"
"""Stands for the empty language tag, which pyoxigraph refuses. No document has it."""

_TAG = re.compile(
    rb"""<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<[A-Za-z_](?:"[^"]*+"|'[^']*+'|[^<>"'])*+>""", re.DOTALL
)
_ATTRIBUTE = re.compile(rb"""(\s)(about|resource|ID)(?=\s*=)|"[^"]*+"|'[^']*+'""")
_RDF = rb"""xmlns:([\w.-]+)\s*=\s*["']http://www\.w3\.org/1999/02/22-rdf-syntax-ns#["']"""

_PARSE_TYPES = frozenset({"Literal", "Resource", "Collection"})
_NOT_TAKEN = re.compile(
    rb"""xml:base\s*=|xml:lang\s*=\s*(?:""|'')|bagID\s*=|parseType\s*=\s*["'](?!(?:Literal|Resource|Collection)["'])"""
)
_START_TAG = re.compile(rb"""<(?:"[^"]*+"|'[^']*+'|[^<>"'])*+>""")
_WRITTEN = re.compile(rb"""(?<=\s)([^\s=<>"'/]++)\s*=\s*("[^"]*+"|'[^']*+')""")


def qualified(data: bytes) -> bytes:
    """The well-formed document with `about`, `resource` and `ID` in RDF's namespace wherever they have no prefix."""
    prefix = re.search(_RDF, data)
    if prefix is None:
        return data
    name = prefix[1] + b":"

    def attribute(match: re.Match[bytes]) -> bytes:
        return match[1] + name + match[2] if match[2] else match[0]

    def tag(match: re.Match[bytes]) -> bytes:
        return match[0] if match[0][1:2] in b"!?" else _ATTRIBUTE.sub(attribute, match[0])

    return _TAG.sub(tag, data)


def adapted(data: bytes, base: str) -> bytes:
    """The well-formed document in UTF-8 with absolute `xml:base`, `NO_LANGUAGE` for an empty `xml:lang`, and "Literal"
    for an unknown `rdf:parseType` (RDF/XML, 7.2.20). Raises `ReadError` for `rdf:bagID`, which RDF/XML has no more."""
    if _NOT_TAKEN.search(data) is None:
        return data
    walk = _Walk(base)
    try:
        walk.parser.Parse(data, True)
    except expat.ExpatError:  # a prefix that is not declared, of which the parser of RDF says more
        return data
    pieces, at = [], 0
    for position, values in walk.changes:
        tag = _START_TAG.match(data, position)
        if tag is not None:  # an entity of the document may hold tags
            pieces += [data[at:position], _changed(tag[0], values)]
            at = tag.end()
    return b"".join([*pieces, data[at:]])


def _changed(tag: bytes, values: dict[str, str]) -> bytes:
    """A start tag with other values of some attributes, which are named as written."""

    def attribute(match: re.Match[bytes]) -> bytes:
        value = values.get(match[1].decode("utf-8"))
        return match[0] if value is None else match[1] + b"=" + quoteattr(value).encode("utf-8")

    return _WRITTEN.sub(attribute, tag)


class _Walk:
    """An Expat parser that collects which attributes of which start tags, by their byte positions, need which values.
    XML literals stay as they are."""

    def __init__(self, base: str) -> None:
        self.changes: list[tuple[int, dict[str, str]]] = []
        self._bases = [base]
        self._literal = 0  # open elements of an XML literal, the property around it among them
        self.parser = expat.ParserCreate("utf-8", " ")
        self.parser.namespace_prefixes = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end

    def _start(self, _: str, attributes: dict[str, str]) -> None:
        base, changes = self._bases[-1], {}
        if self._literal:
            self._literal += 1
            attributes = {}
        for name, value in attributes.items():
            namespace, local, prefix = (*name.split(" "), "", "")[:3]
            if namespace == XML and local == "base":
                base = changes["xml:base"] = resolve(value, base)
            elif namespace == XML and local == "lang" and not value:
                changes["xml:lang"] = NO_LANGUAGE
            elif namespace == RDF and local == "bagID":
                line, column = self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1
                raise ReadError("rdf:bagID is no RDF/XML any more", line=line, column=column, remedy="leave it out")
            elif namespace == RDF and local == "parseType" and value not in _PARSE_TYPES:
                changes[f"{prefix}:parseType"] = value = "Literal"
            if namespace == RDF and local == "parseType" and value == "Literal":
                self._literal = 1
        if changes:
            self.changes.append((self.parser.CurrentByteIndex, changes))
        self._bases.append(base)

    def _end(self, _: str) -> None:
        self._literal = max(self._literal - 1, 0)
        self._bases.pop()

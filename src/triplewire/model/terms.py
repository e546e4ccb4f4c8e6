"""RDF 1.1 terms and triples, their N-Triples notation, and their form in SPARQL 1.1 JSON results.

Terms are equal if they are written alike: `"1"^^xsd:integer` and `"01"^^xsd:integer` are two terms. Comparison
by value is in `triplewire.ir.values.compare`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
XSD_STRING = XSD + "string"
LANG_STRING = RDF + "langString"


@dataclass(frozen=True, slots=True)
class IRI:
    """An absolute IRI, without the angle brackets."""

    value: str

    def __str__(self) -> str:
        return f"<{_escape_iri(self.value)}>"


@dataclass(frozen=True, slots=True)
class BlankNode:
    """A blank node. Its label is local to its publication."""

    label: str

    def __str__(self) -> str:
        return f"_:{self.label}"


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal: lexical form, datatype IRI, and the language tag (lower case) of an rdf:langString."""

    lexical: str
    datatype: str = XSD_STRING
    language: str = ""

    @classmethod
    def tagged(cls, lexical: str, language: str) -> Literal:
        """A language-tagged string. Tags are case-insensitive (RDF 1.1, 3.3), so they are stored in lower case."""
        return cls(lexical, LANG_STRING, language.lower())

    @property
    def has_text(self) -> bool:
        """Is it plain, xsd:string or language-tagged? Only these have words (semantics, section 5)."""
        return self.datatype == XSD_STRING or bool(self.language)

    def __str__(self) -> str:
        quoted = f'"{_escape_string(self.lexical)}"'
        if self.language:
            return f"{quoted}@{self.language}"
        return quoted if self.datatype == XSD_STRING else f"{quoted}^^<{_escape_iri(self.datatype)}>"


Term: TypeAlias = IRI | BlankNode | Literal
Node: TypeAlias = IRI | BlankNode


class Triple(NamedTuple):
    """One edge of a publication's graph."""

    subject: Node
    predicate: IRI
    object: Term

    def __str__(self) -> str:
        return f"{self.subject} {self.predicate} {self.object} ."


RDF_TYPE = IRI(RDF + "type")

_STRING_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_STRING_UNSAFE = re.compile(r'["\\\n\r\t\b\f\x00-\x1f\x7f\ud800-\udfff]')
_IRI_UNSAFE = re.compile(r'[\x00-\x20<>"{}|^`\\\ud800-\udfff]')


def _escape_string(text: str) -> str:
    if not _STRING_UNSAFE.search(text):
        return text
    return _STRING_UNSAFE.sub(lambda m: _STRING_ESCAPES.get(m[0]) or f"\\u{ord(m[0]):04X}", text)


def _escape_iri(text: str) -> str:
    if not _IRI_UNSAFE.search(text):
        return text
    return _IRI_UNSAFE.sub(lambda m: f"\\u{ord(m[0]):04X}", text)


_NOTATION = re.compile(
    r'<(?P<iri>[^<>"\x00-\x20]*)>'
    r"|_:(?P<blank>[^\s<>\"]+)"
    r'|"(?P<text>(?:[^"\\]|\\.)*)"(?:@(?P<tag>[A-Za-z0-9-]+)|\^\^<(?P<type>[^<>"\x00-\x20]*)>)?',
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_UNESCAPED = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def unescape(text: str) -> str:
    """Resolve the escapes of N-Triples and Turtle strings. Raises `ValueError` on any other escape."""

    def character(match: re.Match[str]) -> str:
        code, char = match[1] or match[2], match[3]
        if code:
            return chr(int(code, 16))
        if char not in _UNESCAPED:
            raise ValueError(f"\\{char} is no escape")
        return _UNESCAPED[char]

    return _ESCAPE.sub(character, text) if "\\" in text else text


def parse_term(text: str) -> Term:
    """The term of a text in N-Triples notation, as `str(term)` writes it. Raises `ValueError`."""
    match = _NOTATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:80]!r} is no term in N-Triples notation")
    if match["iri"] is not None:
        return IRI(unescape(match["iri"]))
    if match["blank"] is not None:
        return BlankNode(match["blank"])
    lexical = unescape(match["text"])
    if match["tag"]:
        return Literal.tagged(lexical, match["tag"])
    return Literal(lexical, unescape(match["type"]) if match["type"] else XSD_STRING)


def term_to_json(term: Term) -> dict[str, str]:
    """The term as in SPARQL 1.1 Query Results JSON Format, section 3.2.2."""
    if isinstance(term, IRI):
        return {"type": "uri", "value": term.value}
    if isinstance(term, BlankNode):
        return {"type": "bnode", "value": term.label}
    out = {"type": "literal", "value": term.lexical}
    if term.language:
        out["xml:lang"] = term.language
    elif term.datatype != XSD_STRING:
        out["datatype"] = term.datatype
    return out

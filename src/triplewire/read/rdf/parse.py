"""Parses RDF with pyoxigraph. Runs in the parsing process only, because hostile text can crash the parser.

What is checked before: `triplewire.read.guard`. N-Quads with its malformed lines: `triplewire.read.process.worker`.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from xml.etree.ElementTree import ParseError, canonicalize

import pyoxigraph as ox

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.terms import (
    IRI,
    LANG_STRING,
    RDF,
    XSD_STRING,
    BlankNode,
    Term,
    Triple,
    made_blank,
    made_iri,
    made_literal,
)
from triplewire.read.decoded import Problem, Syntax
from triplewire.read.guard.texts import line_and_column
from triplewire.read.rdf.plain_xml import NO_LANGUAGE, plain
from triplewire.read.rdf.split import Statement

FORMATS = {
    Syntax.N_QUADS: ox.RdfFormat.N_QUADS,
    Syntax.TURTLE: ox.RdfFormat.TURTLE,
    Syntax.TRIG: ox.RdfFormat.TRIG,
    Syntax.RDF_XML: ox.RdfFormat.RDF_XML,
    Syntax.RSS_1: ox.RdfFormat.RDF_XML,
    Syntax.JSON_LD: ox.RdfFormat.JSON_LD,
}

_SHOWN = 100  # characters of a term in a message
_UNTAGGED = "an rdf:langString has a language, and there is none here"
XML_LITERAL = RDF + "XMLLiteral"
_LABEL = re.compile(rb"_:([\w\x80-\xff](?:[\w.\x80-\xff-]*[\w\x80-\xff-])?)")
_NODE_ID = re.compile(rb"""nodeID\s*=\s*["']([\w.\x80-\xff-]*[\w\x80-\xff-])["']""")

_TAG = re.compile(r"""<(?:"[^"]*+"|'[^']*+'|[^<>"'])*+>""")
_ATTRIBUTE = re.compile(r"""(?<!\s)\s++([^\s=<>"'/]++)\s*=\s*(?:"[^"]*+"|'[^']*+')""")


class Terms:
    """Turns the parser's terms into ours, each distinct IRI once, within the limits of `settings`."""

    def __init__(
        self, settings: Settings, labels: frozenset[str] | None = None, syntax: Syntax = Syntax.N_QUADS
    ) -> None:
        """`labels` are the blank node labels written in the document (None: all are). Other nodes become b0, b1 ..."""
        self._is_json = syntax is Syntax.JSON_LD
        self._is_xml = syntax in (Syntax.RDF_XML, Syntax.RSS_1)
        self._iris: dict[str, IRI] = {}
        self._blank: dict[str, BlankNode] = {}
        self._labels = labels
        self._anonymous = (f"b{n}" for n in itertools.count() if labels is None or f"b{n}" not in labels)
        self._max_iri = settings.max_iri_bytes
        self._max_literal = settings.max_literal_bytes

    def term(self, term: object) -> Term:
        """Our term. Raises `ReadError` for one that is over a limit or of RDF 1.2."""
        if isinstance(term, ox.NamedNode):
            value = term.value
            return self._iris.get(value) or self.iri(value)
        if isinstance(term, ox.Literal):
            lexical = term.value
            check_length("literal", lexical, self._max_literal, "max_literal_bytes")
            if term.direction is not None and not self._is_json:  # JSON-LD 1.1, 10.2: RDF drops it
                raise ReadError("a base direction is RDF 1.2; this reads RDF 1.1")
            if term.language and not (self._is_xml and term.language == NO_LANGUAGE):
                return made_literal(lexical, LANG_STRING, term.language.lower())
            datatype = XSD_STRING if term.language else self.iri(term.datatype.value).value
            if datatype == LANG_STRING:
                raise ReadError(_UNTAGGED, remedy='add "@language", or leave "@type" out')
            return made_literal(
                canonical_xml(lexical) if self._is_xml and datatype == XML_LITERAL else lexical, datatype
            )
        if isinstance(term, ox.BlankNode):
            label = term.value
            node = self._blank.get(label)
            if node is None:
                is_written = self._labels is None or label in self._labels
                node = self._blank[label] = made_blank(label if is_written else next(self._anonymous))
            return node
        raise ReadError("a triple term is RDF 1.2; this reads RDF 1.1")

    def iri(self, value: str) -> IRI:
        """An IRI, checked; equal ones are the same object."""
        known = self._iris.get(value)
        if known is None:
            check_length("IRI", value, self._max_iri, "max_iri_bytes")
            known = self._iris[value] = made_iri(value)
        return known

    def statement(self, quad: ox.Quad) -> Statement:
        """A quad as graph name and triple."""
        graph = None if isinstance(quad.graph_name, ox.DefaultGraph) else self.term(quad.graph_name)
        triple = Triple._make((self.term(quad.subject), self.term(quad.predicate), self.term(quad.object)))
        return graph, triple  # type: ignore[return-value]  # a graph name is a node


def canonical_xml(lexical: str) -> str:
    """An XML literal in canonical form (RDF 1.1 XML Syntax, 7.2.17); unchanged if it is not well-formed. The parser
    gives namespaces twice that an outermost element of the literal declares itself."""
    try:
        return canonicalize(f"<x>{lexical}</x>".replace("\r", "&#13;"))[3:-4]
    except ParseError:
        distinct = _TAG.sub(_with_distinct_attributes, lexical)
        return canonical_xml(distinct) if distinct != lexical else lexical


def _with_distinct_attributes(tag: re.Match[str]) -> str:
    """A tag without attributes whose name it has given already."""
    seen: set[str] = set()

    def attribute(match: re.Match[str]) -> str:
        is_first = match[1] not in seen
        seen.add(match[1])
        return match[0] if is_first else ""

    return _ATTRIBUTE.sub(attribute, tag[0])


def check_length(what: str, text: str, limit: int, setting: str) -> None:
    """Raises `ReadError` if `text`, an IRI or a literal, has more than `limit` bytes of UTF-8; it names the setting."""
    if len(text) * 4 > limit:
        size = len(text.encode("utf-8", "replace"))
        if size > limit:
            long = f"the {what} {text[:40]!r}... has {size:,} bytes, the limit is {limit:,}"
            raise ReadError(long, remedy=f"raise {setting}")


def parse(
    data: bytes, syntax: Syntax, base: str, settings: Settings, problems: list[Problem] | None = None
) -> Iterator[Statement]:
    """The statements of a guarded document, in its order. Blank nodes keep the labels of the document. Anonymous ones,
    which the parser labels at random, become b0, b1 ... in order of first occurrence. RDF/XML may have attributes
    without a prefix where there are `problems`, to which a warning is added. Raises `ReadError` with line and column,
    where the parser gives them."""
    if syntax in (Syntax.RDF_XML, Syntax.RSS_1):
        data = plain(data, base, problems)
    pattern = _NODE_ID if syntax in (Syntax.RDF_XML, Syntax.RSS_1) else _LABEL
    labels = frozenset(label.decode("utf-8", "replace") for label in pattern.findall(data))  # or more than these
    terms = Terms(settings, labels, syntax)
    try:
        for quad in ox.parse(data, FORMATS[syntax], base_iri=base):
            yield terms.statement(quad)
    except SyntaxError as error:
        raise _located(syntax_error(error, syntax), data, syntax, base) from None
    except ReadError as error:
        if error.what == _UNTAGGED:  # of JSON-LD; the other syntaxes are refused before
            error.line, error.column = line_and_column(data, max(data.find(b"langString"), 0))
        raise
    except ValueError as error:  # a base that is no IRI
        raise ReadError(f"{base!r} is no base IRI: {error}") from None


def left_out(data: bytes, base: str, read: int) -> tuple[int, str]:
    """How many statements of a JSON-LD document of `read` statements are left out since a term in them is none, and the
    first such term. Properties that no context makes an IRI are no statements (JSON-LD 1.1, 4.1.3)."""

    def statements() -> Iterator[ox.Quad]:
        return ox.parse(data, ox.RdfFormat.JSON_LD, base_iri=base, lenient=True)

    if sum(1 for _ in statements()) == read:
        return 0, ""
    known: dict[str, bool] = {}
    wrong = [
        term
        for quad in statements()
        if ":" in quad.predicate.value
        and (term := next((term for term in quad if not _is_term(term, known)), None)) is not None
    ]
    return len(wrong), str(wrong[0])[:_SHOWN] if wrong else ""


def _is_term(term: object, known: dict[str, bool]) -> bool:
    """Would the parser take it where it is not lenient? `known` are texts of terms of which that is known."""
    if isinstance(term, ox.Literal) and not term.language:
        term = term.datatype
    text = str(term)
    if text not in known:
        try:
            if isinstance(term, ox.Literal):
                ox.Literal("", language=term.language)
            elif isinstance(term, ox.NamedNode | ox.BlankNode):
                type(term)(term.value)
            known[text] = True
        except ValueError:
            known[text] = False
    return known[text]


class _TagByTag:
    """A document of XML that a parser is handed tag by tag, so that it is known which one it has come to."""

    def __init__(self, data: bytes) -> None:
        self._data, self._read = data, 0

    def read(self, size: int) -> bytes:
        begin = self._read
        self._read = min(self._data.find(b">", begin) + 1 or len(self._data), begin + size)
        return self._data[begin : self._read]

    @property
    def tag(self) -> int:
        """Where the last tag begins that was handed out."""
        return max(self._data.rfind(b"<", 0, self._read), 0)


def _located(error: ReadError, data: bytes, syntax: Syntax, base: str) -> ReadError:
    """The error with a position where the parser gives none: that of the text that the error quotes, or of the keyword
    of JSON-LD that it names, if that stands there once; else, in XML, that of the tag where the parser stops."""
    told = [quoted or keyword for quoted, keyword in re.findall(r"'([^']+)'|(@\w+)", error.what)]
    texts = [text for text in (each.encode("utf-8", "replace") for each in told) if data.count(text) == 1]
    if not error.line and texts:
        error.line, error.column = line_and_column(data, data.find(texts[0]))
    elif not error.line and FORMATS[syntax] == ox.RdfFormat.RDF_XML:
        document = _TagByTag(data)
        with suppress(SyntaxError):
            deque(ox.parse(document, ox.RdfFormat.RDF_XML, base_iri=base), 0)  # type: ignore[arg-type]  # it only reads
        error.line, error.column = line_and_column(data, document.tag)
    return error


def syntax_error(error: SyntaxError, syntax: Syntax) -> ReadError:
    """The parser's error as a `ReadError`: its position goes to the fields and out of the message."""
    message = str(error.msg)
    if "LoadDocumentCallback" in message:
        remedy = "put it into the document, or hand in a loader (--context URL=FILE)"
        return ReadError("a context would have to be fetched", remedy=remedy)
    if message.startswith(("Parser error at ", "Parser error between ")):
        message = message.partition(": ")[2] or message
    name = "N-Triples or N-Quads" if syntax is Syntax.N_QUADS else syntax.value
    return ReadError(f"not {name}: {message}", line=error.lineno or 0, column=error.offset or 0)

"""N-Quads and N-Triples, piece by piece: one malformed line costs its own publication, not the file.

A graph that holds a malformed line is refused as a whole when the line still shows the graph's name (its last term, or
none in a line of three terms: the default graph). A line that shows none is refused alone. Every such line has its
record. Pieces are parsed in the parsing process (`parse_lines`); the reader joins them (`Collected`), because the
quads of one graph need not stand together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyoxigraph as ox

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode, Node, Triple, parse_term
from triplewire.read.names import is_absolute
from triplewire.read.rdf import Statement, Terms, syntax_error
from triplewire.read.split import graph_id, too_many
from triplewire.read.syntax import Syntax

PIECE_BYTES = 2 * 1024 * 1024

_LINE_END = re.compile(rb"\r\n|\n|\r")
_TERM = re.compile(
    rb'<[^<>"\s]*+>|_:[^\s<>"]++|"(?:[^"\\]++|\\.)*+"(?:@[A-Za-z0-9-]++|\^\^<[^<>"\s]*+>)?+|[^\s<>"]++|\S'
)
_QUOTED = re.compile(rb'"(?:[^"\\]++|\\.)*+"|<[^<>"\s]*+>')


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A malformed line. `named`: it shows its graph, `graph` (None is the default graph)."""

    error: ReadError
    named: bool
    graph: Node | None


@dataclass(frozen=True, slots=True)
class Piece:
    """What a piece of a file holds: the triples of each graph in order of occurrence, and the malformed lines."""

    graphs: list[tuple[Node | None, list[Triple]]]
    refused: list[RefusedLine]


def pieces(data: bytes, size: int = PIECE_BYTES) -> Iterator[tuple[int, bytes]]:
    """Cut at line ends into pieces of about `size` bytes, each with the number of its first line."""
    start, line = 0, 1
    while start < len(data):
        end = data.find(b"\n", min(start + size, len(data)))
        end = len(data) if end < 0 else end + 1
        piece = data[start:end]
        yield line, piece
        line += piece.count(b"\n")
        start = end


def parse_lines(data: bytes, first_line: int, settings: Settings) -> Piece:
    """Parse one piece. It is parsed as a whole first, and line by line only if that fails."""
    terms = Terms(settings)
    refused: list[RefusedLine] = []
    statements: list[Statement] = []
    try:
        if b"\x00" in data or b"<<" in data:
            raise ReadError("to be looked at line by line")
        statements = [terms.statement(quad) for quad in ox.parse(data, ox.RdfFormat.N_QUADS)]
    except (SyntaxError, ReadError):
        statements = []
        for number, line in enumerate(_LINE_END.split(data), start=first_line):
            try:
                statements.extend(_parse_line(line, terms))
            except ReadError as error:
                error.line = number
                refused.append(_refused(error, line))
    graphs: dict[Node | None, list[Triple]] = {}
    for graph, triple in statements:
        graphs.setdefault(graph, []).append(triple)
    return Piece(list(graphs.items()), refused)


def _parse_line(line: bytes, terms: Terms) -> list[Statement]:
    """The statement of one line, if any."""
    nul = line.find(b"\x00")
    if nul >= 0:
        raise ReadError("the line holds a NUL byte", column=nul + 1)
    if b"<<" in line:
        bare = _QUOTED.sub(lambda m: b"." * len(m[0]), line).partition(b"#")[0]
        if b"<<" in bare:
            raise ReadError("a triple term is RDF 1.2; this reads RDF 1.1", column=bare.index(b"<<") + 1)
    try:
        return [terms.statement(quad) for quad in ox.parse(line, ox.RdfFormat.N_QUADS)]
    except SyntaxError as error:
        found = syntax_error(error, Syntax.N_QUADS)
        found.column = error.offset or 0
        raise found from None


def _refused(error: ReadError, line: bytes) -> RefusedLine:
    tokens = _TERM.findall(line)
    if len(tokens) >= 4 and tokens[-1] == b".":
        if len(tokens) == 4:
            return RefusedLine(error, True, None)
        text = tokens[-2].decode("utf-8", "replace")
        if text.startswith(("<", "_:")):
            try:
                name = parse_term(text)
            except ValueError:
                return RefusedLine(error, False, None)
            if isinstance(name, BlankNode) or (isinstance(name, IRI) and is_absolute(name.value)):
                return RefusedLine(error, True, name)
    return RefusedLine(error, False, None)


@dataclass(slots=True)
class Collected:
    """The pieces of one file, joined."""

    document: str
    source: str
    settings: Settings
    graphs: dict[Node | None, list[Triple]] = field(default_factory=dict)
    refused: list[RefusedLine] = field(default_factory=list)

    def add(self, piece: Piece) -> None:
        """Join the next piece."""
        self.refused.extend(piece.refused)
        for graph, triples in piece.graphs:
            self.graphs.setdefault(graph, []).extend(triples)

    def refusals(self) -> Iterator[tuple[str, ReadError]]:
        """What is refused, each with the id of the publication it costs, or with the file where that is unknown.

        The publications that are refused are dropped. Call it once, before `statements` and `publications`.
        """
        alone = set(self.graphs) <= {None} and not any(line.graph for line in self.refused)
        for line in self.refused:
            if line.named or alone:
                self.graphs.pop(line.graph, None)
                yield graph_id(line.graph, self.document), line.error
            else:
                yield self.source, line.error
        for graph, triples in list(self.graphs.items()):
            if len(triples) > self.settings.max_triples and len(set(triples)) > self.settings.max_triples:
                del self.graphs[graph]
                yield graph_id(graph, self.document), too_many(self.settings)

    def triples(self) -> Iterator[Triple]:
        """All triples that are left, whatever their graph."""
        for triples in self.graphs.values():
            yield from triples

    def publications(self) -> Iterator[Publication]:
        """One publication a graph, in order of first occurrence."""
        for graph, triples in self.graphs.items():
            yield Publication(graph_id(graph, self.document), tuple(dict.fromkeys(triples)), self.source)

"""Parses one piece of an N-Quads or N-Triples file into triples and malformed lines. Runs in the parsing process.

How pieces are joined, and what a malformed line leads to: `triplewire.read.process.pieces`.
"""

from __future__ import annotations

import re
from itertools import islice

import pyoxigraph as ox

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.references import is_absolute
from triplewire.model.terms import IRI, BlankNode, Node, Triple, parse_term
from triplewire.read.process.pieces import RefusedLine
from triplewire.read.rdf.parse import Terms, syntax_error
from triplewire.read.rdf.split import Statement
from triplewire.read.syntax import Syntax

_LINE_END = re.compile(rb"\r\n|\n|\r")
_TERM = re.compile(
    rb'<[^<>"\s]*+>|_:[^\s<>"]++|"(?:[^"\\]++|\\.)*+"(?:@[A-Za-z0-9-]++|\^\^<[^<>"\s]*+>)?+|[^\s<>"]++|\S'
)
LONGEST = 1 << 24  # bytes of a line, and of a token of any syntax: with a longer one pyoxigraph ends with MemoryError
_FEW = 8  # terms, more than a line has that is right
_END = 1 << 16  # bytes at the end of a line, in which its graph is
_QUOTED = re.compile(rb'"(?:[^"\\]++|\\.)*+"|<[^<>"\s]*+>')


def parse_lines(
    data: bytes, first_line: int, settings: Settings
) -> tuple[dict[Node | None, dict[Triple, None]], list[RefusedLine]]:
    """Parse one piece: as a whole, and only if that fails line by line. Gives the distinct triples of each graph, in
    order of occurrence, and the malformed lines.

    `first_line` is the number of its first line.
    """
    terms = Terms(settings)
    refused: list[RefusedLine] = []
    statements: list[Statement] = []
    try:
        if b"<<" in data or len(data) > LONGEST:
            raise ReadError("to be looked at line by line")
        statements = [terms.statement(quad) for quad in ox.parse(data, ox.RdfFormat.N_QUADS)]
    except (SyntaxError, ReadError):
        statements = []
        for number, line in enumerate(_LINE_END.split(data), start=first_line):
            try:
                statements.extend(_parse_line(line, terms))
            except ReadError as error:
                error.line = number
                error.__context__ = None  # with it and the traceback, a line costs 12 KB of memory
                refused.append(_refused(error.with_traceback(None), line))
    graphs: dict[Node | None, dict[Triple, None]] = {}
    for graph, triple in statements:
        graphs.setdefault(graph, {})[triple] = None
    return graphs, refused


def _parse_line(line: bytes, terms: Terms) -> list[Statement]:
    """The statement of one line, if any."""
    if len(line) > LONGEST:
        line = line[: len(_uncommented(line))].strip(b" \t")
        if len(line) > LONGEST:
            raise ReadError(f"the line is longer than {LONGEST:,} bytes")
    if b"<<" in line:
        bare = _uncommented(line)
        if b"<<" in bare:
            raise ReadError("a triple term is RDF 1.2; this reads RDF 1.1", column=bare.index(b"<<") + 1)
    try:
        return [terms.statement(quad) for quad in ox.parse(line, ox.RdfFormat.N_QUADS)]
    except SyntaxError as error:
        refusal = syntax_error(error, Syntax.N_QUADS)
        refusal.column = error.offset or 0
        raise refusal from None


def _uncommented(line: bytes) -> bytes:
    """The line up to its comment, with dots for its IRIs and literals."""
    return _QUOTED.sub(lambda m: b"." * len(m[0]), line).partition(b"#")[0]


def _refused(error: ReadError, line: bytes) -> RefusedLine:
    """A malformed line, with the name of its graph where the line still shows it."""
    tokens = [token[0] for token in islice(_TERM.finditer(line), _FEW)]
    if len(tokens) == _FEW:  # what is wrong may be long, and the graph is at the end
        tokens += _TERM.findall(line[-_END:])
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

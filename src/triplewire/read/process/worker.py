"""The parsing process: `python -m triplewire.read.process.worker`. `triplewire.read.process.parsing` starts it.

It reads requests on standard input and writes replies on standard output until its input ends. All parsers of untrusted
text run here, so a crash, a hang or too much memory ends this process and refuses one document, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from typing import BinaryIO

import pyoxigraph as ox

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.model.references import is_absolute
from triplewire.model.terms import IRI, BlankNode, Node, Triple, parse_term
from triplewire.read import charsets, guard
from triplewire.read.decoded import CONTAINERS, Decoded, Problem, Syntax, warning
from triplewire.read.embedded import embedded
from triplewire.read.feeds.json_feed import read_json_feed
from triplewire.read.feeds.rss import read_feed, read_rss_1
from triplewire.read.process.frames import (
    HEAD,
    RefusedLine,
    Request,
    embedded_frame,
    error_frame,
    piece_frame,
    publications_frame,
)
from triplewire.read.rdf.lang_strings import with_languages
from triplewire.read.rdf.parse import Terms, left_out, parse, syntax_error
from triplewire.read.rdf.split import Statement, by_graph, by_subject, refuse_in_json


def decode(request: Request) -> Decoded:
    """The publications of a document, and its problems. Raises `ReadError`."""
    guard.check_size(request.data, request.syntax, request.settings)
    return DECODERS[request.syntax](request)


def _turtle(request: Request) -> Decoded:
    return _rdf(request, guard.check_turtle(request.data, request.syntax.value, request.settings))


def _json_ld(request: Request) -> Decoded:
    data, value = guard.check_json(request.data, request.syntax.value, request.settings)
    refuse_in_json(data, request.syntax.value)
    guard.check_contexts(data, value)
    data = with_languages(data, value)
    decoded = _rdf(request, data)
    read = sum(publication.size for publication in decoded.publications)
    count, term = left_out(data, request.base or request.document, read)
    if not count:
        return decoded
    what = f"JSON-LD leaves {count} {'statement' if count == 1 else 'statements'} out: {term} is no term of RDF"
    return Decoded([replace(p, notes=(what,)) for p in decoded.publications], [warning(what)])


def _rdf_xml(request: Request) -> Decoded:
    data = guard.check_rdf_xml(request.data, request.settings)
    decoded = _rdf(request, data, problems := charsets.decoded(request.data).problems)
    notes = tuple(problem.error.what for problem in problems)
    return Decoded([replace(p, notes=notes) for p in decoded.publications] if notes else decoded.publications, problems)


def _rdf(request: Request, data: bytes, problems: list[Problem] | None = None) -> Decoded:
    base = request.base or request.document
    statements = parse(data, request.syntax, base, request.settings, problems)
    if request.split == "subject":
        triples = (triple for _, triple in statements)
        return Decoded(by_subject(triples, request.document, request.source, request.settings))
    publications = by_graph(statements, request.document, request.source, request.settings)
    if not publications and request.syntax is not Syntax.TRIG:
        return Decoded([Publication(request.document, (), request.source)])  # a valid document of an empty graph
    return Decoded(publications)


DECODERS: dict[Syntax, Callable[[Request], Decoded]] = {
    Syntax.TURTLE: _turtle,
    Syntax.TRIG: _turtle,
    Syntax.RDF_XML: _rdf_xml,
    Syntax.JSON_LD: _json_ld,
    Syntax.RSS_1: read_rss_1,
    Syntax.FEED: read_feed,
    Syntax.JSON_FEED: read_json_feed,
}


# --- N-Quads and N-Triples -------------------------------------------------------------------------------------------

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
    order of occurrence, and the malformed lines. `first_line` is the number of its first line."""
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


# --- The process -----------------------------------------------------------------------------------------------------

BATCH_TRIPLES = 20_000  # triples of one frame, about


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Reply to requests until there are no more. The client enforces the time limit; the alarm serves if it ended."""
    while True:
        lengths = requests.read(HEAD.size)
        if len(lengths) < HEAD.size:
            return
        head_length, data_length = HEAD.unpack(lengths)
        request = Request.from_bytes(requests.read(head_length), requests.read(data_length))
        signal.alarm(2 * request.settings.parse_seconds + 1)
        try:
            _answer(request, replies)
        except ReadError as error:
            replies.write(error_frame(error))
        except MemoryError:
            what = f"it takes more memory to parse than allowed, or one token of it has more than {LONGEST:,} bytes"
            replies.write(error_frame(ReadError(what, remedy="raise parse_bytes, or shorten the token")))
        except RecursionError:
            replies.write(error_frame(ReadError("it nests too deeply to be parsed")))
        except Exception as error:  # a defect of a parser refuses the document and does not end the process
            replies.write(error_frame(ReadError(f"it cannot be parsed ({type(error).__name__}: {str(error)[:200]})")))
        replies.flush()
        signal.alarm(0)


def _answer(request: Request, replies: BinaryIO) -> None:
    """Write the frames of one reply. Raises `ReadError`."""
    if request.syntax is Syntax.N_QUADS:
        replies.write(piece_frame(*parse_lines(request.data, request.first_line, request.settings)))
        return
    if request.syntax in CONTAINERS:
        replies.write(embedded_frame(embedded(request)))
        return
    decoded = decode(request)
    batch, size = [], 0
    for publication in decoded.publications:
        batch.append(publication)
        size += len(publication.triples) + 1
        if size >= BATCH_TRIPLES:
            replies.write(publications_frame(batch, end=False))
            batch, size = [], 0
    replies.write(publications_frame(batch, end=True, problems=decoded.problems))


def main() -> None:
    """Limit the address space to the number of bytes in the first argument, redirect other output, and serve."""
    limit = int(sys.argv[1])
    with contextlib.suppress(ValueError, OSError):  # not every system knows the limit, or lets it be set
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the client decides when it ends
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()

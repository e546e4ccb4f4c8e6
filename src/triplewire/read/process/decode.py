"""Turns one document into publications: guard, parser, split. Runs in the parsing process.

`DECODERS` lists the syntaxes. N-Quads is parsed in pieces instead (`triplewire.read.process.lines`). Callers outside
the parsing process use `triplewire.read.documents`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from triplewire.model.publication import Publication
from triplewire.read import guard
from triplewire.read.decoded import Decoded, warning
from triplewire.read.feeds.json_feed import read_json_feed
from triplewire.read.feeds.rss_1 import read_rss_1
from triplewire.read.feeds.rss_atom import read_feed
from triplewire.read.process.frames import Request
from triplewire.read.rdf.parse import left_out, parse
from triplewire.read.rdf.split import by_graph, by_subject
from triplewire.read.rdf.surrogates import refuse_in_json
from triplewire.read.syntax import Syntax


def decode(request: Request) -> Decoded:
    """The publications of a document, and its problems. Raises `ReadError`."""
    guard.check_size(request.data, request.syntax, request.settings)
    return DECODERS[request.syntax](request)


def _turtle(request: Request) -> Decoded:
    data = guard.check_turtle(request.data, request.syntax.value, request.settings)
    return _rdf(request, data)


def _json_ld(request: Request) -> Decoded:
    data, value = guard.check_json(request.data, request.syntax.value, request.settings)
    refuse_in_json(data, request.syntax.value)
    guard.check_contexts(data, value)
    decoded = _rdf(request, data)
    read = sum(publication.size for publication in decoded.publications)
    count, term = left_out(data, request.base or request.document, read)
    if not count:
        return decoded
    what = f"JSON-LD leaves {count} {'statement' if count == 1 else 'statements'} out: {term} is no term of RDF"
    return Decoded([replace(p, notes=(what,)) for p in decoded.publications], [warning(what)])


def _rdf_xml(request: Request) -> Decoded:
    return _rdf(request, guard.check_rdf_xml(request.data, request.settings))


def _rdf(request: Request, data: bytes) -> Decoded:
    base = request.base or request.document
    statements = parse(data, request.syntax, base, request.settings)
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

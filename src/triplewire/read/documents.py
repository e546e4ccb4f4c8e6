"""Reads the publications of one document, given as bytes. Files, folders and streams: `triplewire.read.sources`."""

from __future__ import annotations

import codecs
import dataclasses
from collections.abc import Callable, Iterator

from triplewire.argument_checks import expect, expect_text
from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.model.publication import Publication
from triplewire.read.guard import check_size
from triplewire.read.gunzip import gunzip
from triplewire.read.names import document_iri
from triplewire.read.process.client import CLIENT
from triplewire.read.process.frames import Request
from triplewire.read.process.pieces import Collected, pieces
from triplewire.read.rdf.bundled import BUNDLED_ONLY, ContextLoader
from triplewire.read.rdf.contexts import Loader, with_contexts
from triplewire.read.rdf.split import by_subject
from triplewire.read.rdf.surrogates import replaced
from triplewire.read.sniff import sniff
from triplewire.read.sources import check_reading
from triplewire.read.syntax import Syntax


def read_document(
    data: bytes,
    source: str,
    *,
    base: str = "",
    split: str = "item",
    settings: Settings | None = None,
    on_refusal: Callable[[Refusal], None] | None = None,
    loader: Loader | None = None,
    as_written: bool = False,
    first_line: int = 0,
) -> list[Publication]:
    """The publications of one document, gzipped or not.

    `source` is its path or IRI ("" for none): it becomes `Publication.source` and, as an IRI, the id of a document
    that is one publication. `base` resolves relative IRIs (default: the document's IRI). `split` is "item" (feed items
    and named graphs), "document" (a feed whole) or "subject". `loader` gives JSON-LD contexts; without one, those that
    are not bundled (`triplewire.read.rdf.bundled`) are refused. The limits of `settings` hold for size, nesting,
    triples, terms and the time of parsing. `as_written` leaves the texts of feeds as they are: without types, dates as
    they stand, markup and all (`docs/feeds.md`).

    Raises the first `ReadError`; with `on_refusal` each becomes a `Refusal` instead and the rest is read. What was read
    although it is ill-formed is told to `on_refusal` too, as a `Refusal` of kind "warning", and in `Publication.notes`.
    """
    kinds = (bytes, bytearray, memoryview)
    expect("read_document(data)", data, kinds, "the bytes of a document", "read(path) reads files")
    expect_text("read_document(source)", source)
    check_reading("read_document", split, base, settings, on_refusal, loader)
    settings = settings or Settings()
    document = document_iri(source)
    source = replaced(source)  # a file name may be no UTF-8; the document's IRI keeps its bytes
    publications: list[Publication] = []
    try:
        data = gunzip(bytes(data), settings.max_input_bytes)
        syntax = Syntax.N_QUADS if first_line else sniff(data, source)
        request = Request(b"", syntax, document, source, base, split, settings, first_line, as_written=as_written)
        publications.extend(_publications(data, request, on_refusal, loader))
    except ReadError as error:
        error.source = error.source or source or document
        if on_refusal is None:
            raise
        on_refusal(Refusal.of("publication", source or document, error))
    return publications


def _publications(
    data: bytes, request: Request, on_refusal: Callable[[Refusal], None] | None, loader: Loader | None
) -> Iterator[Publication]:
    """The publications of an unpacked document, parsed in the parsing process; `request` is how to read it."""
    check_size(data, request.syntax, request.settings)
    if request.syntax is Syntax.N_QUADS:
        yield from _lines(data, request, on_refusal)
        return
    if request.syntax is Syntax.JSON_LD:
        data = _with_known_contexts(data, loader, request.base or request.document, request.settings)
    reply = CLIENT.ask(dataclasses.replace(request, data=data))
    if (
        request.syntax is Syntax.JSON_LD
        and b"@" not in data
        and not any(publication.size for publication in reply.publications)
    ):
        raise ReadError(
            "this JSON says nothing: it is no JSON Feed, and JSON-LD without a triple",
            remedy="look whether it is an error message; JSON-LD needs an @context, or IRIs as its names",
        )
    yield from reply.publications
    for problem in reply.problems:
        problem.error.source = request.source or request.document
        if on_refusal is not None:
            on_refusal(problem.refusal(request.source or request.document))
        elif not problem.is_warning:
            raise problem.error


def _with_known_contexts(data: bytes, loader: Loader | None, base: str, settings: Settings) -> bytes:
    """A JSON-LD document with the contexts that it names, where a loader is given, or they are bundled."""
    if loader is None:
        loader = BUNDLED_ONLY
    if isinstance(loader, ContextLoader) and not loader.is_asked(data):
        return data  # what it would have to fetch is refused where it is parsed
    return with_contexts(data, loader, base, settings)


def _lines(data: bytes, request: Request, on_refusal: Callable[[Refusal], None] | None) -> Iterator[Publication]:
    """The publications of an N-Quads or N-Triples document, which is parsed in pieces."""
    data = data.removeprefix(codecs.BOM_UTF8)
    collected = Collected(request.document, request.source, request.settings)
    for line, piece in pieces(data):
        first_line = line + max(request.first_line - 1, 0)
        collected.add(CLIENT.ask(dataclasses.replace(request, data=piece, first_line=first_line)).piece)
    if collected.refused and not request.first_line:
        turtle = _as_turtle(data, request)
        if turtle is not None:
            yield from turtle
            return
    for subject, error in collected.refusals(request.split):
        error.source = request.source or request.document
        if on_refusal is None:
            raise error
        on_refusal(Refusal.of("publication", subject or request.document, error))
    if request.split == "subject":
        yield from by_subject(collected.triples(), request.document, request.source, request.settings)
    else:
        yield from collected.publications()


def _as_turtle(data: bytes, request: Request) -> list[Publication] | None:
    """The publications of a document as Turtle or TriG, where not all of its lines are N-Quads.

    None if it is neither.
    """
    if request.source.lower().removesuffix(".gz").endswith((".nt", ".nq")):
        return None
    if len(data) > request.settings.max_document_bytes:
        return None
    syntax = Syntax.TRIG if b"{" in data else Syntax.TURTLE
    try:
        return CLIENT.ask(dataclasses.replace(request, data=data, syntax=syntax)).publications
    except ReadError as error:
        if error.remedy.startswith("raise "):
            raise
        return None

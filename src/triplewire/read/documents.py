"""Documents from files, folders, standard input, bytes and streams; and the publications of one.

A document is given as bytes. Those that come through a pipe: `triplewire.read.pipes`.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TextIO, TypeAlias

from triplewire.argument_checks import expect, expect_callable, expect_path, expect_text, refuse
from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.folders import entries_of
from triplewire.model.publication import Publication
from triplewire.model.references import is_address
from triplewire.net.addresses import shown
from triplewire.read.decoded import CONTAINERS, Syntax
from triplewire.read.guard import check_size
from triplewire.read.gunzip import gunzip
from triplewire.read.line_documents import iri_of_line, json_lines
from triplewire.read.names import STDIN, document_iri
from triplewire.read.pipes import Document, is_pipe, pieces_of_pipe
from triplewire.read.process.frames import Collected, Reply, Request, pieces
from triplewire.read.process.parsing import CLIENT
from triplewire.read.rdf.contexts import BUNDLED_ONLY, ContextLoader, Loader, with_contexts
from triplewire.read.rdf.split import by_subject, merged, replaced
from triplewire.read.sniff import sniff

Source: TypeAlias = "str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | TextIO"
"""A file, a folder (all files below), `-` (standard input), the bytes of a document, or a stream of one."""

SPLITS = ("item", "document", "subject")

_OF_PICTURES = "operators read it with the publications beside it that name it"
_PIECE = 1 << 20  # bytes of a stream that are read at once
_TEXT = re.compile(r"\A\s*[<{@]|\n")  # a document, not the name of one
_BLANK = re.compile(r'"_:([^"\\\s]+)"')  # a label in JSON-LD
_ENCODING = re.compile(rb"""\A((?:\xef\xbb\xbf)?\s*<\?xml\s[^>]*?encoding\s*=\s*["'])[A-Za-z0-9._-]+""")


def documents(
    *sources: Source,
    settings: Settings,
    on_refusal: Callable[[Refusal], None] | None = None,
    split: str = "item",
) -> Iterator[Document]:
    """Each document of all sources, gzipped or not, as `triplewire.read` takes them. N-Quads that come through a pipe
    are given in pieces of whole graphs, unless `split` joins graphs to subjects (`triplewire.read.pipes`)."""
    for source in sources:
        for name, load in _documents(source, settings, on_refusal, split != "subject"):
            try:
                yield from load()
            except (ReadError, OSError) as error:
                refused = error if isinstance(error, ReadError) else _unreadable(name, error)
                if on_refusal is None:
                    raise refused from None
                on_refusal(Refusal.of("publication", name, refused))


def bytes_of(sources: Iterable[object]) -> int:
    """The bytes of files and folders as they lie there; others, such as streams, count nothing."""
    size = 0
    for source in sources:
        if isinstance(source, bytes):
            size += len(source)
        elif isinstance(source, str | os.PathLike):
            path = os.fspath(source)
            below = (os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
            size += sum(os.path.getsize(file) for file in (path, *below) if os.path.isfile(file))
    return size


def check_sources(where: str, sources: Iterable[object]) -> None:
    """Raises `ArgumentError` where one is no source."""
    remedy = "io.BytesIO(data) and io.StringIO(text) are streams of a text; several sources are read(*sources)"
    for source in sources:
        if isinstance(source, str | os.PathLike):
            expect_path(f"{where}(source)", source)
            if isinstance(source, str) and _TEXT.search(source) and not os.path.exists(source):
                raise refuse(f"{where}(source)", "the path of a file", source, "read(io.StringIO(text)) reads a text")
        elif not isinstance(source, bytes | bytearray | memoryview) and not callable(getattr(source, "read", None)):
            raise refuse(f"{where}(source)", "a path, the bytes of a document, or a stream", source, remedy)


def check_reading(
    where: str,
    split: object,
    base: object = "",
    settings: object = None,
    on_refusal: object = None,
    loader: object = None,
) -> None:
    """Raises `ArgumentError` where an argument of `read` has a wrong type, and `ReadError` where there is no such
    split."""
    if split not in SPLITS:
        raise ReadError(f"there is no split {split!r}", remedy=f"known: {', '.join(SPLITS)}")
    expect_text(f"{where}(base=...)", base)
    if settings is not None:
        expect(f"{where}(settings=...)", settings, Settings, "Settings, or None")
    expect_callable(f"{where}(on_refusal=...)", on_refusal)
    expect_callable(f"{where}(loader=...)", loader)


def _documents(
    source: Source, settings: Settings, on_refusal: Callable[[Refusal], None] | None, cut: bool
) -> Iterator[tuple[str, Callable[[], Iterable[Document]]]]:
    """Each document of a source: its name, and how to get it, or the pieces of it."""
    limit = settings.max_input_bytes
    if isinstance(source, bytes | bytearray | memoryview):
        data = bytes(source)
        yield "", lambda: [Document("", data)]
        return
    if isinstance(source, str | os.PathLike) and source != "-":
        path = Path(source)
        for file, left_out in entries_of(path):
            name = str(file if file is not path else source)
            yield name, partial(_from_file, name, file, limit, left_out)
        return
    stream: Any = sys.stdin.buffer if source == "-" else source
    stream = stream.buffer if isinstance(stream, io.TextIOWrapper) else stream
    name = getattr(stream, "name", "")
    name = STDIN if stream is sys.stdin.buffer else name if isinstance(name, str) else ""
    if cut and is_pipe(stream):
        yield name, lambda: pieces_of_pipe(stream, name, limit, on_refusal)
    else:
        yield name, lambda: [Document(name, _bounded(stream, name, limit))]


def _from_file(name: str, path: Path, limit: int, left_out: str) -> list[Document]:
    if left_out:
        raise ReadError(left_out, source=str(path))
    return [Document(name, file_bytes(path, limit), file=os.path.abspath(path))]


def file_bytes(path: Path, limit: int) -> bytes:
    """What a file holds. Raises `ReadError` where it has more than `limit` bytes, and `OSError`."""
    with path.open("rb") as stream:
        return _bounded(stream, str(path), limit, os.fstat(stream.fileno()).st_size)


def _bounded(stream: Any, name: str, limit: int, expected: int = 0) -> bytes:
    """All bytes of a stream of about the `expected` size; the text of one that gives text, in UTF-8. Room is made for
    what comes, not for what may come."""
    pieces: list[bytes] = []
    room, wanted, is_text = limit + 1, expected + 1, False
    while room > 0 and ((data := stream.read(min(room, wanted))) or data is None):
        if data is None:
            what = "the stream has nothing to give at this moment, which may not be its end"
            raise ReadError(what, source=name, remedy="hand in a stream that waits (os.set_blocking)")
        if isinstance(data, str):
            is_text, data = True, data.encode("utf-8", "surrogatepass")  # the guard refuses what is not UTF-8
        elif not isinstance(data, bytes):
            raise refuse("read(source)", "a stream whose read() gives bytes or text", data)
        pieces.append(data)
        room, wanted = room - len(data), _PIECE
    if room <= 0:
        raise ReadError(f"it has more than {limit:,} bytes", source=name, remedy="raise max_input_bytes")
    whole = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return _ENCODING.sub(rb"\1UTF-8", whole, count=1) if is_text else whole


def _unreadable(name: str, error: OSError) -> ReadError:
    if is_address(name):
        remedy = "hand in what was fetched; triplewire watch, and triplewire.sources, poll feeds"
        return ReadError("this is an address, and nothing is fetched here", source=shown(name), remedy=remedy)
    return ReadError(f"the file cannot be read: {error.strerror or error}", source=name)


# --- The publications of a document ----------------------------------------------------------------------------------


def publications_of(document: Document, **how: Any) -> list[Publication]:
    """The publications of a document of `documents`, read as `read_document` does with these arguments. What they name
    beside the file of the document is attached to them."""
    publications = read_document(document.data, document.name, first_line=document.first_line, **how)
    if document.file:
        for publication in publications:
            publication.with_files_beside(document.file)
    return publications


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
    are not bundled (`triplewire.read.rdf.contexts`) are refused. The limits of `settings` hold for size, nesting,
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
        if not data and not source:
            what = "the document is empty: it has no byte"
            raise ReadError(what, remedy="an empty graph is one where a name says so, as in empty.ttl")
        data = gunzip(bytes(data), settings.max_input_bytes)
        lines = json_lines(data, first_line)
        parts = [(first_line, data)] if lines is None else lines
    except ReadError as error:
        parts, lines = [], None
        _refuse(error, source or document, on_refusal, bytes(data))
    for number, part in parts:
        try:
            syntax = Syntax.N_QUADS if first_line and lines is None else sniff(part, source)
            request = Request(b"", syntax, document, source, base, split, settings, number, as_written=as_written)
            if lines is not None:
                request = replace(request, document=iri_of_line(part, number, document), base=base or document)
            publications.extend(_publications(part, request, on_refusal, loader))
        except ReadError as error:
            if lines is not None:
                error.line = number
            _refuse(error, source or document, on_refusal, part)
    return publications


def read_documents(
    documents: Iterable[tuple[bytes, str]],
    *,
    split: str = "item",
    settings: Settings | None = None,
    on_refusal: Callable[[Refusal], None],
) -> Iterator[list[Publication]]:
    """The publications of each of several documents, given by their bytes and IRIs, which are their bases: what
    `read_document` gives, but faster, as the parsing process gets them together. All are parsed before the first is
    given; `on_refusal` is called for one before that is given."""
    settings = settings or Settings()
    requests = [(data, iri, _whole(data, iri, split, settings)) for data, iri in documents]
    replies = CLIENT.ask_all([request for _, _, request in requests if request is not None])
    for data, iri, request in requests:
        publications: list[Publication] = []
        if request is None:
            publications = read_document(data, iri, base=iri, split=split, settings=settings, on_refusal=on_refusal)
        else:
            try:
                if isinstance(reply := next(replies), ReadError):
                    raise reply
                publications.extend(_of_reply(reply, request, on_refusal))
            except ReadError as error:
                _refuse(error, iri, on_refusal, request.data)
        yield publications


def _whole(data: bytes, source: str, split: str, settings: Settings) -> Request | None:
    """How a document is read by one request; None for one that takes more, or is refused."""
    try:
        data = gunzip(data, settings.max_input_bytes)
        if not data or json_lines(data, 0) is not None:
            return None
        syntax = sniff(data, source)
        if syntax is Syntax.N_QUADS or syntax in CONTAINERS:
            return None
        check_size(data, syntax, settings)
        request = Request(data, syntax, document_iri(source), replaced(source), source, split, settings)
        return _with_contexts(request, None)
    except ReadError:
        return None


def _refuse(error: ReadError, document: str, on_refusal: Callable[[Refusal], None] | None, data: bytes) -> None:
    """Hand on why a document, or a line of JSON Lines, is refused; without somebody who takes it, it is raised. A
    picture is a warning: it may lie beside a publication that names it."""
    error.source = error.source or document
    if on_refusal is None:
        raise error
    from triplewire.operators.families.images import is_picture  # most documents can be read

    if is_picture(data):
        on_refusal(Refusal("warning", document, "", "it is a picture, and no publication", _OF_PICTURES))
    else:
        on_refusal(Refusal.of("publication", document, error))


def _publications(
    data: bytes, request: Request, on_refusal: Callable[[Refusal], None] | None, loader: Loader | None
) -> Iterator[Publication]:
    """The publications of an unpacked document, parsed in the parsing process; `request` is how to read it."""
    check_size(data, request.syntax, request.settings)
    if request.syntax is Syntax.N_QUADS:
        yield from _lines(data, request, on_refusal)
        return
    if request.syntax in CONTAINERS:
        yield from _embedded(data, request, on_refusal, loader)
        return
    request = _with_contexts(replace(request, data=data), loader)
    yield from _of_reply(CLIENT.ask(request), request, on_refusal)


def _with_contexts(request: Request, loader: Loader | None) -> Request:
    """The request, with contexts of JSON-LD in place of their addresses. What the bundled ones and files would have to
    fetch is refused where it is parsed."""
    loader = BUNDLED_ONLY if loader is None else loader
    is_json = request.syntax is Syntax.JSON_LD
    if not is_json or (isinstance(loader, ContextLoader) and not loader.is_asked(request.data)):
        return request
    data = with_contexts(request.data, loader, request.base or request.document, request.settings)
    return replace(request, data=data)


def _of_reply(reply: Reply, request: Request, on_refusal: Callable[[Refusal], None] | None) -> Iterator[Publication]:
    """The publications of a document that was parsed."""
    is_json = request.syntax is Syntax.JSON_LD
    if is_json and b"@" not in request.data and not any(part.size for part in reply.publications):
        what = "this JSON says nothing: it is no JSON Feed, and JSON-LD without a triple"
        remedy = "look whether it is an error message; JSON-LD needs an @context, or IRIs as its names"
        raise ReadError(what, remedy=remedy)
    yield from reply.publications
    for problem in reply.problems:
        problem.error.source = request.source or request.document
        problem.error.line = request.first_line or problem.error.line
        if on_refusal is not None:
            on_refusal(problem.refusal(request.source or request.document))
        elif not problem.is_warning:
            raise problem.error


def _embedded(
    data: bytes, request: Request, on_refusal: Callable[[Refusal], None] | None, loader: Loader | None
) -> list[Publication]:
    """What the documents in a file say together. One of them that is wrong is refused, and the others are read. The
    scripts of a page are one document of JSON-LD: a blank node that two of them name is one (JSON-LD 1.1 API, 8.4)."""
    parts: list[tuple[list[Publication], Container[str]]] = []
    for part in CLIENT.ask(replace(request, data=data)).documents:
        of_part = replace(request, syntax=part.syntax, base=part.base or request.base)
        try:
            named = _BLANK.findall(part.data.decode()) if part.syntax is Syntax.JSON_LD else ()
            parts.append((list(_publications(part.data, of_part, on_refusal, loader)), frozenset(named)))
        except ReadError as error:
            part.place(error)
            _refuse(error, request.source or request.document, on_refusal, part.data)
    return merged(parts, request.settings)


def _lines(data: bytes, request: Request, on_refusal: Callable[[Refusal], None] | None) -> Iterator[Publication]:
    """The publications of an N-Quads or N-Triples document, which is parsed in pieces."""
    data = data.removeprefix(codecs.BOM_UTF8)
    collected = Collected(request.document, request.source, request.settings)
    for line, piece in pieces(data):
        first_line = line + max(request.first_line - 1, 0)
        collected.add(CLIENT.ask(replace(request, data=piece, first_line=first_line)).piece)
    if collected.refused and not request.first_line and (turtle := _as_turtle(data, request)) is not None:
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
    """The publications of a document as Turtle or TriG, where not all of its lines are N-Quads, or None."""
    is_named_lines = request.source.lower().removesuffix(".gz").endswith((".nt", ".nq"))
    if is_named_lines or len(data) > request.settings.max_document_bytes:
        return None
    syntax = Syntax.TRIG if b"{" in data else Syntax.TURTLE
    try:
        return CLIENT.ask(replace(request, data=data, syntax=syntax)).publications
    except ReadError as error:
        if error.remedy.startswith("raise "):
            raise
        return None

"""The messages between the reader and the parsing process: length-prefixed frames of JSON and bytes, never pickles.

A request is a header and the bytes of a document. A reply is one or more frames, of which the last is marked `end`. A
frame is a header, and the triples that it speaks of as bytes (`triplewire.model.packed`), which are checked, but stay
bytes until somebody asks for terms. `triplewire.read.process.parsing` sends requests, `triplewire.read.process.worker`
sends replies.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

from triplewire.child_process import LENGTH
from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.packed import Packed, pack, unpack
from triplewire.model.publication import Publication
from triplewire.model.terms import Node, Triple, parse_term
from triplewire.read.decoded import Embedded, Problem, Syntax
from triplewire.read.rdf.split import graph_id, too_many

# --- Pieces of N-Quads or N-Triples ----------------------------------------------------------------------------------

PIECE_BYTES = 2 * 1024 * 1024
PIECE_LINES = 100_000  # a malformed line takes about 1 KB of the parsing process, until its piece is parsed


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A malformed line. `named` says that it shows its graph, which is `graph` (None: the default graph)."""

    error: ReadError
    named: bool
    graph: Node | None


@dataclass(frozen=True, slots=True)
class Piece:
    """The content of a piece: the distinct triples of each graph in order of occurrence, and the malformed lines."""

    graphs: list[tuple[Node | None, Packed]]
    refused: list[RefusedLine]


def pieces(data: bytes, size: int = PIECE_BYTES) -> Iterator[tuple[int, bytes]]:
    """Cut at line ends into pieces of about `size` bytes and at most `PIECE_LINES` lines, each with the number of its
    first line."""
    start, line = 0, 1
    while start < len(data):
        end = data.find(b"\n", min(start + size, len(data)))
        end = len(data) if end < 0 else end + 1
        piece = data[start:end]
        lines = piece.count(b"\n")
        if lines > PIECE_LINES:
            too_much = piece.split(b"\n", PIECE_LINES)[-1]
            piece, lines = piece[: len(piece) - len(too_much)], PIECE_LINES
        yield line, piece
        line += lines
        start += len(piece)


@dataclass(slots=True)
class Collected:
    """The pieces of one file, joined."""

    document: str
    source: str
    settings: Settings
    graphs: dict[Node | None, list[Packed]] = field(default_factory=dict)
    refused: list[RefusedLine] = field(default_factory=list)

    def add(self, piece: Piece) -> None:
        """Join the next piece."""
        self.refused.extend(piece.refused)
        for graph, triples in piece.graphs:
            self.graphs.setdefault(graph, []).append(triples)

    def refusals(self, split: str) -> Iterator[tuple[str, ReadError]]:
        """The refusals, each with the id of the refused publication, or with the file where that is unknown. Refused
        publications are dropped. Call it once, before `triples` and `publications`."""
        alone = set(self.graphs) <= {None} and not any(line.graph for line in self.refused)
        for line in self.refused:
            if line.named or alone:
                self.graphs.pop(line.graph, None)
                yield self._subject(line.graph), line.error
            else:
                yield self.source, line.error
        if split == "subject":
            return  # the graphs are no publications then
        most = self.settings.max_triples
        for graph, parts in list(self.graphs.items()):
            if sum(part.statements for part in parts) > most and len(_distinct(parts)) > most:
                del self.graphs[graph]
                yield self._subject(graph), too_many(self.settings)

    def _subject(self, graph: Node | None) -> str:
        return self.source if graph is None else graph_id(graph, self.document)

    def triples(self) -> Iterator[Triple]:
        """All triples that are left, whatever their graph."""
        for parts in self.graphs.values():
            yield from _distinct(parts)

    def publications(self) -> Iterator[Publication]:
        """One publication a graph, in order of first occurrence."""
        for graph, parts in self.graphs.items():
            name = graph_id(graph, self.document)
            if len(parts) == 1:
                yield Publication.of_packed(name, parts[0], self.source)
            else:
                yield Publication(name, _distinct(parts), self.source)


def _distinct(parts: list[Packed]) -> tuple[Triple, ...]:
    """The distinct triples of a graph that may lie in several pieces."""
    return tuple(dict.fromkeys(chain.from_iterable(map(unpack, parts))))


# --- Messages --------------------------------------------------------------------------------------------------------

HEAD = struct.Struct(">IQ")  # length of a request's header, length of its document


@dataclass(frozen=True, slots=True)
class Request:
    """A document (or a piece of an N-Quads file, which begins at `first_line`) and how to read it."""

    data: bytes
    syntax: Syntax
    document: str  # the IRI of the document
    source: str = ""
    base: str = ""
    split: str = "item"
    settings: Settings = dataclasses.field(default_factory=Settings)
    first_line: int = 0
    as_written: bool = False

    def to_bytes(self) -> tuple[bytes, bytes]:
        """The header after its two lengths, and the document."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        del fields["data"]
        head = json.dumps(fields | {"syntax": self.syntax.name, "settings": _text_of(self.settings)}).encode()
        return HEAD.pack(len(head), len(self.data)) + head, self.data

    @classmethod
    def from_bytes(cls, head: bytes, data: bytes) -> Request:
        """The request that `to_bytes` wrote."""
        fields = json.loads(head)
        fields["syntax"] = Syntax[fields["syntax"]]
        fields["settings"] = _settings_of(fields["settings"])
        return cls(data, **fields)


@lru_cache(8)
def _text_of(settings: Settings) -> str:
    """Limits as JSON, which are those of the document before: writing them takes as long as reading a small one."""
    return json.dumps(dataclasses.asdict(settings))


@lru_cache(8)
def _settings_of(text: str) -> Settings:
    return Settings(**json.loads(text))


def _added(triples: Iterable[Triple], parts: list[bytes]) -> list[Any]:
    """Add triples to the parts of a frame; returns what the header says of them."""
    packed = pack(tuple(triples))
    parts += packed.text, packed.numbers
    return [len(packed.text), len(packed.numbers), packed.suffixes, packed.terms, packed.literals]


def _node(name: str) -> Any:
    """The graph of a name in a header; None for "", the default graph."""
    return parse_term(name) if name else None


def publications_frame(publications: Iterable[Publication], *, end: bool, problems: Iterable[Problem] = ()) -> bytes:
    """Publications, and problems of their document, as a frame."""
    parts: list[bytes] = []
    rows = [
        [p.id, p.published.isoformat() if p.published else None, list(p.notes), _added(p.triples, parts)]
        for p in publications
    ]
    said = [[_error(problem.error), problem.subject, problem.is_warning] for problem in problems]
    return _frame({"publications": rows, "problems": said, "end": end}, parts)


def piece_frame(graphs: Mapping[Node | None, Iterable[Triple]], refused: Iterable[RefusedLine]) -> bytes:
    """The triples and malformed lines of a piece of an N-Quads file, as a frame."""
    parts: list[bytes] = []
    rows = [[str(graph or ""), _added(triples, parts)] for graph, triples in graphs.items()]
    lines = [[_error(r.error), r.named, str(r.graph or "")] for r in refused]
    return _frame({"graphs": rows, "refused": lines, "end": True}, parts)


def embedded_frame(documents: Iterable[Embedded]) -> bytes:
    """The documents inside a file, as a frame."""
    parts = list(documents)
    rows = [[part.syntax.name, part.line, part.column, part.base, len(part.data)] for part in parts]
    return _frame({"documents": rows, "end": True}, (part.data for part in parts))


def error_frame(error: ReadError) -> bytes:
    """A refusal of the whole document, as the last frame."""
    return _frame({"error": _error(error), "end": True})


def _error(error: ReadError) -> list[Any]:
    return [error.what, error.line, error.column, error.remedy]


def _frame(header: dict[str, Any], parts: Iterable[bytes] = ()) -> bytes:
    said = json.dumps(header, separators=(",", ":")).encode("ascii")
    body = b"".join((LENGTH.pack(len(said)), said, *parts))
    return LENGTH.pack(len(body)) + body


class Reply:
    """The content of a reply, collected frame by frame."""

    def __init__(self, source: str) -> None:
        self.publications: list[Publication] = []
        self.problems: list[Problem] = []
        self.piece = Piece([], [])
        self.documents: list[Embedded] = []
        self.ended = False
        self._source = source
        self._body, self._taken = b"", 0  # a frame, and the bytes of it that were taken

    def take(self, body: bytes) -> None:
        """Add a frame. Raises the `ReadError` that it carries."""
        (length,) = LENGTH.unpack_from(body)
        self._body, self._taken = body, LENGTH.size + length
        header = json.loads(body[LENGTH.size : self._taken])
        self.ended = header["end"]
        if "error" in header:
            raise self._read_error(header["error"])
        for identifier, published, notes, said in header.get("publications", ()):
            instant = dt.datetime.fromisoformat(published) if published else None
            packed = self._packed(said)
            self.publications.append(Publication.of_packed(identifier, packed, self._source, instant, tuple(notes)))
        for syntax, line, column, base, size in header.get("documents", ()):
            self._taken += size
            part = body[self._taken - size : self._taken]
            self.documents.append(Embedded(Syntax[syntax], part, line, column, base))
        self.problems.extend(
            Problem(self._read_error(error), subject, is_warning)
            for error, subject, is_warning in header.get("problems", ())
        )
        self.piece.graphs.extend((_node(graph), self._packed(said)) for graph, said in header.get("graphs", ()))
        self.piece.refused.extend(
            RefusedLine(self._read_error(error), named, _node(graph))
            for error, named, graph in header.get("refused", ())
        )

    def _packed(self, said: list[Any]) -> Packed:
        """The next triples, of which the header says this. Raises `ReadError` where they cannot be."""
        text_bytes, number_bytes, suffixes, terms, literals = said
        middle = self._taken + text_bytes
        text, numbers = self._body[self._taken : middle], self._body[middle : middle + number_bytes]
        self._taken = middle + number_bytes
        packed = Packed(text, numbers, tuple(suffixes), terms, literals)
        try:
            packed.check()
        except (ValueError, TypeError) as error:
            raise ReadError(f"the parsing process gave what cannot be: {error}", source=self._source) from None
        return packed

    def _read_error(self, fields: list[Any]) -> ReadError:
        what, line, column, remedy = fields
        return ReadError(what, source=self._source, line=line, column=column, remedy=remedy)

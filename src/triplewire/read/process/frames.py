"""The messages between the reader and the parsing process: length-prefixed frames of JSON, never pickles.

A request is a header and the bytes of a document. A reply is one or more frames, of which the last is marked `end`. A
frame has a table of distinct terms; a triple is three indexes into it. `triplewire.read.process.client` sends requests,
`triplewire.read.process.worker` sends replies.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, XSD_STRING, BlankNode, Literal, Node, Term, Triple
from triplewire.read.decoded import Problem
from triplewire.read.process.pieces import Piece, RefusedLine
from triplewire.read.syntax import Syntax

HEAD = struct.Struct(">IQ")  # length of a request's header, length of its document
LENGTH = struct.Struct(">Q")  # length of a reply's frame


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
        fields = {
            "syntax": self.syntax.name,
            "document": self.document,
            "source": self.source,
            "base": self.base,
            "split": self.split,
            "settings": dataclasses.asdict(self.settings),
            "first_line": self.first_line,
            "as_written": self.as_written,
        }
        head = json.dumps(fields).encode()
        return HEAD.pack(len(head), len(self.data)) + head, self.data

    @classmethod
    def from_bytes(cls, head: bytes, data: bytes) -> Request:
        """The request that `to_bytes` wrote."""
        fields = json.loads(head)
        fields["syntax"] = Syntax[fields["syntax"]]
        fields["settings"] = Settings(**fields["settings"])
        return cls(data, **fields)


class _Table:
    """Distinct terms, numbered in order of first use. An entry's first character is its kind."""

    def __init__(self) -> None:
        self.entries: list[str] = []
        self._index: dict[Term, int] = {}

    def number(self, term: Term) -> int:
        number = self._index.get(term)
        if number is None:
            number = self._index[term] = len(self.entries)
            self.entries.append(_entry(term))
        return number

    def numbers(self, triples: Iterable[Triple]) -> list[int]:
        number = self.number
        return [number(term) for triple in triples for term in triple]


def _entry(term: Term) -> str:
    """A term as an entry of the table."""
    if isinstance(term, IRI):
        return "<" + term.value
    if isinstance(term, BlankNode):
        return "_" + term.label
    if term.language:
        return f"@{term.language} {term.lexical}"
    return '"' + term.lexical if term.datatype == XSD_STRING else f"^{term.datatype} {term.lexical}"


def _term(entry: str) -> Term:
    """The term of an entry of the table."""
    kind, rest = entry[0], entry[1:]
    if kind == "<":
        return IRI(rest)
    if kind == '"':
        return Literal(rest)
    if kind == "_":
        return BlankNode(rest)
    tag, _, lexical = rest.partition(" ")
    return Literal.tagged(lexical, tag) if kind == "@" else Literal(lexical, tag)


def _triples(numbers: list[int], terms: list[Any]) -> list[Triple]:
    parts = iter([terms[n] for n in numbers])
    return list(map(Triple._make, zip(parts, parts, parts, strict=True)))


def publications_frame(publications: Iterable[Publication], *, end: bool, problems: Iterable[Problem] = ()) -> bytes:
    """Publications, and problems of their document, as a frame."""
    table = _Table()
    rows = [
        [p.id, p.published.isoformat() if p.published else None, list(p.notes), table.numbers(p.triples)]
        for p in publications
    ]
    said = [[_error(problem.error), problem.subject, problem.is_warning] for problem in problems]
    return _frame({"publications": rows, "problems": said, "terms": table.entries, "end": end})


def piece_frame(piece: Piece) -> bytes:
    """The triples and malformed lines of a piece of an N-Quads file, as a frame."""
    table = _Table()

    def node(graph: Node | None) -> int:
        return -1 if graph is None else table.number(graph)

    graphs = [[node(graph), table.numbers(triples)] for graph, triples in piece.graphs]
    refused = [[_error(r.error), r.named, node(r.graph)] for r in piece.refused]
    return _frame({"graphs": graphs, "refused": refused, "terms": table.entries, "end": True})


def error_frame(error: ReadError) -> bytes:
    """A refusal of the whole document, as the last frame."""
    return _frame({"error": _error(error), "end": True})


def _error(error: ReadError) -> list[Any]:
    return [error.what, error.line, error.column, error.remedy]


def _frame(value: dict[str, Any]) -> bytes:
    body = json.dumps(value, separators=(",", ":")).encode("ascii")
    return LENGTH.pack(len(body)) + body


class Reply:
    """The content of a reply, collected frame by frame."""

    def __init__(self, source: str) -> None:
        self.publications: list[Publication] = []
        self.problems: list[Problem] = []
        self.piece = Piece([], [])
        self.ended = False
        self._source = source

    def take(self, body: bytes) -> None:
        """Add a frame. Raises the `ReadError` that it carries."""
        value = json.loads(body)
        self.ended = value["end"]
        if "error" in value:
            raise self._read_error(value["error"])
        terms = [_term(entry) for entry in value["terms"]]
        for identifier, published, notes, numbers in value.get("publications", ()):
            instant = dt.datetime.fromisoformat(published) if published else None
            triples = tuple(_triples(numbers, terms))
            self.publications.append(Publication(identifier, triples, self._source, instant, notes=tuple(notes)))
        self.problems.extend(
            Problem(self._read_error(error), subject, is_warning)
            for error, subject, is_warning in value.get("problems", ())
        )
        node: Callable[[int], Any] = lambda n: None if n < 0 else terms[n]  # noqa: E731  # used twice, below
        self.piece.graphs.extend((node(n), _triples(numbers, terms)) for n, numbers in value.get("graphs", ()))
        self.piece.refused.extend(
            RefusedLine(self._read_error(error), named, node(n)) for error, named, n in value.get("refused", ())
        )

    def _read_error(self, fields: list[Any]) -> ReadError:
        what, line, column, remedy = fields
        return ReadError(what, source=self._source, line=line, column=column, remedy=remedy)

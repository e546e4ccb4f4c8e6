"""Cuts an N-Quads or N-Triples file into pieces, and joins the parsed pieces.

A malformed line refuses its own publication, not the file. A graph that holds such a line is refused as a whole when
the line still shows the graph's name: its last term, or none in a line of three terms, which is the default graph. A
line that shows no graph is refused alone. If the file has no named graph at all, it belongs to the one publication of
the file. Each malformed line is reported.

The quads of one graph may be anywhere in a file, so the whole file is collected before publications are made. How a
piece is parsed: `triplewire.read.process.lines`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.packed import Packed, unpack
from triplewire.model.publication import Publication
from triplewire.model.terms import Node, Triple
from triplewire.read.rdf.split import graph_id, too_many

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
    """The content of a piece of a file: the distinct triples of each graph in order of occurrence, and the malformed
    lines."""

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
            left_over = piece.split(b"\n", PIECE_LINES)[-1]
            piece, lines = piece[: len(piece) - len(left_over)], PIECE_LINES
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
        """The refusals, each with the id of the refused publication, or with the file where that is unknown.

        Refused publications are dropped. Call it once, before `triples` and `publications`.
        """
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

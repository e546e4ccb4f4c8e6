"""N-Quads that come through a pipe, handed on graph by graph while the pipe is still open.

    a graph ends where the lines of another one begin, or where the pipe ends

So each run of lines of one graph is a publication, and a graph that comes again later is another publication of the
same id: what was handed on cannot be taken back. That is told once, as a warning. In a file the lines of a graph may
be anywhere; a pipe whose lines are in no order is written to a file first. Lines without a graph are a run as well.

A malformed line belongs to the graph that it names, else to the run in which it stands. Any other syntax is not cut: as
soon as a line is no N-Quads, and none before it has named a graph, the pipe is read to its end. What files and other
streams give: `triplewire.read.documents`.
"""

from __future__ import annotations

import os
import re
import select
import stat
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from triplewire.errors import ReadError, Refusal
from triplewire.read.names import INPUT

BLOCK = 1 << 22  # bytes that are looked at together, if so many are there
_READ = 1 << 18  # bytes of one read
_WAIT = 5  # milliseconds in which more may come, before what is there is looked at
_MOST_ENDED = 1 << 20  # graphs that are known to have ended; then this begins anew

_NODE = rb'<[^<>"\s]*+>|_:[^\s<>".]++(?:\.++[^\s<>".]++)*+'
_LITERAL = rb'"(?:[^"\\\r\n]++|\\.)*+"(?:@[A-Za-z0-9-]++|\^\^<[^<>"\s]*+>)?+'
_TRIPLE = rb"(?:%b)[ \t]*+<[^<>\"\s]*+>[ \t]*+(?:%b|%b)[ \t]*+" % (_NODE, _NODE, _LITERAL)
_LINE = re.compile(
    rb"[ \t]*+(?:%b(?P<graph>%b)?+[ \t]*+(?P<dot>\.)[ \t]*+)?+(?:#[^\n]*+)?+\r?\n|(?P<odd>[^\n]*+\n)" % (_TRIPLE, _NODE)
)
_TERM = re.compile(rb"%b|%b|[^\s<>\"]++|\S" % (_NODE, _LITERAL))
_FIVE = 5  # a line that names its graph: three terms, the graph and a dot


class Document(NamedTuple):
    """The bytes of a document, gzipped or not, and its name. Of a piece of N-Quads that come through a pipe: the number
    of its first line, from 1. More may come much later, so what is read of a piece is not to wait for it."""

    name: str
    data: bytes
    first_line: int = 0


def is_pipe(stream: Any) -> bool:
    """Is it a pipe, a socket or a terminal, whose reads wait until something is there?"""
    try:
        number = stream.fileno()
        return hasattr(stream, "read1") and not stat.S_ISREG(os.fstat(number).st_mode) and os.get_blocking(number)
    except (OSError, ValueError, AttributeError, TypeError):  # a stream without a file behind it
        return False


def pieces(stream: Any, name: str, limit: int, on_refusal: Callable[[Refusal], None] | None) -> Iterator[Document]:
    """What comes through a pipe: as pieces of whole graphs where it is N-Quads, else in one. Raises `ReadError` where a
    graph, or what is not cut, has more than `limit` bytes."""
    cutter = _Cutter()
    while block := _block(stream):
        for first_line, data in cutter.add(block):
            yield Document(name, data, first_line)
        if cutter.repeated and on_refusal is not None:
            on_refusal(Refusal.of("warning", name or INPUT, cutter.warning(name or INPUT)))
        if len(cutter.held) > limit:
            raise ReadError(f"it has more than {limit:,} bytes", source=name, remedy="raise max_input_bytes")
    yield Document(name, bytes(cutter.held), cutter.first_line if cutter.first_line > 1 else 0)


def _block(stream: Any) -> bytes:
    """What is there of a pipe, after waiting for the first bytes; empty at its end."""
    read: list[bytes] = [stream.read1(_READ)]
    size = len(read[0])
    while read[-1] and size < BLOCK and _has_more(stream):
        read.append(stream.read1(_READ))
        size += len(read[-1])
    return b"".join(read)


def _has_more(stream: Any) -> bool:
    if not hasattr(select, "poll"):  # as on Windows
        return False
    poll = select.poll()
    poll.register(stream.fileno(), select.POLLIN)
    return bool(poll.poll(_WAIT))


class _Cutter:
    """Cuts lines where another graph begins. `held` is what was not given yet, and `first_line` the number of its first
    line. `repeated`: the graph that has come again, and the number of the line; () before one has, and once told."""

    def __init__(self) -> None:
        self.held = bytearray()
        self.first_line = 1
        self.repeated: tuple[bytes, int] | tuple[()] = ()
        self._looked_at = 0  # bytes of `held`
        self._line = 1  # that begins there
        self._graph: bytes | None = None  # of the run that goes on; b"" for lines without a graph
        self._is_quads = False  # has a line named a graph?
        self._is_other = False
        self._ended: set[bytes] = set()  # graphs whose runs have ended
        self._warned = False

    def add(self, block: bytes) -> list[tuple[int, bytes]]:
        """The pieces that are complete, now that this has come, each with the number of its first line. No graph has
        two runs in one piece."""
        begin = len(self.held)
        self.held += block
        end = self.held.rfind(b"\n", begin) + 1
        if not end or self._is_other:
            return []
        base, text = self._looked_at, bytes(self.held[self._looked_at : end])
        cuts: list[tuple[int, int]] = []  # where a piece begins, and its line
        last: tuple[int, int] | None = None  # where the last run begins
        within = {self._graph}  # graphs of the piece
        for match in _LINE.finditer(text):
            graph = self._graph_of(match)
            if self._is_other:
                return []
            if graph is not None and graph != self._graph:
                if self._graph is not None:
                    last = base + match.start(), self._line
                    if self._begins(graph) and graph in within:
                        cuts.append(last)
                        within.clear()
                self._graph = graph
                within.add(graph)
            self._line += 1
        self._looked_at = end
        if last is None:
            return []
        if last not in cuts:
            cuts.append(last)
        pieces: list[tuple[int, bytes]] = []
        start = 0
        for place, line in cuts:
            pieces.append((self.first_line, bytes(self.held[start:place])))
            start, self.first_line = place, line
        del self.held[:start]
        self._looked_at -= start
        return pieces

    def warning(self, name: str) -> ReadError:
        """What is to be told of the graph that came again; told once."""
        graph, line = self.repeated  # type: ignore[misc]  # only where there is one
        self.repeated, self._warned = (), True
        shown = f"the graph {graph.decode('utf-8', 'replace')} comes" if graph else "lines without a graph come"
        what = f"{shown} again behind other graphs; in a pipe that is another publication of the same id"
        return ReadError(what, source=name, line=line, remedy="put its lines together, or give a file")

    def _graph_of(self, match: re.Match[bytes]) -> bytes | None:
        """The graph of a line, b"" for none; None for a line that goes with the run in which it stands."""
        if match["dot"] is not None:
            graph: bytes = match["graph"] or b""
            self._is_quads = self._is_quads or bool(graph)
            return graph
        odd = match["odd"]
        if odd is None:
            return None
        if not self._is_quads and not (self._line == 1 and odd.startswith(BOM_UTF8)):
            self._is_other = True
            return None
        terms = [term[0] for term in islice(_TERM.finditer(odd), _FIVE)]
        named = re.search(rb"(%b)[ \t]*\.\s*\Z" % _NODE, odd) if len(terms) == _FIVE else None
        return named[1] if named is not None else None

    def _begins(self, graph: bytes) -> bool:
        """Note that the run of one graph has ended, and that one of another begins; has that been there before?"""
        assert self._graph is not None
        if len(self._ended) >= _MOST_ENDED:
            self._ended.clear()
        self._ended.add(self._graph)
        again = graph in self._ended
        if again and not self._warned and not self.repeated:
            self.repeated = graph, self._line
        return again

"""N-Quads, N-Triples and JSON Lines that come through a pipe, handed on while the pipe is still open.

    a graph ends where two other graphs have begun since its last line, where nothing comes for `QUIET`, or where the
    pipe ends; a line of JSON Lines is a document (`line_documents`)

So two graphs whose lines alternate stay whole. Graphs are handed on in the order in which they began, each as one
publication. Lines without a graph are a graph as well. One that comes again after its end is another publication of the
same id: what was handed on cannot be taken back. That is told once, as a warning. In a file the lines of a graph may be
anywhere; a pipe whose lines are in no order, or that pauses within a graph, is written to a file first.

A malformed line belongs to the graph that it names, else to that of the line before. Any other syntax is not cut: as
soon as a line is no N-Quads, and none before it has named a graph or was handed on, the pipe is read to its end. What
files and other streams give: `triplewire.read.documents`.
"""

from __future__ import annotations

import os
import re
import select
import stat
from codecs import BOM_UTF8
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from triplewire.errors import ReadError, Refusal
from triplewire.read.line_documents import LineCutter, begins_as_json
from triplewire.read.names import INPUT

BLOCK = 1 << 22  # bytes that are looked at together, if so many are there
_READ = 1 << 18  # bytes of one read
QUIET = 200
"""Milliseconds in which nothing comes, after which all that came is handed on, if its last line is whole."""

_WAIT = 5  # milliseconds in which more may come, before what is there is looked at
_OTHERS = 2  # graphs that begin after the last line of one that has ended
_MOST_ENDED = 1 << 20  # graphs that are known to have ended; then this begins anew

_NODE = rb'<[^<>"\s]*+>|_:[^\s<>".]++(?:\.++[^\s<>".]++)*+'
_LITERAL = rb'"(?:[^"\\\r\n]++|\\.)*+"(?:@[A-Za-z0-9-]++|\^\^<[^<>"\s]*+>)?+'
_TRIPLE = rb"(?:%b)[ \t]*+<[^<>\"\s]*+>[ \t]*+(?:%b|%b)[ \t]*+" % (_NODE, _NODE, _LITERAL)
_LINE = re.compile(
    rb"(?!\Z)(?:[ \t]*+(?:%b(?P<graph>%b)?+[ \t]*+(?P<dot>\.)[ \t]*+)?+(?:#[^\n]*+)?+(?:\r?\n|\Z)|(?P<odd>[^\n]*+\n?))"
    % (_TRIPLE, _NODE)
)
_TERM = re.compile(rb"%b|%b|[^\s<>\"]++|\S" % (_NODE, _LITERAL))
_FIVE = 5  # a line that names its graph: three terms, the graph and a dot


class Document(NamedTuple):
    """The bytes of a document, gzipped or not, and its name. Of a piece of lines that come through a pipe: the number
    of its first line, from 1. More may come much later, so what is read of a piece is not to wait for it. `file`: the
    file of this machine that holds it, "" where none does."""

    name: str
    data: bytes
    first_line: int = 0
    file: str = ""


def is_pipe(stream: Any) -> bool:
    """Is it a pipe, a socket or a terminal, whose reads wait until something is there?"""
    try:
        number = stream.fileno()
        return hasattr(stream, "read1") and not stat.S_ISREG(os.fstat(number).st_mode) and os.get_blocking(number)
    except (OSError, ValueError, AttributeError, TypeError):  # a stream without a file behind it
        return False


def pieces_of_pipe(
    stream: Any, name: str, limit: int, on_refusal: Callable[[Refusal], None] | None
) -> Iterator[Document]:
    """What comes through a pipe: as pieces of whole graphs, or lines, where it is N-Quads or JSON Lines, else in one.
    Raises `ReadError` where a graph, or what is not cut, has more than `limit` bytes, or the graphs that are held have
    more than twice as many."""
    begin, is_told, remedy = b"", False, "raise max_input_bytes"
    while not begin.strip() and (block := _block(stream)) and len(begin) <= limit:
        begin += block
    cutter = LineCutter() if begins_as_json(begin) else _Cutter(limit)
    block = begin
    while block:
        cutter.add(block)
        yield from (Document(name, data, first_line) for first_line, data in cutter.complete())
        if cutter.repeated is not None and on_refusal is not None and not is_told:
            on_refusal(Refusal.of("warning", name or INPUT, _warning(*cutter.repeated, name or INPUT)))
            is_told = True
        if max(cutter.longest, len(cutter.rest)) > limit:
            raise ReadError(f"it has more than {limit:,} bytes", source=name, remedy=remedy)
        if cutter.held > 2 * limit:
            what = f"its graphs that have not ended have more than {2 * limit:,} bytes"
            raise ReadError(what, source=name, remedy=f"{remedy}, put the lines of a graph together, or give a file")
        if not _is_there(stream, QUIET):
            yield from (Document(name, data, first_line) for first_line, data in cutter.quiet())
        block = _block(stream)
    yield from (Document(name, data, first_line) for first_line, data in cutter.end())


def _is_there(stream: Any, milliseconds: int) -> bool:
    """Does something come, or the end, within this time?"""
    if not hasattr(select, "poll"):  # as on Windows
        return True
    poll = select.poll()
    poll.register(stream.fileno(), select.POLLIN)
    return bool(poll.poll(milliseconds))


def _block(stream: Any) -> bytes:
    """What is there of a pipe, after waiting for the first bytes; empty at its end."""
    parts: list[bytes] = [stream.read1(_READ)]
    size = len(parts[0])
    while parts[-1] and size < BLOCK and hasattr(select, "poll") and _is_there(stream, _WAIT):
        parts.append(stream.read1(_READ))
        size += len(parts[-1])
    return b"".join(parts)


@dataclass(slots=True)
class _Graph:
    """What came of a graph: runs of lines, each with the number of its first line and of the line behind it."""

    name: bytes | None  # b"" for lines without a graph; None before the first line that tells
    runs: list[tuple[int, int, bytes]] = field(default_factory=list)
    size: int = 0
    begun: int = 1  # how many graphs had begun when its last line came
    has_ended: bool = False


class _Cutter:
    """Sorts lines by their graphs. `rest` is the line whose end has not come, or all that came where it is not cut;
    `held` counts the bytes of graphs that were not given yet, and `longest` those of the longest graph. `repeated`: the
    first graph that came again, and the number of the line."""

    def __init__(self, limit: int) -> None:
        self.rest = bytearray()
        self.held = self.longest = 0
        self.repeated: tuple[bytes, int] | None = None
        self._limit = limit  # bytes of a piece, but of one graph
        self._line = 1  # the number of the next line
        self._graph = _Graph(None)  # of the line before
        self._begun = 1  # how many graphs have begun
        self._waiting = deque([self._graph])  # those that were not given, in the order in which they began
        self._open: OrderedDict[bytes, _Graph] = OrderedDict()  # those that have not ended, by their last lines
        self._is_quads = False  # has a line named a graph, or was one handed on?
        self._is_other = False
        self._ended: set[bytes] = set()

    def add(self, block: bytes) -> None:
        """Take what has come."""
        begin = len(self.rest)
        self.rest += block
        if (end := self.rest.rfind(b"\n", begin) + 1) and not self._is_other:
            text = bytes(self.rest[:end])
            del self.rest[:end]
            self._sort(text)

    def complete(self, at_end: bool = False) -> list[tuple[int, bytes]]:
        """The graphs that have ended, but for those that began after one that has not, in pieces, each with the number
        of its first line. No graph is twice in one piece."""
        groups: list[list[_Graph]] = []
        names, size = set[bytes | None](), 0
        while self._waiting and (at_end or self._waiting[0].has_ended):
            graph = self._waiting.popleft()
            if not graph.size and self._is_quads:  # nothing has come since all was handed on
                continue
            self.held -= graph.size
            size += graph.size
            if not groups or graph.name in names or size > self._limit:
                groups.append([])
                names, size = set(), graph.size
            groups[-1].append(graph)
            names.add(graph.name)
        return [_piece(graphs) for graphs in groups]

    def quiet(self) -> list[tuple[int, bytes]]:
        """All that came, where nothing has come for a while: its graphs have ended. Nothing where it may be of another
        syntax, or the end of its last line has not come."""
        is_known = self._is_quads or self._graph.name is not None
        if self.rest or self._is_other or not (is_known and self.held):
            return []
        self._is_quads = True
        self._ended.update(self._open)
        self._open.clear()
        pieces = self.complete(at_end=True)
        self._graph = _Graph(None, begun=self._begun)
        self._waiting.append(self._graph)
        return pieces

    def end(self) -> list[tuple[int, bytes]]:
        """What is left. It has no number where it is all that ever came."""
        if not self._is_other:
            text, self.rest = bytes(self.rest), bytearray()
            self._sort(text)
        if self._is_other:
            return [(0, bytes(self.rest))]
        pieces = self.complete(at_end=True)
        return [(0, pieces[0][1])] if len(pieces) == 1 and pieces[0][0] == 1 else pieces

    def _sort(self, text: bytes) -> None:
        """Give lines to their graphs. Where they are of another syntax, all goes back to `rest`."""
        start, first_line = 0, self._line  # of the run that goes on
        for match in _LINE.finditer(text):
            name = self._graph_of(match)
            if self._is_other:
                self.rest[:0] = b"".join(data for _, _, data in self._graph.runs) + text
                self._waiting.clear()
                self.held = self.longest = 0
                return
            if name is not None and name != self._graph.name:
                if self._graph.name is None:
                    self._graph.name = name
                    self._open[name] = self._graph
                    self._look_for_end(name)
                else:
                    self._keep(first_line, text[start : match.start()])
                    start, first_line = match.start(), self._line
                    self._graph = self._open.get(name) or self._new(name)
            self._line += 1
        self._keep(first_line, text[start:])

    def _keep(self, first_line: int, run: bytes) -> None:
        """Add a run of lines to its graph."""
        graph = self._graph
        graph.runs.append((first_line, self._line, run))
        graph.size += len(run)
        self.held += len(run)
        self.longest = max(self.longest, graph.size)
        graph.begun = self._begun
        if graph.name is not None:
            self._open.move_to_end(graph.name)

    def _new(self, name: bytes) -> _Graph:
        """Begin a graph, and end those that end by that."""
        self._begun += 1
        while self._open and next(iter(self._open.values())).begun <= self._begun - _OTHERS:
            ended, graph = self._open.popitem(last=False)
            graph.has_ended = True
            if len(self._ended) >= _MOST_ENDED:
                self._ended.clear()
            self._ended.add(ended)
        self._look_for_end(name)
        self._open[name] = graph = _Graph(name, begun=self._begun)
        self._waiting.append(graph)
        return graph

    def _look_for_end(self, name: bytes) -> None:
        """Note where a graph begins that has ended before."""
        if name in self._ended and self.repeated is None:
            self.repeated = name, self._line

    def _graph_of(self, match: re.Match[bytes]) -> bytes | None:
        """The graph of a line, b"" for none; None for a line that goes with the one before."""
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


def _warning(graph: bytes, line: int, source: str) -> ReadError:
    """What is to be told of the graph that came again."""
    shown = f"the graph {graph.decode('utf-8', 'replace')} comes" if graph else "lines without a graph come"
    what = f"{shown} again after its end, behind other graphs or a pause; that is another publication of the same id"
    return ReadError(what, source=source, line=line, remedy="put its lines together, or give a file")


def _piece(graphs: list[_Graph]) -> tuple[int, bytes]:
    """The lines of some graphs in the order in which they came, with the number of the first one. Lines of other graphs
    between them are empty, so that an error names the right line."""
    runs = sorted(run for graph in graphs for run in graph.runs)
    if not runs:
        return 1, b""
    parts, line = list[bytes](), runs[0][0]
    for first_line, next_line, data in runs:
        parts += b"\n" * (first_line - line), data
        line = next_line
    return runs[0][0], b"".join(parts)

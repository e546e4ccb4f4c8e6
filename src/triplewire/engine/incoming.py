"""Publications on their way from files, Arrow batches and programs to a matcher, a chunk at a time.

N-Quads and N-Triples go from bytes to columns directly where they are plain, and so do Arrow batches
(`triplewire.encode.publications`); everything else, and whatever is malformed or unusual, takes the way through the
guarded readers (`triplewire.read`, `triplewire.encode.schema`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from triplewire.encode.batch import Batch
from triplewire.engine.chunk import Chunk, Rows, Snapshot
from triplewire.engine.compiler import Compiler
from triplewire.engine.result import MatchResult
from triplewire.engine.stats import Clock
from triplewire.errors import ReadError, Refusal
from triplewire.model.publication import Publication
from triplewire.read.decoded import Syntax
from triplewire.read.documents import Source, documents, publications_of
from triplewire.read.gunzip import gunzip_padded
from triplewire.read.line_documents import begins_as_json
from triplewire.read.names import document_iri
from triplewire.read.pipes import Document
from triplewire.read.rdf.contexts import Loader
from triplewire.read.sniff import HEAD, begins_as_lines, sniff

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 1_024  # publications that are encoded together, where they come one by one
ROWS = 1 << 19  # match rows to make in one call: fewer cost time in calls, more cost time in fresh memory
_VERIFIED = 3  # the memory of a verified pair, in match rows
_LEAST, _MOST = 64, 2_048  # publications to match in one call: with fewer, the calls take longer than the work


class ChunkSizer:
    """Chooses how many publications are matched in one call: as many as fill about `ROWS` match rows, estimated from
    the calls before."""

    def __init__(self) -> None:
        self._publications = _LEAST

    def parts(self, chunk: Chunk) -> Iterator[Chunk]:
        """The publications of a chunk, some at a time."""
        first = 0
        while first < len(chunk):
            last = min(first + self._publications, len(chunk))
            yield chunk.part(first, last)
            first = last

    def record(self, publications: int, rows: int, verified: int) -> None:
        """Record the match rows and verified pairs of a call. One of fewer than `_LEAST` publications is ignored."""
        if publications < _LEAST:
            return
        fitting = ROWS * publications // max(rows + _VERIFIED * verified, 1)
        self._publications = max(_LEAST, min(fitting, 4 * self._publications, _MOST))


def chunks_of(
    publications: tuple[Publication, ...] | Iterator[Publication], compiler: Compiler, clock: Clock
) -> Iterable[Chunk]:
    """Publications as chunks, with all that follows from them where entailment is on."""
    if isinstance(publications, tuple) and len(publications) <= CHUNK and compiler.entailment == "none":
        return (Chunk(publications),) if publications else ()
    return _each_chunk(iter(publications), compiler, clock)


def _each_chunk(publications: Iterator[Publication], compiler: Compiler, clock: Clock) -> Iterator[Chunk]:
    while True:
        outer = clock.switch("read")
        try:
            portion = list(islice(publications, CHUNK))
        finally:
            clock.switch(outer)
        if not portion:
            return
        if compiler.entailment == "none":
            yield Chunk(portion)
        else:
            with clock("encode"):
                entailed = [compiler.entailed(publication) for publication in portion]
            yield Chunk(entailed, given=portion)
        if len(portion) < CHUNK:
            return


def chunks_of_files(
    sources: Sequence[Source],
    split: str,
    as_written: bool,
    loader: Loader | None,
    on_refusal: Callable[[Refusal], None] | None,
    compiler: Compiler,
    clock: Clock,
    columnar: bool,
) -> Iterator[Chunk]:
    """The publications of files, folders and streams, as `triplewire.read` reads them; `columnar`: as columns where
    that is possible."""
    settings = compiler.world.settings
    direct = columnar and split == "item" and compiler.entailment == "none"
    waiting: list[Publication] = []

    inputs = documents(*sources, settings=settings, on_refusal=on_refusal, split=split)
    while True:
        with clock("read"):
            document = next(inputs, None)
        if document is None:
            break
        clock.bytes_read += len(document.data)
        batch = _columns(document, compiler, clock) if direct else None
        if batch is not None:
            yield from chunks_of(iter(waiting), compiler, clock)  # the order of the files is kept
            waiting = []
            yield Chunk(batch=batch, source=document.name, file=document.file)
            continue
        with clock("read"):
            waiting += publications_of(
                document, split=split, settings=settings, on_refusal=on_refusal, loader=loader, as_written=as_written
            )
        full = len(waiting) if document.first_line else len(waiting) - len(waiting) % CHUNK
        if full:
            yield from chunks_of(iter(waiting[:full]), compiler, clock)
            del waiting[:full]
    yield from chunks_of(iter(waiting), compiler, clock)


def chunks_of_batches(
    batches: Sequence[pa.RecordBatch],
    compiler: Compiler,
    clock: Clock,
    on_refusal: Callable[[Refusal], None] | None,
    columnar: bool,
) -> Iterator[Chunk]:
    """The publications of Arrow batches; `columnar`: as columns where that is possible. A refused row has its number
    among the rows of all batches."""
    from triplewire.encode.schema import from_batch  # it brings Arrow along, which takes a fifth of a second to load

    settings = compiler.world.settings
    first_record = 1
    for batch in batches:
        whole = _chunk_of_columns(batch, compiler, clock) if columnar else None
        if whole is None:
            rows = from_batch(batch, settings=settings, on_refusal=on_refusal, first_record=first_record)
            yield from chunks_of(rows, compiler, clock)
        else:
            yield whole
        first_record += batch.num_rows


def _chunk_of_columns(rows: pa.RecordBatch, compiler: Compiler, clock: Clock) -> Chunk | None:
    """The publications of an Arrow batch as columns; None where they have to be read one by one."""
    if compiler.entailment != "none":
        return None
    from triplewire.encode.publications import encode_arrow  # compiled kernels, which "reference" does without
    from triplewire.encode.schema import from_batch

    settings = compiler.world.settings
    with clock("encode"):
        batch = encode_arrow(rows, settings)
    if batch is None:
        return None

    def read_publication(number: int) -> Publication:
        return next(from_batch(rows.slice(number, 1), settings=settings))

    return Chunk(batch=batch, read_publication=read_publication)


def _columns(document: Document, compiler: Compiler, clock: Clock) -> Batch | None:
    """A document as columns; None where it has to take the other way."""
    from triplewire.encode.publications import PADDING, encode_nquads  # compiled kernels, as above

    settings, name = compiler.world.settings, document.name
    with clock("read"):
        try:
            text = gunzip_padded(document.data, settings.max_input_bytes, PADDING)
            head = text[: min(HEAD, len(text) - len(PADDING))].tobytes()
            if begins_as_json(head):
                return None
            is_lines = document.first_line or begins_as_lines(head, name)
            if not is_lines and sniff(text[: -len(PADDING)].tobytes(), name) is not Syntax.N_QUADS:
                return None
        except ReadError:
            return None  # the other way says what is wrong
    with clock("encode"):
        return encode_nquads(text, document_iri(name), settings)


def each_matched(
    snapshot: Snapshot,
    chunks: Iterable[Chunk],
    clock: Clock,
    for_more: Callable[[Snapshot, int], Snapshot] = lambda snapshot, publications: snapshot,
) -> Iterator[tuple[Snapshot, Chunk, Rows]]:
    """What a snapshot says of chunks, in parts of so many rows. `for_more` gives the snapshot for the next part, after
    so many publications, where each part is a result of its own."""
    sizer, publications = ChunkSizer(), 0
    for whole in chunks:
        for chunk in sizer.parts(whole):
            publications += len(chunk)
            snapshot = for_more(snapshot, publications)
            rows = snapshot.match(chunk, clock)
            sizer.record(len(chunk), len(rows), rows.looked_at.verified)
            yield snapshot, chunk, rows


def matched(snapshot: Snapshot, chunks: Iterable[Chunk], clock: Clock) -> MatchResult:
    """All matches of chunks."""
    result = MatchResult(snapshot)
    for _, chunk, rows in each_matched(snapshot, chunks, clock):
        result.add(chunk, rows)
    result.stats.seconds = clock.seconds()
    return result

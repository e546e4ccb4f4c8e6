"""Publications, N-Quads and Arrow columns to a batch: each distinct term once, in flat arrays."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from itertools import chain, groupby
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox
from numpy.typing import NDArray

from triplewire.config import MOST, Settings
from triplewire.encode.batch import BLANK_KIND, IRI_KIND, LITERAL_KIND, Batch, Bytes, Ids, Offsets, Terms
from triplewire.encode.names import is_plain, strings_at, suffix_columns, words_of_terms
from triplewire.encode.schema import as_bytes, as_instants, is_text
from triplewire.kernels.shared.columns import Triples, fixed_array
from triplewire.kernels.text import intern as kernels
from triplewire.kernels.text import scan as scanner
from triplewire.kernels.text.intern import COLUMNS, END, KIND, START, Statements
from triplewire.kernels.text.names import hash_terms
from triplewire.model.packed import PAD, Packed, pack
from triplewire.model.publication import Publication
from triplewire.model.terms import RDF, XSD_STRING

# --- From tokens and statements to a batch: the way that all go ------------------------------------------------------

_STRING = np.frombuffer(XSD_STRING.encode(), np.uint8)
_ROOM, _MOST_ROOM = 64, 1 << 15  # rows of a new table, at least and at most
_BYTES_A_TERM = 256  # of text, as a guess
_NO_ROWS, _NO_SLOTS = np.empty((0, COLUMNS), np.uint64), np.full(2, -1, np.int32)

Rows = NDArray[np.uint64]
"""Rows of a table, or tokens: shape (any, `triplewire.kernels.text.intern.COLUMNS`)."""


class _Table:
    """Rows and the slots that find them, at most half full."""

    def __init__(self, room: int) -> None:
        self._room = room  # at least, once there are rows
        self.rows: Rows = _NO_ROWS
        self.slots: Ids = _NO_SLOTS

    def reserve(self, count: int, added: int) -> None:
        """Make room for `added` rows, besides the `count` that are there."""
        if count + added <= len(self.rows):
            return
        room = max(2 * len(self.rows), count + added, self._room)
        rows = np.empty((room, COLUMNS), np.uint64)
        rows[:count] = self.rows[:count]
        self.rows, self.slots = rows, np.empty(1 << (2 * room - 1).bit_length(), np.int32)
        kernels.refill(rows, count, self.slots)


class Interner:
    """The distinct terms of `data` and the suffixes of its literals, both by number. `data` can be read eight bytes
    behind each of its texts."""

    def __init__(self, data: Bytes, max_iri_bytes: int, max_literal_bytes: int) -> None:
        self.data: Bytes = fixed_array(data)
        self._limits = max_iri_bytes, max_literal_bytes
        self._terms, self._suffixes = _Table(min(len(data) // _BYTES_A_TERM, _MOST_ROOM) + _ROOM), _Table(_ROOM)
        self._suffixes.rows = np.zeros((1, COLUMNS), np.uint64)
        self._state = np.zeros(kernels.STATE, np.int64)
        self._state[kernels.SUFFIXES] = 1  # 0 is none; no slot leads there

    @property
    def rows(self) -> Rows:
        """The rows of the distinct terms."""
        return self._terms.rows[: self._state[kernels.TERMS]]

    def take(self, tokens: Rows, count: int, out: Ids) -> bool:
        """The ids of the first `count` tokens. False where a term is over a limit, or too many collide."""
        terms, suffixes, *_ = self._state.tolist()
        self._terms.reserve(terms, count)
        self._suffixes.reserve(suffixes, count)
        return bool(
            kernels.intern_tokens(
                self.data, tokens, count, *self._limits, _STRING, kernels.Interned(self._terms.rows, self._terms.slots),
                kernels.Interned(self._suffixes.rows, self._suffixes.slots),
                self._state, out,
            )
        )  # fmt: skip

    def take_all(self, tokens: Rows) -> Ids:
        """The ids of tokens, however many collide. No others were taken before."""
        out = np.empty(len(tokens), np.int32)
        return out if self.take(tokens, len(tokens), out) else self._by_dictionary(tokens)

    def _by_dictionary(self, tokens: Rows) -> Ids:
        """`take_all`, slower: for terms that were made to collide."""
        suffixes, terms, suffix_rows, term_rows = {b"": 0}, dict[tuple[bytes, int, int], int](), [tokens[0]], []
        ids, data = [], self.data.tobytes()
        for token in tokens:
            start, end, kind, first, last = token.tolist()
            suffix = data[first:last] if last else b""
            if suffix not in suffixes:
                suffix_rows.append(np.array([first, last, 0, 0, 0], np.uint64))
            number = suffixes.setdefault(suffix, len(suffixes))
            key = data[start:end], kind, number
            if key not in terms:
                term_rows.append((start, end, kind, number, 0))
            ids.append(terms.setdefault(key, len(terms)))
        self._terms.rows, self._suffixes.rows = np.array(term_rows, np.uint64), np.array(suffix_rows, np.uint64)
        self._state[[kernels.TERMS, kernels.SUFFIXES]] = len(terms), len(suffixes)
        start, end, kind, suffix, _ = self.rows.astype(np.int64).T
        columns = suffix_columns(self.suffixes("surrogatepass"))
        self.rows[:, kernels.HASH] = hash_terms(
            self.data, start, end, kind.astype(np.uint8), suffix.astype(np.int32), *columns
        )
        return np.array(ids, np.int32)

    def odd_iris(self) -> list[bytes]:
        """The IRIs that are not of the plainest form, but for those in suffixes."""
        rows = self.rows
        out = np.empty(len(rows), np.int32)
        count = kernels.odd_iris(self.data, rows, len(rows), kernels.byte_classes(), out)
        return self._texts(rows[out[:count]])

    def suffixes(self, errors: str = "strict") -> tuple[str, ...]:
        """The suffixes by number. Raises `UnicodeDecodeError` where one is no UTF-8. `errors`: of `bytes.decode`."""
        count = self._state[kernels.SUFFIXES]
        if count == 1:
            return ("",)
        return ("", *[text.decode("utf-8", errors) for text in self._texts(self._suffixes.rows[1:count])])

    def _texts(self, rows: Rows) -> list[bytes]:
        data = memoryview(self.data.data)
        spans = zip(rows[:, START].tolist(), rows[:, END].tolist(), strict=True)
        return [bytes(data[start:end]) for start, end in spans]

    def batch(self, ids: Sequence[str], statements: Statements, suffixes: tuple[str, ...]) -> Batch:
        """The publications with these ids. `statements`: of the ids of terms. `suffixes`: those of this interner.
        Nobody writes to the arrays of a batch any more: kernels take them as they are."""
        rows, size = self.rows, len(statements.subject)
        count = len(rows)
        columns = kernels.TermColumns(
            np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.uint8), np.empty(count, np.int32),
            np.empty(count, np.uint64), np.empty(count, np.float64), np.empty(count, np.uint8),
            np.empty(count, np.bool_),
        )  # fmt: skip
        offset, (subject, predicate, object_) = np.empty(len(ids) + 1, np.int64), np.empty((3, size), np.int32)
        triples = Triples(offset, subject, predicate, object_)
        used, text_bytes = kernels.write_columns(self.data, rows, is_plain(suffixes), statements, columns, triples)
        words = words_of_terms(self.data, columns.start, columns.end, columns.has_text, text_bytes)
        terms = Terms(self.data, *columns[:4], suffixes, *columns[4:7])
        batch = Batch(ids, offset, subject[:used], predicate[:used], object_[:used], terms, words)
        of_words = words.offset, words.ids, words.text, words.start, words.end, words.hash
        for array in (offset, batch.subject, batch.predicate, batch.object, *columns, *of_words):
            array.setflags(write=False)
        return batch


# --- Publications ----------------------------------------------------------------------------------------------------


def encode(publications: Sequence[Publication]) -> Batch:
    """The publications, in their order."""
    first = publications[0].packed if len(publications) == 1 else None
    parts = list(_parts(publications)) if first is None else [first]
    sizes = [publication.size for publication in publications]
    tokens = np.empty((sum([part.terms for part in parts]), COLUMNS), np.uint64)
    statements: Ids = np.empty((3, sum(sizes)), np.int32)
    text_start = token = statement = 0
    for part in parts:
        numbers: Ids = np.frombuffer(part.numbers, np.int32)
        kernels.packed_tokens(numbers, part.terms, len(part.suffixes), text_start, token, tokens, statement, statements)
        text_start += len(part.text)
        token += part.terms
        statement += part.statements
    text = parts[0].text if len(parts) == 1 else b"".join([part.text for part in parts]) or PAD
    interner = Interner(np.frombuffer(text, np.uint8), MOST, MOST)
    subject, predicate, object_ = interner.take_all(tokens)[statements]
    publication: Ids = np.zeros(statement, np.int32)
    if len(sizes) > 1:
        publication = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    ids = [publication.id for publication in publications]
    return interner.batch(ids, Statements(publication, subject, predicate, object_), interner.suffixes("surrogatepass"))


def _parts(publications: Sequence[Publication]) -> Iterator[Packed]:
    """The triples as bytes: of each publication that was read, and of those together that programs made one behind the
    other, as these often share terms."""
    for packed, run in groupby(publications, attrgetter("packed")):
        if packed is None:
            yield pack(list(chain.from_iterable(p.triples for p in run)))
        else:
            for _ in run:  # the same publication may come again
                yield packed


# --- N-Quads, without an object a term or a triple -------------------------------------------------------------------

_CHUNK = 2_048  # statements between scanner and tables: what fits a processor's cache
_LEAST, _BYTES_A_STATEMENT = 12, 128  # at least; as a guess
PADDING = b"\n" * scanner.PAD  # what the scanner wants behind a text
_STRING_BYTES = len(XSD_STRING)  # the safe reader counts it as an IRI of each plain literal
_RESERVED = frozenset({RDF + "langString", RDF + "dirLangString"})  # datatypes that a datatype alone does not make


def encode_nquads(text: Bytes, document: str, settings: Settings) -> Batch | None:
    """The publications of a document: one a named graph, in order of first occurrence, and the default graph, which
    is named by `document`. None where the document is not plain, or over a limit of `settings`. `text` ends with
    `PADDING`, as `triplewire.read.gunzip.gunzip_padded` puts it there; the batch keeps it."""
    if settings.max_iri_bytes < _STRING_BYTES:
        return None
    interner = Interner(text, settings.max_iri_bytes, settings.max_literal_bytes)
    quads = _quads(text, len(text) - scanner.PAD, interner)
    if quads is None:
        return None
    try:
        suffixes = interner.suffixes()
        if not all(map(_is_suffix, suffixes[1:])) or not all(map(_is_iri, interner.odd_iris())):
            return None
    except UnicodeDecodeError:
        return None
    subject, predicate, object_, graph = quads
    terms = len(interner.rows)
    number, first = np.full(terms + 1, -1, np.int32), np.empty(terms + 1, np.int32)
    graphs = first[: kernels.number_graphs(graph, number, first)]
    statements = Statements(graph, subject, predicate, object_)
    batch = interner.batch(_ids(graphs, interner, document), statements, suffixes)
    return batch if int(np.diff(batch.offset).max(initial=0)) <= settings.max_triples else None


def _quads(text: Bytes, size: int, interner: Interner) -> NDArray[np.int32] | None:
    """The term ids of all statements: subjects, predicates, objects, graphs or -1. None where it is not plain."""
    room = min(_CHUNK, size // _LEAST + 1)
    tokens, ids = np.empty((4 * room, COLUMNS), np.uint64), np.empty(4 * room, np.int32)
    state = np.zeros(scanner.STATE, np.int64)
    quads, used = np.empty((4, size // _BYTES_A_STATEMENT + room), np.int32), 0
    status = scanner.MORE
    while status == scanner.MORE:
        status = scanner.scan(text, size, tokens, state)
        count = int(state[scanner.QUADS])
        if status == scanner.STOP or not interner.take(tokens, 4 * count, ids):
            return None
        if used + count > quads.shape[1]:
            longer = np.empty((4, 2 * (used + count)), np.int32)
            longer[:, :used] = quads[:, :used]
            quads = longer
        quads[:, used : used + count] = ids[: 4 * count].reshape(-1, 4).T
        used += count
    return quads[:, :used]


def _is_suffix(suffix: str) -> bool:
    """Does the parser of the safe reader take a literal with this suffix?"""
    try:
        if suffix[0] != "@":
            return bool(ox.NamedNode(suffix)) and suffix not in _RESERVED
        return "--" not in suffix and bool(ox.Literal("", language=suffix[1:]))
    except ValueError:
        return False


def _is_iri(text: bytes) -> bool:
    try:
        return bool(ox.NamedNode(text.decode()))
    except ValueError:
        return False


def _ids(graphs: Ids, interner: Interner, document: str) -> Sequence[str]:
    """The ids of the publications, as `triplewire.read.rdf.split.graph_id` gives them. `graphs`: terms, or -1."""
    named = graphs >= 0
    rows = interner.rows[graphs] if len(interner.rows) else np.zeros((len(graphs), COLUMNS), np.uint64)
    start, end = rows[:, START].astype(np.int64), rows[:, END].astype(np.int64)
    joined, offset = strings_at(interner.data, start, np.where(named, end, start) + 1)
    joined[offset[1:] - 1] = 10  # which is in no name
    ids = joined.tobytes().decode().split("\n")[:-1]
    for row in np.flatnonzero(~named | (rows[:, KIND] == BLANK_KIND)).tolist():
        ids[row] = f"{document}#{ids[row]}" if named[row] else document
    return ids


# --- Arrow columns, without an object a term or a triple -------------------------------------------------------------

_ROWS_AT_ONCE = 16_384  # terms between scanner and tables: what fits a processor's cache
_UNUSUAL = frozenset('<"')  # what may not be in an IRI, besides what the scanner looks for


def encode_arrow(batch: pa.RecordBatch, settings: Settings | None = None) -> Batch | None:
    """The publications of a batch whose columns are as in `triplewire.encode.schema.PUBLICATIONS`. None where a row is
    no publication, or has more than `settings.max_triples` triples, or where a term is not plain."""
    published = _columns(batch)
    if published is None or not _has_good_dates(batch):
        return None
    ids, counts, columns = published
    if int(counts.max(initial=0)) > (settings or Settings()).max_triples:
        return None
    text, offset = _joined(columns)
    interner = Interner(text, MOST, MOST)
    numbers = _numbers(text, offset, interner)
    if numbers is None:
        return None
    try:
        suffixes, iris = interner.suffixes(), [text.decode() for text in interner.odd_iris()]
    except UnicodeDecodeError:
        return None
    if any(map(_UNUSUAL.intersection, (*suffixes, *iris))):
        return None
    subject, predicate, object_ = numbers.reshape(3, -1)
    kind = interner.rows[:, KIND]
    if (kind[subject] == LITERAL_KIND).any() or (kind[predicate] != IRI_KIND).any():
        return None
    publication = np.repeat(np.arange(len(ids), dtype=np.int32), counts)
    return interner.batch(ids, Statements(publication, subject, predicate, object_), suffixes)


def _columns(batch: pa.RecordBatch) -> tuple[list[str], NDArray[np.int64], list[pa.Array]] | None:
    """The ids, how many triples each has, and their subjects, predicates and objects as text; None where something is
    missing, of another type, or not as Arrow has it in memory."""
    try:
        batch.validate()
    except pa.ArrowInvalid:
        return None
    names = batch.schema.names
    if names.count("id") != 1 or names.count("triples") != 1:
        return None
    ids, triples = batch.column("id"), batch.column("triples")
    if not (pa.types.is_list(triples.type) or pa.types.is_large_list(triples.type)) or ids.null_count:
        return None
    lengths = triples.value_lengths()
    if (pc.min(lengths).as_py() or 0) < 0:
        return None
    members = triples.flatten()
    if triples.null_count or not pa.types.is_struct(members.type) or members.null_count:
        return None
    parts = members.flatten()
    places = [members.type.get_field_index(name) for name in "spo"]
    if min(places) < 0 or any(parts[place].null_count or not is_text(parts[place].type) for place in places):
        return None
    if not is_text(ids.type):
        return None
    try:
        for column in (ids, *(parts[place] for place in places)):
            as_bytes(column).validate(full=True)  # where texts begin and end; whether they are UTF-8 is seen later
        texts: list[str] = ids.to_pylist()
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if not all(texts):
        return None
    return texts, lengths.to_numpy(), [parts[place].cast(pa.large_string()) for place in places]


def _has_good_dates(batch: pa.RecordBatch) -> bool:
    """Would the optional columns be read, too?"""
    if "source" in batch.schema.names:
        kind = batch.schema.field("source").type if batch.schema.names.count("source") == 1 else None
        if kind is None or not (is_text(kind) or pa.types.is_null(kind)):
            return False
        try:
            batch.column("source").validate(full=True)
        except pa.ArrowInvalid:
            return False
    if "published" not in batch.schema.names:
        return True
    try:
        published = as_instants(batch.column("published"))
        for bound in pc.min_max(published).as_py().values():
            _ = bound and bound.astimezone(dt.UTC)
    except (pa.ArrowException, KeyError, ValueError, OverflowError):
        return False
    return True


def _joined(columns: list[pa.Array]) -> tuple[Bytes, Offsets]:
    """The texts one behind the other for the scanner, each with a line feed, and where each begins."""
    nothing, end = pa.scalar("", pa.large_string()), pa.scalar("\n", pa.large_string())
    lines = [pc.binary_join_element_wise(column, nothing, end) for column in columns]
    whole = pa.concat_arrays(lines)
    _, offsets, data = whole.buffers()
    offset = np.zeros(1, np.int64) if not len(whole) else np.frombuffer(offsets, np.int64, len(whole) + 1)
    text = np.full(int(offset[-1]) + scanner.PAD, 10, np.uint8)
    if offset[-1]:
        text[: offset[-1]] = np.frombuffer(data, np.uint8, offset[-1])
    return text, offset.copy()


def _numbers(text: Bytes, offset: Offsets, interner: Interner) -> Ids | None:
    """The id of each text's term; None where one is not plain."""
    numbers = np.empty(len(offset) - 1, np.int32)
    tokens = np.empty((min(_ROWS_AT_ONCE, len(numbers)), COLUMNS), np.uint64)
    state = np.zeros(scanner.STATE, np.int64)
    for first in range(0, len(numbers), _ROWS_AT_ONCE):
        part = offset[first : first + _ROWS_AT_ONCE + 1]
        if scanner.scan_terms(text, part, tokens, state) == scanner.STOP:
            return None
        if not interner.take(tokens, len(part) - 1, numbers[first : first + _ROWS_AT_ONCE]):
            return None
    return numbers

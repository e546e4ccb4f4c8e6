"""Arrow columns of publications to a batch, without an object a term or a triple.

It takes what `triplewire.encode.schema.from_batch` takes, with the same publications, where the terms are written in
the plain form that `str(term)` gives. For anything else it gives None, and `from_batch` says what is wrong.
"""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.config import MOST, Settings
from triplewire.encode.batch import IRI_KIND, LITERAL_KIND, Batch, Bytes, Ids, Offsets
from triplewire.encode.interning import Interner
from triplewire.encode.schema import as_bytes, as_instants, is_text
from triplewire.kernels.text import scan as kernels
from triplewire.kernels.text.columns import Statements
from triplewire.kernels.text.intern import COLUMNS, KIND

_CHUNK = 16_384  # terms between scanner and tables: what fits a processor's cache
_UNUSUAL = frozenset(b'<"')  # what may not be in an IRI, besides what the scanner looks for


def encode_arrow(batch: pa.RecordBatch, settings: Settings | None = None) -> Batch | None:
    """The publications of a batch whose columns are as in `triplewire.encode.schema.PUBLICATIONS`. None where a row is
    no publication, or has more than `settings.max_triples` triples, or where a term is not plain."""
    stated = _columns(batch)
    if stated is None or not _has_good_dates(batch):
        return None
    ids, counts, columns = stated
    if int(counts.max(initial=0)) > (settings or Settings()).max_triples:
        return None
    text, offset = _joined(columns)
    interner = Interner(text, MOST, MOST)
    numbers = _numbers(text, offset, interner)
    if numbers is None or not all(map(_is_iri, interner.odd_iris())):
        return None
    try:
        suffixes = interner.suffixes()
    except UnicodeDecodeError:
        return None
    if any(_UNUSUAL.intersection(suffix.encode()) for suffix in suffixes):
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
    text = np.full(int(offset[-1]) + kernels.PAD, 10, np.uint8)
    if offset[-1]:
        text[: offset[-1]] = np.frombuffer(data, np.uint8, offset[-1])
    return text, offset.copy()


def _numbers(text: Bytes, offset: Offsets, interner: Interner) -> Ids | None:
    """The id of each text's term; None where one is not plain."""
    numbers = np.empty(len(offset) - 1, np.int32)
    tokens = np.empty((min(_CHUNK, len(numbers)), COLUMNS), np.uint64)
    state = np.zeros(kernels.STATE, np.int64)
    for first in range(0, len(numbers), _CHUNK):
        part = offset[first : first + _CHUNK + 1]
        if kernels.scan_terms(text, part, tokens, state) == kernels.STOP:
            return None
        if not interner.take(tokens, len(part) - 1, numbers[first : first + _CHUNK]):
            return None
    return numbers


def _is_iri(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return not _UNUSUAL.intersection(text)

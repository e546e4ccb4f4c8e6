"""N-Quads bytes to a batch, without an object a term or a triple.

It takes the plain form only, and only what the safe reader (`triplewire.read`) takes too, with the same publications.
For anything else it gives None: the safe reader then says what is wrong, or reads what is merely unusual.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyoxigraph as ox
from numpy.typing import NDArray

from triplewire.config import Settings
from triplewire.encode.batch import BLANK_KIND, Batch, Bytes, Ids
from triplewire.encode.interning import Interner
from triplewire.encode.names import strings_at
from triplewire.kernels.text import scan as kernels
from triplewire.kernels.text.columns import Statements, number_graphs
from triplewire.kernels.text.intern import COLUMNS, END, KIND, START
from triplewire.model.terms import RDF, XSD_STRING

_CHUNK = 2_048  # statements between scanner and tables: what fits a processor's cache
_LEAST, _BYTES_A_STATEMENT = 12, 128  # at least; as a guess
PADDING = b"\n" * kernels.PAD  # what the scanner wants behind a text
_STRING_BYTES = len(XSD_STRING)  # the safe reader counts it as an IRI of each plain literal
_RESERVED = frozenset({RDF + "langString", RDF + "dirLangString"})  # datatypes that a datatype alone does not make


def encode_nquads(text: Bytes, document: str, settings: Settings) -> Batch | None:
    """The publications of a document: one a named graph, in order of first occurrence, and the default graph, which
    is named by `document`. None where the document is not plain, or over a limit of `settings`. `text` ends with
    `PADDING`, as `triplewire.read.gunzip.gunzip_padded` puts it there; the batch keeps it."""
    if settings.max_iri_bytes < _STRING_BYTES:
        return None
    interner = Interner(text, settings.max_iri_bytes, settings.max_literal_bytes)
    quads = _quads(text, len(text) - kernels.PAD, interner)
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
    graphs = first[: number_graphs(graph, number, first)]
    statements = Statements(graph, subject, predicate, object_)
    batch = interner.batch(_ids(graphs, interner, document), statements, suffixes)
    return batch if int(np.diff(batch.offset).max(initial=0)) <= settings.max_triples else None


def _quads(text: Bytes, size: int, interner: Interner) -> NDArray[np.int32] | None:
    """The term ids of all statements: subjects, predicates, objects, graphs or -1. None where it is not plain."""
    room = min(_CHUNK, size // _LEAST + 1)
    tokens, ids = np.empty((4 * room, COLUMNS), np.uint64), np.empty(4 * room, np.int32)
    state = np.zeros(kernels.STATE, np.int64)
    quads, used = np.empty((4, size // _BYTES_A_STATEMENT + room), np.int32), 0
    status = kernels.MORE
    while status == kernels.MORE:
        status = kernels.scan(text, size, tokens, state)
        count = int(state[kernels.QUADS])
        if status == kernels.STOP or not interner.take(tokens, 4 * count, ids):
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

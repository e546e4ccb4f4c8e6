"""From the ids of a batch back to terms and publications, and the content hashes of these.

Each term object is made once, when it is asked for. The hashes (semantics, sections 1 and 6) take no object a triple.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.encode.batch import BLANK_KIND, IRI_KIND, Batch
from triplewire.encode.names import strings_at
from triplewire.encode.strings import of_numbers, of_strings, of_text
from triplewire.model.canonical import canonical_term
from triplewire.model.content import HAS_FORMAT, IS_PART_OF, ITEM, NOT_SAID
from triplewire.model.packed import literal_with
from triplewire.model.publication import Publication
from triplewire.model.references import id_iri
from triplewire.model.terms import IRI, RDF_TYPE, BlankNode, Term, Triple, made_blank, made_iri


class Decoder:
    """Reads one batch. Safe with threads: at worst a term is made twice."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._terms: dict[int, Term] = {}

    def term(self, number: int) -> Term:
        """The term with this number."""
        term = self._terms.get(number)
        if term is None:
            terms = self._batch.terms
            text = terms.text[terms.start[number] : terms.end[number]].tobytes().decode("utf-8", "surrogatepass")
            term = self._terms[number] = self._new(number, text, terms.kind[number])
        return term

    def terms(self, numbers: NDArray[np.integer[Any]]) -> list[Term]:
        """The terms with these numbers: of many, in a fifth of the time."""
        known, terms = self._terms, self._batch.terms
        wanted = numbers.tolist()
        missing = [number for number in dict.fromkeys(wanted) if number not in known]
        columns = terms.start[missing].tolist(), terms.end[missing].tolist(), terms.kind[missing].tolist()
        text = terms.text.data
        for number, start, end, kind in zip(missing, *columns, strict=True):
            known[number] = self._new(number, str(text[start:end], "utf-8", "surrogatepass"), kind)
        return [known[number] for number in wanted]

    def _new(self, number: int, text: str, kind: int) -> Term:
        """A term with this text, of this kind."""
        if kind == IRI_KIND:
            return made_iri(text)
        if kind == BLANK_KIND:
            return made_blank(text)
        terms = self._batch.terms
        return literal_with(text, terms.suffixes[terms.suffix[number]])

    def publication(self, number: int) -> Publication:
        """The publication with this number; it has an id and triples only."""
        batch = self._batch
        rows = slice(int(batch.offset[number]), int(batch.offset[number + 1]))
        columns = [self.terms(column[rows]) for column in (batch.subject, batch.predicate, batch.object)]
        return Publication(batch.ids[number], tuple(map(Triple._make, zip(*columns, strict=True))))


# --- Content hashes --------------------------------------------------------------------------------------------------

_TOGETHER = 1 << 17  # triples that become lines at once, unless a single publication has more
_FEW = 64  # triples for which to make objects takes less than the calls for columns
_SUFFIX_BITS = 31  # there are fewer suffixes
_NODE_BITS = 32  # of the number of a term

# Bytes that occur in what a canonical term escapes, by kind. 0xED begins lone surrogates, 0xEF the characters U+FFFE
# and U+FFFF; both begin other characters too, which cost a little time and are right all the same.
_UNSAFE = np.zeros((2, 256), np.bool_)
_UNSAFE[:, [0xED, 0xEF, *b'"\\']] = True
_UNSAFE[0, [*range(0x20), 0x7F]] = True
_UNSAFE[1, [*range(0x21), *b"<>{}|^`"]] = True


def content_hashes(batch: Batch, numbers: NDArray[np.integer], decoder: Decoder) -> list[str]:
    """The content hashes (SHA-256, hex) of the publications with these numbers."""
    hashes = [""] * len(numbers)
    counts = batch.offset[numbers + 1] - batch.offset[numbers]
    if counts.sum() < _FEW:
        return [decoder.publication(number).content_hash for number in numbers.tolist()]
    bounds = np.flatnonzero(np.diff(np.cumsum(counts) // _TOGETHER)) + 1
    for places in np.split(np.arange(len(numbers)), bounds):
        for place, text in zip(places.tolist(), _hashes(batch, numbers[places], decoder), strict=True):
            hashes[place] = text
    return hashes


def _hashes(batch: Batch, numbers: NDArray[np.integer], decoder: Decoder) -> Iterator[str]:
    rows, owner = _rows(batch, numbers)
    is_blank = batch.terms.kind == BLANK_KIND
    by_objects = np.zeros(len(numbers), np.bool_)  # publications whose triples are made, as their lines take more
    by_objects[owner[is_blank[batch.subject[rows]] | is_blank[batch.object[rows]]]] = True
    is_said = _said(batch, numbers, rows, owner, by_objects, decoder)
    plain = ~by_objects[owner] & is_said
    lines = _lines(batch, rows[plain], owner[plain], decoder)
    offset = np.frombuffer(lines.buffers()[1], np.int64, len(lines) + 1) if len(lines) else np.zeros(1, np.int64)
    text = memoryview(lines.buffers()[2] or b"")
    ends = offset[np.cumsum(np.bincount(owner[plain], minlength=len(numbers)))]
    begin = 0
    for number, end, made in zip(numbers.tolist(), ends.tolist(), by_objects.tolist(), strict=True):
        if made:
            yield decoder.publication(number).content_hash
        else:
            yield hashlib.sha256(text[begin:end]).hexdigest()
        begin = end


def _said(
    batch: Batch,
    numbers: NDArray[np.integer],
    rows: NDArray[np.int64],
    owner: NDArray[np.int64],
    by_objects: NDArray[np.bool_],
    decoder: Decoder,
) -> NDArray[np.bool_]:
    """Which triples are content of their publications (`triplewire.model.content`): of items of feeds, some are not.
    Items that say more than such an answer can tell become true in `by_objects`."""
    is_said: NDArray[np.bool_] = np.ones(len(rows), np.bool_)
    subject, predicate, object_ = (column[rows] for column in (batch.subject, batch.predicate, batch.object))
    used = np.unique(predicate)
    place = dict(zip(decoder.terms(used), used.tolist(), strict=True))
    if IS_PART_OF not in place or RDF_TYPE not in place:
        return is_said
    terms = batch.terms
    is_typed = np.flatnonzero(predicate == place[RDF_TYPE])
    is_typed = is_typed[(terms.end - terms.start)[object_[is_typed]] == len(ITEM.value)]
    is_typed = is_typed[[term == ITEM for term in decoder.terms(object_[is_typed])]] if len(is_typed) else is_typed
    node = owner << _NODE_BITS | subject
    nodes = np.intersect1d(node[is_typed], node[predicate == place[IS_PART_OF]])
    item = np.full(len(numbers), -1, np.int64)  # of each publication: the node of the item that it is
    for number, term in zip(nodes.tolist(), decoder.terms(nodes & (1 << _NODE_BITS) - 1), strict=True):
        id = batch.ids[int(numbers[number >> _NODE_BITS])]
        if isinstance(term, IRI) and term.value == id_iri(id):
            item[number >> _NODE_BITS] = number
    of_item = item[owner] >= 0
    left_out = [place[name] for name in NOT_SAID if name in place]
    is_said = ~of_item | ((node == item[owner]) & ~np.isin(predicate, left_out))
    is_tagged = np.array([suffix.startswith("@") for suffix in terms.suffixes])[terms.suffix[object_]]
    by_objects[owner[of_item & is_said & (is_tagged | (predicate == place.get(HAS_FORMAT, -1)))]] = True
    return is_said


def _rows(batch: Batch, numbers: NDArray[np.integer]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The triples of some publications, one behind the other, and the place of the publication of each."""
    start = batch.offset[numbers]
    counts = batch.offset[numbers + 1] - start
    before = np.cumsum(counts) - counts
    owner = np.repeat(np.arange(len(numbers)), counts)
    return np.arange(counts.sum()) + (start - before)[owner], owner


def _lines(batch: Batch, rows: NDArray[np.int64], owner: NDArray[np.int64], decoder: Decoder) -> pa.LargeBinaryArray:
    """The canonical lines of triples without blank nodes, in order within each owner. The order of lines is that of
    (subject, predicate, object): where one term is the beginning of another, a blank follows it, which comes before all
    that can follow in the other."""
    terms = [column[rows] for column in (batch.subject, batch.predicate, batch.object)]
    used, place = np.unique(np.concatenate(terms), return_inverse=True)
    texts = _texts(batch, used, decoder)
    ranks = pc.rank(texts, tiebreaker="dense").buffers()[1]
    rank = np.frombuffer(ranks or b"", np.uint64, len(used))[place].reshape(3, -1)
    order = np.lexsort((rank[2], rank[1], rank[0], owner))
    subject, predicate, object_ = (texts.take(of_numbers(column[order])) for column in place.reshape(3, -1))
    nothing, blank, end = of_strings([b"", b" ", b" .\n"])
    return pc.binary_join_element_wise(subject, blank, predicate, blank, object_, end, nothing)


def _texts(batch: Batch, used: NDArray[np.int32], decoder: Decoder) -> pa.LargeBinaryArray:
    """Some terms of a batch, none of them a blank node, in canonical N-Triples."""
    terms = batch.terms
    text, offset = strings_at(terms.text, terms.start[used], terms.end[used])
    is_iri = terms.kind[used] == IRI_KIND
    unsafe = np.zeros(len(text) + 1, np.int64)
    np.cumsum(_UNSAFE[np.repeat(is_iri, np.diff(offset)).astype(np.int8), text], out=unsafe[1:])
    special = np.flatnonzero(np.diff(unsafe[offset]))
    form = is_iri.astype(np.int64) << _SUFFIX_BITS | terms.suffix[used]
    forms, form_place = np.unique(form, return_inverse=True)
    around = [
        (b"<", b">")
        if code >> _SUFFIX_BITS
        else (b'"', canonical_term(literal_with("", terms.suffixes[code])).encode()[1:])
        for code in forms.tolist()
    ] or [(b"", b"")]  # what stands before and behind the text of a term
    heads, tails = (of_strings(side).take(of_numbers(form_place)) for side in zip(*around, strict=True))
    plain = pc.binary_join_element_wise(heads, of_text(text, offset), tails, of_strings([b""])[0])
    if not len(special):
        return plain
    escaped = []
    for number in used[special].tolist():
        term = decoder.term(number)
        assert not isinstance(term, BlankNode)
        escaped.append(canonical_term(term).encode())
    number = np.arange(len(used))
    number[special] = len(used) + np.arange(len(special))
    return pa.concat_arrays([plain, of_strings(escaped)]).take(of_numbers(number))

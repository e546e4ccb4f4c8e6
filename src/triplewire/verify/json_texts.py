"""The bindings of matches as JSON text, made of rows of term ids (`triplewire.verify.rows`).

There is no object a match or a binding: each distinct term becomes text once, and so does each distinct list of
bindings. The text is what `triplewire.model.match.bindings_text` makes of the objects of `triplewire.verify.objects`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.encode.batch import BLANK_KIND, IRI_KIND, LITERAL_KIND, Bytes, Ids, Offsets, Terms
from triplewire.encode.buffers import of_numbers, of_strings, of_text
from triplewire.encode.names import strings_at
from triplewire.encode.strings import TextColumn, joined, utf8
from triplewire.kernels.joins import row_texts as rows_kernels
from triplewire.kernels.shared.columns import fixed
from triplewire.kernels.text import json_strings as kernels
from triplewire.model.match import bindings_text
from triplewire.model.packed import literal_with
from triplewire.model.terms import IRI, BlankNode, Term, term_to_json
from triplewire.verify.rows import Bindings, UsedTerms

_KIND_RANK = np.zeros(4, np.int64)  # kind -> place in the order of `triplewire.model.match.term_key`
_KIND_RANK[[BLANK_KIND, IRI_KIND, LITERAL_KIND]] = 0, 1, 2
_TEXT_BITS = 31  # there are fewer terms, and fewer suffixes


def json_column(bindings: Bindings, selection: Ids, selections: Sequence[Sequence[str]], terms: Terms) -> TextColumn:
    """The bindings of each pair as JSON text in UTF-8; a lone surrogate is an escape. `selection` is the place in
    `selections` of the selected variables, each once; `terms` are those of the batch."""
    number, first = bindings.alike(selection)
    answered = np.flatnonzero(np.isin(first, list(bindings.answers))) if bindings.answers else np.zeros(0, np.int64)
    text, offset = _lists(bindings, np.delete(first, answered), selection, selections, terms)
    place = np.empty(len(first), np.int32)  # of a distinct list, among those of rows and then those of answers
    place[np.delete(np.arange(len(first)), answered)] = np.arange(len(first) - len(answered))
    place[answered] = len(first) - len(answered) + np.arange(len(answered))
    if len(answered):
        answers = [bindings.answers[pair].bindings for pair in first[answered].tolist()]
        more, ends = joined([utf8(bindings_text(answer)) for answer in answers])
        text, offset = np.concatenate((text, more)), np.concatenate((offset, ends[1:] + len(text)))
    return TextColumn(text, offset, place[number])


def _lists(
    bindings: Bindings,
    pairs: NDArray[np.integer[Any]],
    selection: Ids,
    selections: Sequence[Sequence[str]],
    terms: Terms,
) -> tuple[Bytes, Offsets]:
    """The text of each of these pairs' rows."""
    used = UsedTerms(bindings, pairs)
    unbound = int(len(used.ids) > 0 and used.ids[0] < 0)
    ids = used.ids[unbound:]
    text, offset = strings_at(terms.text, terms.start[ids], terms.end[ids])
    order = term_order(terms, ids, of_text(text, offset))
    steps = used.steps(np.concatenate((np.zeros(unbound, np.int64), unbound + order)))
    term_text, term_offset = _term_texts(terms, ids, text, offset, order)
    if unbound:  # its text is empty
        term_offset = np.concatenate((np.zeros(1, np.int64), term_offset))
    occurring, kind = np.unique(selection[pairs], return_inverse=True)
    selects = [selections[place] for place in occurring.tolist()]
    widths = np.array([len(select) for select in selects], np.int64)
    first = np.cumsum(widths) - widths
    names = [json.dumps(name, ensure_ascii=False) + ": " for select in selects for name in select]
    variables = fixed(*joined(list(map(utf8, names))))
    given = fixed(steps.offset, steps.column, steps.place, steps.completes), fixed(term_text, term_offset), variables
    lists = first[kind], widths[kind], np.zeros(widths.max(initial=0), np.int64)
    out_offset = np.empty(len(pairs) + 1, np.int64)
    rows_kernels.row_offsets(given[0], given[1][1], given[2][1], *lists, out_offset)
    out = np.empty(out_offset[-1], np.uint8)
    rows_kernels.write_rows(*given, *lists, out_offset, out)
    return out, out_offset


def term_order(terms: Terms, ids: NDArray[np.int64], texts: pa.LargeBinaryArray) -> NDArray[np.int64]:
    """The places of some terms in the order of `triplewire.model.match.term_key`; `texts` are those of these terms.
    Texts are compared as UTF-8, whose order is that of code points, and literals of one text by their suffix."""
    suffix = terms.suffix[ids]
    suffixes, suffix_place = np.unique(suffix, return_inverse=True)
    literals = [literal_with("", terms.suffixes[number]) for number in suffixes.tolist()]
    by_name = sorted(range(len(literals)), key=lambda place: (literals[place].datatype, literals[place].language))
    suffix_rank = np.empty(len(literals), np.int64)
    suffix_rank[by_name] = np.arange(len(literals))
    ranks = pc.rank(texts, tiebreaker="dense")
    text_rank = np.frombuffer(ranks.buffers()[1] or b"", np.uint64, len(ranks), ranks.offset * 8).astype(np.int64)
    key = _KIND_RANK[terms.kind[ids]] << _TEXT_BITS | text_rank
    if len(literals) > 1:
        key = np.unique(key, return_inverse=True)[1] << _TEXT_BITS | suffix_rank[suffix_place]
    return np.argsort(key, kind="stable")


def _term_texts(
    terms: Terms, ids: NDArray[np.int64], text: Bytes, offset: Offsets, order: NDArray[np.int64]
) -> tuple[Bytes, Offsets]:
    """Terms as JSON objects, in this order; `text` and `offset` are their texts, in the order of `ids`."""
    start, end = offset[:-1][order], offset[1:][order]
    escaped_offset = np.empty(len(ids) + 1, np.int64)
    kernels.escaped_offsets(text, start, end, escaped_offset)
    escaped = np.empty(escaped_offset[-1], np.uint8)
    kernels.escape(text, start, end, escaped_offset, escaped)
    form = terms.kind[ids].astype(np.int64) << _TEXT_BITS | terms.suffix[ids]
    forms, form_place = np.unique(form[order], return_inverse=True)
    parts = [_around(code >> _TEXT_BITS, terms.suffixes[code & (1 << _TEXT_BITS) - 1]) for code in forms.tolist()]
    place = of_numbers(form_place)
    heads, tails = (of_strings(side).take(place) for side in zip(*parts, strict=True)) if parts else ((), ())
    if not parts:
        return escaped, escaped_offset
    whole = pc.binary_join_element_wise(heads, of_text(escaped, escaped_offset), tails, of_strings([b""])[0])
    _, offsets, data = whole.buffers()
    whole_offset = np.frombuffer(offsets, np.int64, len(whole) + 1, whole.offset * 8)
    return np.frombuffer(data, np.uint8, whole_offset[-1]), whole_offset


def _around(kind: int, suffix: str) -> tuple[bytes, bytes]:
    """What stands before and behind the escaped text of a term."""
    makes: dict[int, Term] = {IRI_KIND: IRI(""), BLANK_KIND: BlankNode("")}
    whole = json.dumps(term_to_json(makes.get(kind) or literal_with("", suffix)), ensure_ascii=False)
    head, value, tail = whole.partition('"value": "')
    return utf8(head + value), utf8(tail)

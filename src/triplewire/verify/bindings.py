"""The bindings of matches as `Binding` objects, not all at once, or as JSON text.

They are made of rows of term ids (`triplewire.verify.rows`). A row has most in common with the row before it, as they
are in order. So each object is a copy of one dictionary, in which only what differs is replaced; that takes half as
long as making each of all its pairs.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from triplewire.bounded_cache import cached_if_short
from triplewire.clauses.node_tests.columns import inverse
from triplewire.encode.batch import BLANK_KIND, IRI_KIND, LITERAL_KIND, Bytes, Ids, Offsets, Terms
from triplewire.encode.names import strings_at
from triplewire.encode.strings import TextColumn, joined, of_numbers, of_strings, of_text, utf8
from triplewire.kernels.shared.columns import fixed
from triplewire.kernels.text import json_strings as kernels
from triplewire.model.match import Binding, SharedBinding, bindings_text, row_key
from triplewire.model.packed import literal_with
from triplewire.model.terms import Term, made_blank, made_iri, term_to_json
from triplewire.verify.kernels import rows as rows_kernels
from triplewire.verify.rows import Bindings, Row, Steps, ToTerms, UsedTerms, in_order

_TERMS = 1 << 18  # in rows that are put in order together
_ROWS = 1 << 14  # that become objects together: with fewer, the collector looks at all there is far more often

FEW = 128
"""Terms of a batch whose JSON is made of objects."""

Made: TypeAlias = tuple[Binding, ...]
Selects: TypeAlias = Sequence[Sequence[str]]

ToTexts: TypeAlias = Callable[[NDArray[np.int64]], tuple[Bytes, Offsets, NDArray[np.int64]]]
"""The JSON of terms of a batch, whose ids ascend: texts in the order of terms, and the places of the ids in that order.
-1, which is unbound, has the empty text."""


def shared(bindings: Bindings, selection: Ids, selections: Selects, terms: ToTerms) -> Iterator[Made]:
    """The bindings of each pair; those of one selection that are the same are one object. `selection` is the place in
    `selections` of the selected variables, each once; `terms` gives terms of the batch by their numbers.

    They are made shortly before they are taken, and let go behind the last pair that has them: of many, where the one
    who takes them keeps none, a part is there at a time."""

    def portions() -> Iterator[Iterator[Made]]:  # nothing is worked out before the first is asked for
        number, first = bindings.alike(selection)
        selects = [selections[place] for place in selection[first].tolist()]
        yield from _taken(number, first, objects(bindings, first, selects, terms))

    return chain.from_iterable(portions())


def _taken(number: Ids, first: Ids, portions: Iterator[list[Made]]) -> Iterator[Iterator[Made]]:
    """What has each `number`. The portions have it in order; first[n] is the place where n is first asked for."""
    last = np.zeros(len(first), np.int64)
    last[number] = np.arange(len(number))
    made: list[Made] = []
    begin = 0
    while begin < len(number):
        made.extend(next(portions))
        end = int(first[len(made)]) if len(made) < len(first) else len(number)
        yield map(made.__getitem__, number[begin:end].tolist())
        if end == len(number):
            return
        for place in np.flatnonzero((last >= begin) & (last < end)).tolist():
            made[place] = ()
        begin = end


def of_few(rows: Sequence[Sequence[Row]], selects: Selects, terms: ToTerms) -> list[Made]:
    """The bindings of few pairs, whose few rows are Python lists in any order: with few, NumPy takes longer."""
    used = sorted(set(chain.from_iterable(chain.from_iterable(rows))) - {-1})
    known: dict[int, Term] = dict(zip(used, terms(np.array(used, np.int64)), strict=True))
    made: dict[tuple[tuple[str, ...], tuple[Row, ...]], Made] = {}
    out: list[Made] = []
    for listed, select in zip(rows, selects, strict=True):
        key = tuple(select), tuple(listed)
        bindings = made.get(key)
        if bindings is None:
            ordered = listed if len(listed) == 1 else sorted(listed, key=lambda row: row_key(map(known.get, row)))
            named = ([(name, known[id_]) for name, id_ in zip(select, row, strict=True) if id_ >= 0] for row in ordered)
            bindings = made[key] = tuple(map(SharedBinding, named))
        out.append(bindings)
    return out


def objects(
    bindings: Bindings, pairs: NDArray[np.integer[Any]], selects: Selects, terms: ToTerms
) -> Iterator[list[Made]]:
    """The bindings of pairs, of some pairs at a time. `selects` are the selected variables of each, each once.
    Their order depends on the terms alone, not on what else is in the batch."""
    if bindings.answers:
        count = bindings.count.copy()
        count[list(bindings.answers)] = 0  # their rows, if there are any, are not all or not those kept
        bindings = replace(bindings, count=count)
    for begin, end in _portions(bindings.count[pairs] * bindings.width[pairs], _TERMS):
        portion = pairs[begin:end]
        used = UsedTerms(bindings, portion)
        stated, order = in_order(used.ids, terms)
        every = np.empty(len(stated), object)  # None for unbound
        every[:] = stated
        steps, every = used.steps(order), every[order]
        for start, stop in _portions(bindings.count[portion], _ROWS):
            was_enabled = gc.isenabled()
            gc.disable()  # there is nothing to collect: all that is made is in use
            try:
                made = _made(steps, every, start, stop, selects[begin + start : begin + stop])
            finally:
                if was_enabled:
                    gc.enable()
            for place, pair in enumerate(portion[start:stop].tolist() if bindings.answers else ()):
                if pair in bindings.answers:
                    made[place] = bindings.answers[pair].bindings
            yield made


def _made(steps: Steps, every: NDArray[Any], start: int, stop: int, selects: Selects) -> list[Made]:
    """The bindings of the pairs from start to stop. What the steps are becomes objects for these only: long lists would
    take the collector long."""
    offset = steps.offset[start : stop + 1]
    taken = slice(offset[0], offset[-1])
    columns, completes = steps.column[taken].tolist(), steps.completes[taken].tolist()
    terms, ends = every[steps.place[taken]].tolist(), (offset - offset[0]).tolist()
    is_bound = None not in every[:1]
    copied = SharedBinding if is_bound else _bound
    out: list[Made] = []
    for select, begin, end in zip(selects, ends, ends[1:], strict=False):
        if not select:
            out.append((SharedBinding(),))
        elif end - begin == len(select):  # one row
            items = zip(select, terms[begin:end])  # noqa: B905  # `strict` takes a tenth of the time of all this
            out.append((SharedBinding(items) if is_bound else _bound(dict(items)),))
        else:
            row: dict[str, Any] = dict.fromkeys(select)
            rows = []
            for column, term, is_whole in zip(columns[begin:end], terms[begin:end], completes[begin:end], strict=True):
                row[select[column]] = term
                if is_whole:
                    rows.append(copied(row))
            out.append(tuple(rows))
    return out


def _bound(row: dict[str, Any]) -> SharedBinding:
    return SharedBinding([item for item in row.items() if item[1] is not None])


def _portions(sizes: NDArray[np.integer[Any]], most: int) -> Iterator[tuple[int, int]]:
    """From where to where there are at most so many together, or one has more."""
    so_far = np.cumsum(sizes)
    if not len(so_far) or so_far[-1] <= most:
        return iter([(0, len(sizes))])
    return pairwise([0, *(np.flatnonzero(np.diff(so_far // most)) + 1).tolist(), len(sizes)])


# --- JSON text -------------------------------------------------------------------------------------------------------


_KIND_RANK = np.zeros(4, np.int64)  # kind -> place in the order of `triplewire.model.match.term_key`
_KIND_RANK[[BLANK_KIND, IRI_KIND, LITERAL_KIND]] = 0, 1, 2
_TEXT_BITS = 31  # there are fewer terms, and fewer suffixes


def json_column(
    bindings: Bindings, selection: Ids, selections: Selects, terms: Terms, to_terms: ToTerms, few: int = FEW
) -> TextColumn:
    """The bindings of each pair as JSON text in UTF-8; a lone surrogate is an escape. `selection` is the place in
    `selections` of the selected variables, each once; `terms` are those of the batch, `to_terms` makes objects of them:
    up to `few` take less time so."""
    texts_of = partial(_texts_of_few, to_terms) if len(terms) <= few else partial(_texts_of_many, terms)
    number, first = bindings.alike(selection)
    answered = np.flatnonzero(np.isin(first, list(bindings.answers))) if bindings.answers else np.zeros(0, np.int64)
    text, offset = _lists(bindings, np.delete(first, answered), selection, selections, texts_of)
    place = np.empty(len(first), np.int32)  # of a distinct list, among those of rows and then those of answers
    place[np.delete(np.arange(len(first)), answered)] = np.arange(len(first) - len(answered))
    place[answered] = len(first) - len(answered) + np.arange(len(answered))
    if len(answered):
        answers = [bindings.answers[pair].bindings for pair in first[answered].tolist()]
        more, ends = joined([utf8(bindings_text(answer)) for answer in answers])
        text, offset = np.concatenate((text, more)), np.concatenate((offset, ends[1:] + len(text)))
    return TextColumn(text, offset, place[number])


def _lists(
    bindings: Bindings, pairs: NDArray[np.integer[Any]], selection: Ids, selections: Selects, texts_of: ToTexts
) -> tuple[Bytes, Offsets]:
    """The text of each of these pairs' rows."""
    used = UsedTerms(bindings, pairs)
    term_text, term_offset, order = texts_of(used.ids)
    steps = used.steps(order)
    occurring, kind = np.unique(selection[pairs], return_inverse=True)
    selects = [selections[place] for place in occurring.tolist()]
    widths = np.array([len(select) for select in selects], np.int64)
    first = np.cumsum(widths) - widths
    variables = fixed(*joined([_key(name) for select in selects for name in select]))
    texts, changes = fixed(term_text, term_offset), fixed(steps.offset, steps.column, steps.place, steps.completes)
    lists = first[kind], widths[kind], np.zeros(widths.max(initial=0), np.int64)
    out_offset = np.empty(len(pairs) + 1, np.int64)
    rows_kernels.row_offsets(changes, texts[1], variables[1], *lists, out_offset)
    out = np.empty(out_offset[-1], np.uint8)
    rows_kernels.write_rows(changes, texts, variables, *lists, out_offset, out)
    return out, out_offset


def _texts_of_few(to_terms: ToTerms, ids: NDArray[np.int64]) -> tuple[Bytes, Offsets, NDArray[np.int64]]:
    """See `ToTexts`: of objects."""
    stated, order = in_order(ids, to_terms)
    dumps = json.JSONEncoder(ensure_ascii=False).encode
    in_turn = [stated[place] for place in order.tolist()]
    return *joined([utf8(dumps(term_to_json(term))) if term is not None else b"" for term in in_turn]), order


def _texts_of_many(terms: Terms, ids: NDArray[np.int64]) -> tuple[Bytes, Offsets, NDArray[np.int64]]:
    """See `ToTexts`: as columns."""
    unbound = int(len(ids) > 0 and ids[0] < 0)
    ids = ids[unbound:]
    text, offset = strings_at(terms.text, terms.start[ids], terms.end[ids])
    order = term_order(terms, ids, of_text(text, offset))
    term_text, term_offset = _term_texts(terms, ids, text, offset, order)
    nothing = np.zeros(unbound, np.int64)
    return term_text, np.concatenate((nothing, term_offset)), np.concatenate((nothing, unbound + order))


def term_order(terms: Terms, ids: NDArray[np.int64], texts: pa.LargeBinaryArray) -> NDArray[np.int64]:
    """The places of some terms in the order of `triplewire.model.match.term_key`; `texts` are those of these terms.
    Texts are compared as UTF-8, whose order is that of code points, and literals of one text by their suffix."""
    suffix = terms.suffix[ids]
    suffixes, suffix_place = np.unique(suffix, return_inverse=True)
    literals = [literal_with("", terms.suffixes[number]) for number in suffixes.tolist()]
    by_name = sorted(range(len(literals)), key=lambda place: (literals[place].datatype, literals[place].language))
    suffix_rank = inverse(np.array(by_name, np.int64))
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
    text = text.view()
    text.flags.writeable = False  # of one type for kernels, whoever owns the text
    kernels.escaped_offsets(text, start, end, escaped_offset)
    escaped = np.empty(escaped_offset[-1], np.uint8)
    kernels.escape(text, start, end, escaped_offset, escaped)
    form = terms.kind[ids].astype(np.int64) << _TEXT_BITS | terms.suffix[ids]
    forms, form_place = np.unique(form[order], return_inverse=True)
    if not len(forms):
        return escaped, escaped_offset
    parts = [_around(terms.suffixes[code & (1 << _TEXT_BITS) - 1], code >> _TEXT_BITS) for code in forms.tolist()]
    place = of_numbers(form_place)
    heads, tails = (of_strings(side).take(place) for side in zip(*parts, strict=True))
    whole = pc.binary_join_element_wise(heads, of_text(escaped, escaped_offset), tails, of_strings([b""])[0])
    _, offsets, data = whole.buffers()
    whole_offset = np.frombuffer(offsets, np.int64, len(whole) + 1, whole.offset * 8)
    return np.frombuffer(data, np.uint8, whole_offset[-1]), whole_offset


@cached_if_short(4_096, 64)
def _key(variable: str) -> bytes:
    """What stands before the value of a variable."""
    return utf8(json.dumps(variable, ensure_ascii=False) + ": ")


@cached_if_short(1_024, 128)
def _around(suffix: str, kind: int) -> tuple[bytes, bytes]:
    """What stands before and behind the escaped text of a term."""
    makes: dict[int, Term] = {IRI_KIND: made_iri(""), BLANK_KIND: made_blank("")}
    whole = json.dumps(term_to_json(makes.get(kind) or literal_with("", suffix)), ensure_ascii=False)
    head, value, tail = whole.partition('"value": "')
    return utf8(head + value), utf8(tail)

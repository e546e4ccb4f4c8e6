"""The rows of pairs whose clauses have several components, or that have several clauses: products, and their union.

    unite: for each pair, for each clause, until there are more rows than `most`:
        number = 0, 1, ... below the product of its pieces' sizes: its digits say which row of each piece
        row = for each column the value of the piece that has one; put down if it is new
    forms, grouped_pairs, alike: a hash table of what has been seen; equal clauses, pairs with equal clauses, and equal
    lists of rows get one number
    steps: sort the rows of each list by the ranks of their terms; of each row, the columns that differ from the last
    write_rows: follow the steps, and copy a text {variable: term, ...} wherever a row is complete

Used through `triplewire.verify.rows` and `triplewire.verify.bindings`. The rows of a component come from
`triplewire.verify.kernels.listing` and `triplewire.verify.kernels.search`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import MATCH, TRUNCATED, ClauseColumns
from triplewire.kernels.shared.compiled import allocating_kernel, helper, kernel
from triplewire.kernels.shared.hashing import hash_numbers, is_new_row, mix_bits
from triplewire.kernels.shared.search import same_numbers

PAIR, CLAUSE, BEGIN, COUNT = 0, 1, 2, 3  # columns of `pieces`, by component: where its rows begin, how many they are


@helper
def _end(at: Any, end: Any, pieces: Any) -> Any:
    """Where the pieces of a clause end."""
    clause = pieces[at, CLAUSE]
    while at < end and pieces[at, CLAUSE] == clause:
        at += 1
    return at


@helper
def _product(begin: Any, end: Any, most: Any, pieces: Any) -> Any:
    """How many rows have the pieces together, at most one more than `most`?"""
    product = 1
    for at in range(begin, end):
        product = min(product * pieces[at, COUNT], most + 1)
    return product


@kernel
def begin_rows(outcome: Any, width: Any, most: int, pieces: Any, first: Any, start: Any, count: Any) -> int:
    """Where the rows of each pair begin, and how many they are, where they are those of one piece; first[i]: where the
    pieces of pair i begin, one longer than there are pairs. Returns how many places `unite` fills at the most for the
    others, whose count is 0 here."""
    at, total = 0, 0
    for i in range(outcome.size):
        first[i], start[i], count[i] = at, 0, 0
        while at < pieces.shape[0] and pieces[at, PAIR] == i:
            at += 1
        if at == first[i]:
            count[i] = 1 if width[i] == 0 and (outcome[i] == MATCH or outcome[i] == TRUNCATED) else 0
        elif at == first[i] + 1:
            start[i], count[i] = pieces[first[i], BEGIN], pieces[first[i], COUNT]
        else:
            piece, rows = first[i], 0
            while piece < at:
                end = _end(piece, at, pieces)
                rows += _product(piece, end, most, pieces)
                piece = end
            total += rows * width[i]
    first[outcome.size] = at
    return int(total)


@kernel
def unite(pairs: Any, first: Any, width: Any, most: int, pieces: Any, rows: Any, out: Any, start: Any, count: Any,
          slots: Any) -> int:  # fmt: skip
    """Put the distinct rows of some pairs into `out`, of each at most one more than `most`: those of pair i are
    count[i], from start[i] on. Its pieces are those from first[i] to first[i + 1], in order of their clauses; a row of
    a piece has -1 where the other pieces of the clause have the values. `slots`: 0 at first, a power of two, twice as
    many as a pair may have rows. Returns how many places are filled."""
    used = 0
    for i in pairs:
        begin, w, at, distinct = used, width[i], first[i], 0
        while at < first[i + 1] and distinct <= most:
            end = _end(at, first[i + 1], pieces)
            alone = at == first[i] and end == first[i + 1]
            number, product = 0, _product(at, end, most, pieces)
            while number < product and distinct <= most:
                for k in range(w):
                    out[used + k] = -1
                left, number = number, number + 1
                for piece in range(end - 1, at - 1, -1):
                    row = pieces[piece, BEGIN] + left % pieces[piece, COUNT] * w
                    left //= pieces[piece, COUNT]
                    for k in range(w):
                        if rows[row + k] >= 0:
                            out[used + k] = rows[row + k]
                if alone or is_new_row(out, begin, used, w, slots):
                    used, distinct = used + w, distinct + 1
            at = end
        start[i], count[i] = begin, distinct
    return used


# --- what is the same: clauses of subscriptions, and lists of rows ---------------------------------------------------


@kernel
def forms(kind: Any, clause_offset: Any, clauses: ClauseColumns, slots: Any, form: Any) -> None:
    """Of each subscription, the first that has the same kind and clauses. `pattern` is flat here.

    `slots` is full of -1; it has a power of two places, at least twice as many as there are subscriptions.
    """
    pattern_offset, pattern, test_offset, test_variable, test = clauses
    mask = slots.size - 1
    for i in range(kind.size):
        c, d = clause_offset[i], clause_offset[i + 1]
        p, q, t, u = pattern_offset[c], pattern_offset[d], test_offset[c], test_offset[d]
        h = hash_numbers(mix_bits(np.int64(kind[i]) + 2), pattern, 3 * p, 3 * q)
        at, first = hash_numbers(hash_numbers(h, test_variable, t, u), test, t, u) & mask, -1
        while slots[at] >= 0 and first < 0:
            j = slots[at]
            e, f = clause_offset[j], clause_offset[j + 1]
            r, v, same = pattern_offset[e], test_offset[e], kind[i] == kind[j] and d - c == f - e
            for k in range(1, d - c + 1 if same else 0):
                same = same and pattern_offset[c + k] - p == pattern_offset[e + k] - r
                same = same and test_offset[c + k] - t == test_offset[e + k] - v
            if (
                same
                and same_numbers(pattern, 3 * p, pattern, 3 * r, 3 * (q - p))
                and same_numbers(test_variable, t, test_variable, v, u - t)
                and same_numbers(test, t, test, v, u - t)
            ):
                first = j
            at = (at + 1) & mask
        if first < 0:
            slots[at] = first = i
        form[i] = first


@helper
def _alike(kind: Any, group: Any, start: Any, size: Any, rows: Any, slots: Any, last: Any, number: Any,
           first: Any) -> Any:  # fmt: skip
    count, mask = 0, slots.size - 1
    for i in range(start.size):
        begin, length, g = start[i], size[i], group[i]
        if g >= 0 and last[g] >= 0 and kind[first[last[g]]] == kind[i]:
            number[i] = last[g]
            continue
        at = hash_numbers(mix_bits(np.int64(kind[i]) + length + 2), rows, begin, begin + length) & mask
        while slots[at] >= 0:
            j = first[slots[at]]
            if kind[j] == kind[i] and size[j] == length and same_numbers(rows, begin, rows, start[j], length):
                break
            at = (at + 1) & mask
        if slots[at] < 0:
            slots[at], first[count] = count, i
            count += 1
        number[i] = slots[at]
        if g >= 0:
            last[g] = number[i]
    return count


@allocating_kernel
def alike(kind: Any, group: Any, start: Any, size: Any, rows: Any) -> Any:
    """Number the lists of rows: two have the same number where `kind` and the `size` ids from `start` on in `rows` are
    the same. Returns the numbers, and of each number the first list that has it. Lists of one group >= 0 have the same
    rows, which are looked at once."""
    most = -1
    for i in range(group.size):
        most = max(most, group[i])
    slots, last = np.full(_places(kind.size), -1, np.int32), np.full(most + 1, -1, np.int32)
    number, first = np.empty(kind.size, np.int32), np.empty(kind.size, np.int32)
    return number, first[: _alike(kind, group, start, size, rows, slots, last, number, first)]


@helper
def _places(entries: Any) -> Any:
    """How many places a hash table of so many entries has: a power of two, at least twice as many."""
    places = 1
    while places < 2 * entries + 1:
        places *= 2
    return places


@helper
def _same_form(publication: Any, subscription: Any, form: Any, slots: Any, group: Any, first: Any) -> Any:
    count, mask = 0, slots.size - 1
    for i in range(publication.size):
        p, f = np.int64(publication[i]), np.int64(form[subscription[i]])
        at = mix_bits((p << 32 | f) + 2) & mask
        while slots[at] >= 0:
            j = first[slots[at]]
            if publication[j] == p and form[subscription[j]] == f:
                break
            at = (at + 1) & mask
        if slots[at] < 0:
            slots[at], first[count] = count, i
            count += 1
        group[i] = slots[at]
    return count


@helper
def _clauses_of(first: Any, count: Any, subscription: Any, is_exact: Any, clause_offset: Any, offset: Any,
                clauses: Any) -> None:  # fmt: skip
    """Put the clauses of groups down; where there is no room for any, where they begin."""
    used = 0
    for n in range(count):
        s, offset[n] = subscription[first[n]], used
        for clause in range(clause_offset[s], clause_offset[s + 1] if is_exact[s] else clause_offset[s]):
            if clauses.size > 0:
                clauses[used] = clause
            used += 1
    offset[count] = used


@allocating_kernel
def grouped_pairs(publication: Any, subscription: Any, form: Any, is_exact: Any, clause_offset: Any) -> Any:
    """Group pairs of a publication and a subscription by publication and `form`. Returns the group of each pair; of
    each group its first pair, and the clauses of the subscription there, none where it is not exact, as offsets and
    numbers."""
    group, first = np.empty(publication.size, np.int32), np.empty(publication.size, np.int32)
    slots = np.full(_places(publication.size), -1, np.int32)
    count = _same_form(publication, subscription, form, slots, group, first)
    offset, clauses = np.empty(count + 1, np.int64), np.empty(0, np.int32)
    _clauses_of(first, count, subscription, is_exact, clause_offset, offset, clauses)
    clauses = np.empty(offset[count], np.int32)
    _clauses_of(first, count, subscription, is_exact, clause_offset, offset, clauses)
    return group, first[:count], offset, clauses


# --- rows in order, as steps from each to the next -------------------------------------------------------------------


FEW = 40  # rows that are put in order by insertion
DIGIT = 11  # bits of a rank that more rows are put in order by at once


@kernel
def mark(start: Any, count: Any, width: Any, rows: Any, seen: Any) -> int:
    """Set seen[id + 1] for the ids in the rows of each list: count[i] rows from start[i] on, each width[i] long.
    Returns how many ids these are, each as often as it occurs."""
    total = 0
    for i in range(start.size):
        size = count[i] * width[i]
        for at in range(start[i], start[i] + size):
            seen[rows[at] + 1] = True
        total += size
    return total


@kernel
def bytes_of_rows(lists: Any, start: Any, count: Any, width: Any, rows: Any, terms: Any, sizes: Any) -> None:
    """sizes[n]: how many bytes the terms have in the rows of lists[n] together. `terms` is (start, end, suffix) of
    each and the bytes of each suffix; -1 is no term, and has none."""
    begin, end, suffix, suffix_bytes = terms
    for n in range(lists.size):
        i = lists[n]
        size = 0
        for at in range(start[i], start[i] + count[i] * width[i]):
            term = rows[at]
            if term >= 0:
                size += end[term] - begin[term] + suffix_bytes[suffix[term]]
        sizes[n] = size


@helper
def _is_before(a: Any, b: Any, width: Any, rows: Any, rank: Any) -> Any:
    """Does the row at a come before the row at b?"""
    k = 0
    while k < width - 1 and rows[a + k] == rows[b + k]:
        k += 1
    return rank[rows[a + k] + 1] < rank[rows[b + k] + 1]


@helper
def _order_few(begin: Any, count: Any, width: Any, rows: Any, rank: Any, order: Any) -> None:
    """Put where rows begin in the order of the rows."""
    for number in range(count):
        at, place = begin + number * width, number
        while place > 0 and _is_before(at, order[place - 1], width, rows, rank):
            order[place] = order[place - 1]
            place -= 1
        order[place] = at


@helper
def _order_many(begin: Any, count: Any, width: Any, rows: Any, rank: Any, ranks: Any, order: Any, spare: Any,
                bucket: Any) -> None:  # fmt: skip
    """`_order_few` for many rows: digit by digit, from the last one of the last column."""
    for number in range(count):
        order[number] = begin + number * width
    for k in range(width - 1, -1, -1):
        shift = 0
        while ranks >> shift:
            bucket[:] = 0
            for number in range(count):
                bucket[(rank[rows[order[number] + k] + 1] >> shift) & (bucket.size - 1)] += 1
            before = 0
            for digit in range(bucket.size):
                before, bucket[digit] = before + bucket[digit], before
            for number in range(count):
                digit = (rank[rows[order[number] + k] + 1] >> shift) & (bucket.size - 1)
                spare[bucket[digit]] = order[number]
                bucket[digit] += 1
            for number in range(count):
                order[number] = spare[number]
            shift += DIGIT


@allocating_kernel
def steps(start: Any, count: Any, width: Any, rows: Any, rank: Any, ranks: int, offset: Any, step: Any,
          completes: Any) -> None:  # fmt: skip
    """The steps through the rows of each list, as for `mark`: step[:, n] is (column, rank of what is there now), where
    rank[id + 1] < `ranks` says what the rows are ordered by. The first row of a list changes all columns, one that is
    there again its last one. `completes`, False at first, marks the last step to each row; the steps of list i begin at
    offset[i], which is one longer than there are lists."""
    most, used = 0, 0
    for i in range(start.size):
        most = max(most, count[i] if width[i] > 0 else 0)
    order, spare, bucket = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(1 << DIGIT, np.int64)
    for i in range(start.size):
        offset[i], n, w = used, count[i] if width[i] > 0 else 0, width[i]
        if n <= FEW:
            _order_few(start[i], n, w, rows, rank, order)
        else:
            _order_many(start[i], n, w, rows, rank, ranks, order, spare, bucket)
        for number in range(n):
            at, before = order[number], used
            for k in range(w):
                if number == 0 or rows[at + k] != rows[order[number - 1] + k] or (k == w - 1 and used == before):
                    step[0, used], step[1, used] = k, rank[rows[at + k] + 1]
                    used += 1
            completes[used - 1] = True
    offset[start.size] = used


# --- rows as JSON text -----------------------------------------------------------------------------------------------


_OPEN, _CLOSE, _OPEN_LIST, _CLOSE_LIST, _COMMA, _SPACE = 0x7B, 0x7D, 0x5B, 0x5D, 0x2C, 0x20


@kernel
def row_offsets(steps: Any, term_offset: Any, variable_offset: Any, first: Any, width: Any, row: Any,
                offset: Any) -> None:  # fmt: skip
    """Where the text of each list begins, and the last one ends. `steps` is (offset, column, place, completes); of list
    i, column k holds the variable first[i] + k. A term without text is unbound. Lists of width 0 have one row.

    `row` is as long as the widest list: column -> bytes of what is there."""
    begins, column, place, completes = steps
    offset[0] = 0
    for i in range(width.size):
        rows, size = 0, 0
        for n in range(begins[i], begins[i + 1]):
            k, term = column[n], place[n]
            variable = first[i] + k
            length = term_offset[term + 1] - term_offset[term]
            row[k] = length + variable_offset[variable + 1] - variable_offset[variable] if length else 0
            if completes[n]:
                bound = 0
                for c in range(width[i]):
                    size += row[c]
                    bound += 1 if row[c] else 0
                size += 2 + 2 * max(bound - 1, 0)
                rows += 1
        if width[i] == 0:
            rows, size = 1, 2
        offset[i + 1] = offset[i] + size + 2 + 2 * max(rows - 1, 0)


@helper
def _copied(text: Any, begin: Any, end: Any, out: Any, at: Any) -> Any:
    """Copy text[begin : end] to `at`; returns where it ends there."""
    for k in range(end - begin):
        out[at + k] = text[begin + k]
    return at + end - begin


@helper
def _row(row: Any, terms: Any, variables: Any, first: int, width: int, out: Any, at: int) -> int:
    """Write a row, column -> term, to `at`; returns where it ends."""
    term_text, term_offset = terms
    variable_text, variable_offset = variables
    out[at] = _OPEN
    at += 1
    begin = at
    for k in range(width):
        term, variable = row[k], first + k
        if term_offset[term + 1] > term_offset[term]:
            if at > begin:
                out[at], out[at + 1] = _COMMA, _SPACE
                at += 2
            at = _copied(variable_text, variable_offset[variable], variable_offset[variable + 1], out, at)
            at = _copied(term_text, term_offset[term], term_offset[term + 1], out, at)
    out[at] = _CLOSE
    return at + 1


@kernel
def write_rows(steps: Any, terms: Any, variables: Any, first: Any, width: Any, row: Any, offset: Any,
               out: Any) -> None:  # fmt: skip
    """Write the text of each list to where `offset` says (`row_offsets`). `terms` and `variables` are (text, offset);
    the text of a variable is what stands before its term. `row`: column -> term, as long as the widest list."""
    begins, column, place, completes = steps
    for i in range(width.size):
        at = offset[i]
        out[at] = _OPEN_LIST
        at += 1
        begin = at
        if width[i] == 0:
            at = _row(row, terms, variables, first[i], width[i], out, at)
        for n in range(begins[i], begins[i + 1]):
            row[column[n]] = place[n]
            if completes[n]:
                if at > begin:
                    out[at], out[at + 1] = _COMMA, _SPACE
                    at += 2
                at = _row(row, terms, variables, first[i], width[i], out, at)
        out[at] = _CLOSE_LIST

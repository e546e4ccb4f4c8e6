"""The tests of each term, as slices by term.

They are made from the words of terms, gathered from pairs (term, test), or joined. Also: where the numbers of a batch
lie among the constants of a scale.

    for each term:  for each test of its words (or pairs, or slices), in any order:
                        append it unless seen[test] is the mark of this term, and mark it
                    sort the slice if it is long
    place of a number = how many constants are less than it, and how many less or equal, by binary search

Slices hold a test once. Only long ones are ascending (`triplewire.kernels.shared.search`): to sort the others as well
would take longer than all else here.

What the tests are: `triplewire.clauses.node_tests.table`. Who asks: `triplewire.clauses.view`,
`triplewire.clauses.node_tests.ranges`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.compiled import called_helper, helper, kernel
from triplewire.kernels.shared.search import LONG, lower, sort_numbers, upper

_wide: Any = np.uint64  # of an index: that it is not negative


@helper
def add_test(test: int, mark: int, count: int, seen: Any, out: Any) -> Any:
    """Append a test that is not marked as seen, and mark it; returns how many there are then. Without room it is only
    counted: the last place is written in any case, so there has to be one more than is used."""
    out[_wide(min(count, out.size - 1))] = test
    count += seen[_wide(test)] != mark
    seen[_wide(test)] = mark
    return count


@helper
def add_word(code: int, mark: int, test_offset: Any, tests: Any, seen: Any, out: Any, count: int) -> Any:
    """`add_test` for each test of a word with this code (`word_codes`)."""
    if code >= 0:
        return add_test(code, mark, count, seen, out)
    row = -1 - code
    for i in range(test_offset[row], test_offset[row + 1]):
        count = add_test(tests[i], mark, count, seen, out)
    return count


@helper
def end_slice(begin: int, count: int, out: Any) -> None:
    """A slice of tests is whole: sort it if it is a long one."""
    if count - begin > LONG and count < out.size:
        sort_numbers(out, begin, count)


@called_helper
def codes_of_words(row: Any, test_offset: Any, tests: Any, none: int, code: Any) -> int:
    """See `word_codes`."""
    asking = 0
    for word in range(row.size):
        test = none
        if row[word] >= 0:
            first, size = test_offset[row[word]], test_offset[row[word] + 1] - test_offset[row[word]]
            test = tests[first] if size == 1 else -1 - row[word] if size > 1 else none
        code[word] = test
        asking += test != none
    return asking


@kernel
def word_codes(row: Any, test_offset: Any, tests: Any, none: int, code: Any) -> int:
    """What each word asks for: its test if it has one; `none` if it has none; -1 - its row if it has several. `row`:
    the row of each word, or -1, whose tests are the slice `test_offset` of `tests`. Returns how many ask for some."""
    return codes_of_words(row, test_offset, tests, none, code)


@kernel
def from_words(offset: Any, ids: Any, code: Any, test_offset: Any, tests: Any, seen: Any, out_offset: Any,
               out: Any) -> int:  # fmt: skip
    """The tests of the words of each term, as slices of `out`: `ids` holds the words of term t at offset[t] ..
    offset[t + 1], `code` is that of each word. `seen`: a number for each test and one for none, all 0.

    Returns how many there are; those beyond the room in `out`, which is for one more than there are words, are not
    written.
    """
    count = 0
    for term in range(offset.size - 1):
        seen[seen.size - 1] = term + 1
        out_offset[term] = count
        for i in range(offset[term], offset[term + 1]):
            count = add_word(code[ids[_wide(i)]], term + 1, test_offset, tests, seen, out, count)
        end_slice(out_offset[term], count, out)
    out_offset[offset.size - 1] = count
    return count


@kernel
def from_few_words(offset: Any, ids: Any, code: Any, test_offset: Any, tests: Any, seen: Any, out_offset: Any, out: Any,
                   asking: Any) -> int:  # fmt: skip
    """`from_words` where most words ask for nothing: those that do are looked for first, in one go over all texts.
    `asking`: scratch, one number more than there are `ids`."""
    none, last, count, next_ = seen.size - 1, 0, 0, 0
    for i in range(ids.size):
        asking[_wide(last)] = i
        last += code[ids[i]] != none
    asking[last] = ids.size
    for term in range(offset.size - 1):
        out_offset[term] = count
        while asking[_wide(next_)] < offset[term + 1]:
            count = add_word(code[ids[asking[_wide(next_)]]], term + 1, test_offset, tests, seen, out, count)
            next_ += 1
        end_slice(out_offset[term], count, out)
    out_offset[offset.size - 1] = count
    return count


@helper
def _admits(wanted: int, kind: int) -> bool:
    """Is a node of this kind meant? `kind`: suffix * 32 + a bit of 1, 2, 4, + bits of 8 and 16 for odd texts.
    `wanted`: a suffix * 32, or a set of kinds and of the oddities that are not meant."""
    if wanted >= 32:
        return (wanted >> 5) == (kind >> 5)
    return (wanted & kind & 7) != 0 and (wanted & kind & 24) == 0


@kernel
def spread(
    pair_term: Any, pair_row: Any, test_offset: Any, tests: Any, wanted: Any, kind: Any, out_term: Any, out_test: Any
) -> int:
    """From pairs (term, row) to pairs (term, test): the tests of the row that are meant for terms of this `kind`.

    Returns how many pairs there are; those beyond the room are not written.
    """
    count = 0
    for i in range(pair_term.size):
        term, row = pair_term[i], pair_row[i]
        for j in range(test_offset[row], test_offset[row + 1]):
            if _admits(wanted[j], kind[term]):
                if count < out_term.size:
                    out_term[count] = term
                    out_test[count] = tests[j]
                count += 1
    return count


@kernel
def gather(pair_term: Any, pair_test: Any, seen: Any, offset: Any, test: Any) -> int:
    """The pairs as slices, one a term: `offset` is one longer than the terms, `test` has room for all pairs. `seen`: a
    number for each test, all 0. Returns how many are left."""
    offset[:] = 0
    for i in range(pair_term.size):
        offset[pair_term[i] + 1] += 1
    for term in range(offset.size - 1):
        offset[term + 1] += offset[term]
    for i in range(pair_term.size - 1, -1, -1):  # fill each slice from its end: offset[t + 1] comes down to its start
        place = offset[pair_term[i] + 1] - 1
        offset[pair_term[i] + 1] = place
        test[place] = pair_test[i]
    count = 0
    for term in range(offset.size - 1):  # now offset[t + 1] is where the slice of t begins
        low = offset[term + 1]
        high = offset[term + 2] if term + 2 < offset.size else pair_term.size
        offset[term] = count
        for i in range(low, high):
            number = test[i]
            test[count] = number
            count += seen[number] != term + 1
            seen[number] = term + 1
        if count - offset[term] > LONG:
            sort_numbers(test, offset[term], count)
    offset[offset.size - 1] = count
    return count


@kernel
def join_slices(offset: Any, tests: Any, other_offset: Any, others: Any, seen: Any, out_offset: Any, out: Any) -> int:
    """The two slices of each term as one of `out`, which has room for all. `seen`: a number for each test, all 0.
    Returns how many are left, as a test that is in both is left once."""
    count = 0
    for term in range(offset.size - 1):
        begin, size = offset[term], offset[term + 1] - offset[term]
        other_begin, other_size = other_offset[term], other_offset[term + 1] - other_offset[term]
        out_offset[term] = count
        for i in range(size):
            out[count + i] = tests[begin + i]
        for i in range(size if other_size > 0 else 0):
            seen[tests[begin + i]] = term + 1
        count += size
        for i in range(other_size):
            number = others[other_begin + i]
            out[count] = number
            count += seen[number] != term + 1
        if other_size > 0 and count - out_offset[term] > LONG:
            sort_numbers(out, out_offset[term], count)
    out_offset[offset.size - 1] = count
    return count


# --- places of numbers among the constants of a lenient scale --------------------------------------------------------

_NO_NUMBER, _EXACT = 0, 1
_BLANK, _LITERAL = 2, 3


@kernel
def number_places(
    kind: Any, state: Any, number: Any, keys: Any, inexact: Any, below: Any, upto: Any, unknown: Any
) -> int:
    """Of each term, how many constants are less than its number, and how many less or equal; both are -1 where it has
    none. The terms of which doubles do not say so go to `unknown`; returns how many they are."""
    count = 0
    for term in range(kind.size):
        low = high = -1
        if state[term] != _NO_NUMBER and kind[term] != _BLANK:
            is_unknown = state[term] != _EXACT
            if not is_unknown:
                low = lower(keys, 0, keys.size, number[term])
                high = upper(keys, low, keys.size, number[term])
                is_unknown = low < high and inexact[high] > inexact[low]
            if is_unknown:
                unknown[count] = term
                count += 1
        below[term], upto[term] = low, high
    return count


@kernel
def group_places(kind: Any, below: Any, upto: Any, has_iris: bool, low: Any, high: Any) -> None:
    """The places in a range group: of literals, and of IRIs where it has any. An IRI may be equal to a number, but is
    not in order with it."""
    for term in range(kind.size):
        is_there = has_iris or kind[term] == _LITERAL
        low[term] = below[term] if is_there else -1
        high[term] = upto[term] if is_there else -1


@kernel
def tests_between(row: Any, low: Any, high: Any, offset: Any, test: Any, out_row: Any, out_test: Any) -> int:
    """Each row with the tests of the constants low .. high, where low is not -1: those of constant c are the slice
    `offset` of `test`. Returns how many there are; those beyond the room are not written."""
    count = 0
    for i in range(row.size):
        if low[i] >= 0:
            for k in range(offset[low[i]], offset[high[i]]):
                if count < out_row.size:
                    out_row[count], out_test[count] = row[i], test[k]
                count += 1
    return count

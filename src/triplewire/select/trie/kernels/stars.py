"""The atom sets of clauses: the patterns of each, grouped by subject into stars (`docs/matching.md`, section 1).

    for each clause, for each subject of its patterns:
        set = the subject as a term, or by its tests
        for each pattern of the subject: the object as a term; or by its tests, a lower and an upper bound as one
            window; or, without tests, that there is such a triple

An atom is what a star asks of its subject, as a 64-bit key: predicate, kind, id.

    key = (predicate + 2) << 34 | kind << 32 | id       predicate: a term id; -1 any; -2 the subject itself
    kind 0: the object is this term     kind 1: the object satisfies this test
    kind 2: there is such a triple      kind 3: its value lies in a range; id = range group * 8 + operator, with a rank

A lower and an upper bound of one value are one element, a window: its id is that of the lower one, and from LAST on
that of the upper one; its rank is that of the lower one from LOW on, and that of the upper one.

How many solutions can a clause have that joins nothing? What bounds them is found once for all clauses alike:

    bound of a clause = how many variable subjects (-1 for ASK), how many variable predicates, and the predicates that
                        have variable objects, ascending
    code = status << STATUS | how many objects are variable, with LOOSE; or GENERAL, where only the bound tells
    need = code << NUMBER | the number of the bound among the distinct ones, found by a hash table

What the keys become: `triplewire.select.trie.build`. The atoms that a publication has:
`triplewire.select.trie.kernels.atoms`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import AT_MOST, ClauseColumns, TestColumns, is_found
from triplewire.kernels.shared.compiled import allocating_kernel, called_helper, helper, kernel
from triplewire.kernels.shared.hashing import hash_numbers
from triplewire.kernels.shared.search import same_numbers

TERM, TEST, ANY, RANGE = 0, 1, 2, 3
SUBJECT, WILD = -2, -1  # in place of a predicate
LAST, LOW = 16, 32  # bits below the id of an upper bound, and below the rank of a lower one

SURE, MULTI, CHECK = 0, 1, 2
"""What a clause whose stars are all there is: a match; a match unless a subject has several tested objects under one
predicate; a candidate."""

_MOST_PATTERNS = 256  # of a clause whose status is worked out
_int: Any = np.int64


@helper
def atom_key(predicate: int, kind: int, number: int) -> Any:
    """The key of an atom: see above."""
    return (_int(predicate + 2) << 34) | (_int(kind) << 32) | _int(number)


@called_helper
def _status(clauses: ClauseColumns, tests: TestColumns, p0: int, p1: int, t0: int, t1: int) -> int:
    """SURE, MULTI or CHECK for the clause with the patterns p0 .. p1 and the tests t0 .. t1."""
    pattern, status = clauses.pattern, SURE
    for t in range(t0, t1):
        if not is_found(clauses.test[t], tests):
            return CHECK
    for i in range(p0, p1):
        for place in range(3):
            code = pattern[i, place]
            if code >= 0:
                continue
            as_subject, elsewhere = 0, 0
            for j in range(p0, p1):
                as_subject += pattern[j, 0] == code
                elsewhere += pattern[j, 1] == code
                elsewhere += pattern[j, 2] == code
            if elsewhere > 1 or (elsewhere == 1 and as_subject > 0):
                return CHECK
            tested = 0
            for t in range(t0, t1):
                if clauses.test_variable[t] == -1 - code:
                    tested += 1
                    if place == 1 or (place == 0 and tests.op[clauses.test[t]] != 0):
                        return CHECK
            if place == 2 and tested > 1:
                status = MULTI
    return status


@called_helper
def _add(out_key: Any, out_rank: Any, end: int, first: int, key: int, rank: int) -> int:
    """Add an element to the set that begins at `first`, unless it is there; returns the new end."""
    for i in range(first, end):
        if out_key[i] == key and out_rank[i] == rank:
            return end
    out_key[end] = key
    out_rank[end] = rank
    return end + 1


@helper
def _range_id(test: int, tests: TestColumns) -> Any:
    """The id of a range test."""
    return _int(tests.group[test]) * 8 + tests.op[test]


@called_helper
def _bound(code: int, t0: int, t1: int, is_upper: bool, clauses: ClauseColumns, tests: TestColumns) -> Any:
    """The first lower or upper bound among the tests of a variable: its id, and the rank of the closest bound with that
    id; -1 for both where there is none."""
    bound, rank = _int(-1), _int(-1)
    for t in range(t0, t1):
        test = clauses.test[t]
        if clauses.test_variable[t] == -1 - code and tests.op[test] != 0 and is_found(test, tests):
            range_id = _range_id(test, tests)
            is_such = (tests.op[test] <= AT_MOST) == is_upper and range_id >> LAST == 0
            if is_such and (bound < 0 or bound == range_id):
                is_closest = rank < 0 or (tests.rank[test] < rank) == is_upper
                bound, rank = range_id, _int(tests.rank[test]) if is_closest else rank
    return bound, rank


@called_helper
def _object_atoms(predicate: int, code: int, t0: int, t1: int, clauses: ClauseColumns, tests: TestColumns, out_key: Any,
                  out_rank: Any, end: int, first: int) -> int:  # fmt: skip
    """The atoms of one pattern's object."""
    if code >= 0:
        return _add(out_key, out_rank, end, first, atom_key(predicate, TERM, code), -1)
    lower, low = _bound(code, t0, t1, False, clauses, tests)
    upper, high = _bound(code, t0, t1, True, clauses, tests)
    is_tested = is_window = lower >= 0 and upper >= 0
    if is_window:
        key = atom_key(predicate, RANGE, upper << LAST | lower)
        end = _add(out_key, out_rank, end, first, key, low << LOW | high)
    for t in range(t0, t1):
        test = clauses.test[t]
        if clauses.test_variable[t] == -1 - code and is_found(test, tests):
            is_tested = True
            key, rank = atom_key(predicate, TEST, test), _int(-1)
            if tests.op[test] != 0:
                range_id, rank = _range_id(test, tests), _int(tests.rank[test])
                if is_window and range_id in (lower, upper):
                    continue
                key = atom_key(predicate, RANGE, range_id)
            end = _add(out_key, out_rank, end, first, key, rank)
    return end if is_tested else _add(out_key, out_rank, end, first, atom_key(predicate, ANY, 0), -1)


@called_helper
def _star(i: int, p1: int, t0: int, t1: int, clauses: ClauseColumns, tests: TestColumns, out_key: Any, out_rank: Any,
          end: int) -> int:  # fmt: skip
    """The set of the star whose first pattern is `i`; returns its end."""
    pattern, first = clauses.pattern, end
    subject = pattern[i, 0]
    if subject >= 0:
        end = _add(out_key, out_rank, end, first, atom_key(SUBJECT, TERM, subject), -1)
    else:
        for t in range(t0, t1):
            test = clauses.test[t]
            if clauses.test_variable[t] == -1 - subject and is_found(test, tests) and not tests.op[test]:
                end = _add(out_key, out_rank, end, first, atom_key(SUBJECT, TEST, test), -1)
    for j in range(i, p1):
        if pattern[j, 0] == subject:
            predicate = pattern[j, 1] if pattern[j, 1] >= 0 else WILD
            end = _object_atoms(predicate, pattern[j, 2], t0, t1, clauses, tests, out_key, out_rank, end, first)
    return end


@helper
def _is_first(pattern: Any, p0: int, i: int) -> Any:
    """Is the pattern i the first one of its subject, of those from p0 on?"""
    j = p0
    while j < i and pattern[j, 0] != pattern[i, 0]:
        j += 1
    return j == i


@kernel
def count_stars(clauses: ClauseColumns) -> tuple[int, int]:
    """(stars, an upper bound of the elements of their sets) over all clauses."""
    stars, elements = 0, 0
    for c in range(clauses.pattern_offset.size - 1):
        for i in range(clauses.pattern_offset[c], clauses.pattern_offset[c + 1]):
            tests = clauses.test_offset[c + 1] - clauses.test_offset[c]
            elements += 1 + tests
            if _is_first(clauses.pattern, clauses.pattern_offset[c], i):
                stars += 1
                elements += 1 + tests
    return stars, elements


@kernel
def stars(
    clauses: ClauseColumns, tests: TestColumns, set_clause: Any, set_offset: Any, out_key: Any, out_rank: Any
) -> int:
    """The atom set of each star of each clause. Returns the number of sets; set k is the slice set_offset[k] ..
    set_offset[k + 1] of `out_key` and `out_rank` (-1 but for ranges)."""
    end, count = 0, 0
    set_offset[0] = 0
    for c in range(clauses.pattern_offset.size - 1):
        p0, p1 = clauses.pattern_offset[c], clauses.pattern_offset[c + 1]
        t0, t1 = clauses.test_offset[c], clauses.test_offset[c + 1]
        for i in range(p0, p1):
            if _is_first(clauses.pattern, p0, i):
                end = _star(i, p1, t0, t1, clauses, tests, out_key, out_rank, end)
                set_clause[count] = c
                count += 1
                set_offset[count] = end
    return count


@kernel
def statuses(clauses: ClauseColumns, tests: TestColumns, status: Any) -> None:
    """Fill in the status of every clause."""
    for c in range(clauses.pattern_offset.size - 1):
        p0, p1 = clauses.pattern_offset[c], clauses.pattern_offset[c + 1]
        if p1 - p0 > _MOST_PATTERNS:
            status[c] = CHECK
        else:
            status[c] = _status(clauses, tests, p0, p1, clauses.test_offset[c], clauses.test_offset[c + 1])


@helper
def _is_behind(i: int, other_share: float, other_atom: int, other_rank: int, share: Any, atom: Any, rank: Any) -> Any:
    """Does element i belong behind the one with these?"""
    is_later = (atom[i] > other_atom) | ((atom[i] == other_atom) & (rank[i] > other_rank))
    return (share[i] > other_share) | ((share[i] == other_share) & is_later)


@kernel
def order_sets(set_offset: Any, atom: Any, rank: Any, share: Any, first_range: int, out_offset: Any, out: Any) -> None:
    """Each set as a sequence of labels: its atoms ascending, and behind each range atom its rank or window. Range atoms
    come last, those first that the smallest share of values satisfies.

    `atom`, `rank` and `share` are sorted in place within each set; `out` holds two labels an element at the most. The
    share of other atoms is below that of all range atoms.
    """
    end = 0
    out_offset[0] = 0
    for k in range(set_offset.size - 1):
        for i in range(set_offset[k], set_offset[k + 1]):
            a, r, s, j = atom[i], rank[i], share[i], i
            while j > set_offset[k] and _is_behind(j - 1, s, a, r, share, atom, rank):
                atom[j], rank[j], share[j] = atom[j - 1], rank[j - 1], share[j - 1]
                j -= 1
            atom[j], rank[j], share[j] = a, r, s
        for i in range(set_offset[k], set_offset[k + 1]):
            out[end] = atom[i]
            end += 1
            if atom[i] >= first_range:
                out[end] = rank[i]
                end += 1
        out_offset[k + 1] = end


# --- bounds: how many solutions can a clause have that joins nothing? -------------------------------------------------

NUMBER = 23  # bits of the number of a bound, in a need
STATUS = 6  # bits below the status, in a code
LOOSE = 32  # in a code: two of the predicates are the same, or one is variable
GENERAL = 31  # in a code: only the bound tells; smaller numbers count the variable objects


@called_helper
def _stated(pattern: Any, p0: int, p1: int, ask: bool, out: Any) -> int:
    """Write the bound of a clause, with its predicates ascending; returns its length."""
    subjects, wild, end = 0, 0, 2
    for i in range(p0, p1):
        subjects += pattern[i, 0] < 0 and _is_first(pattern, p0, i)
        wild += pattern[i, 1] < 0
        if pattern[i, 1] >= 0 and pattern[i, 2] < 0:
            place = end
            while place > 2 and out[place - 1] > pattern[i, 1]:
                out[place] = out[place - 1]
                place -= 1
            out[place] = pattern[i, 1]
            end += 1
    out[0], out[1] = -1 if ask else subjects, wild
    return end


@called_helper
def _code(bound: Any, end: int, status: int) -> Any:
    """A clause at a glance: status << STATUS, and how many objects are variable, LOOSE or GENERAL."""
    if bound[0] < 0:
        return np.int64(status) << STATUS
    repeated = False
    for i in range(3, end):
        repeated = repeated or bound[i] == bound[i - 1]
    free = end - 2 + bound[1]
    if bound[0] > 1 or bound[1] > 1 or free >= GENERAL:
        free = GENERAL
    elif repeated or bound[1] > 0:
        free |= LOOSE
    return np.int64(status) << STATUS | free


@called_helper
def _slot_of(slots: Any, offset: Any, bounds: Any, bound: Any, end: int) -> Any:
    """Where a bound is in the table, or the free slot where it belongs."""
    mask = slots.size - 1
    slot, is_there = hash_numbers(np.int64(end), bound, 0, end) & mask, False
    while slots[slot] >= 0 and not is_there:
        first = offset[slots[slot]]
        is_there = offset[slots[slot] + 1] - first == end and same_numbers(bounds, first, bound, 0, end)
        slot = slot if is_there else (slot + 1) & mask
    return slot


@allocating_kernel
def number_bounds(clauses: ClauseColumns, ask: Any, status: Any, offset: Any, bounds: Any, code: Any, need: Any) -> int:
    """The bounds that occur: number k is bounds[offset[k] : offset[k + 1]]. Of each clause: its code, and as its need
    its code << NUMBER | the number of its bound, which is empty where it is to be checked. Where there are too many
    bounds to be numbered, a clause has the code of one that is to be checked. ask[c]: is it a clause of an ASK query?
    Returns how many bounds there are."""
    pattern_offset, longest = clauses.pattern_offset, 0
    for c in range(status.size):
        longest = max(longest, pattern_offset[c + 1] - pattern_offset[c])
    bound, slots, count = np.empty(longest + 2, np.int32), np.empty(64, np.int32), 0
    slots[:] = -1
    offset[0] = 0
    for c in range(status.size):
        last = pattern_offset[c] if status[c] == CHECK else pattern_offset[c + 1]  # nobody asks for its bound
        end = _stated(clauses.pattern, pattern_offset[c], last, ask[c], bound)
        slot = _slot_of(slots, offset, bounds, bound, end)
        if slots[slot] < 0 and count >> NUMBER:
            code[c], need[c] = CHECK << STATUS, CHECK << STATUS << NUMBER
            continue
        if slots[slot] < 0:
            first = offset[count]
            for i in range(end):
                bounds[first + i] = bound[i]
            slots[slot] = count
            count += 1
            offset[count] = first + end
        code[c] = _code(bound, end, status[c])
        need[c] = np.int64(code[c]) << NUMBER | slots[slot]
        if 2 * count >= slots.size:
            slots = np.empty(4 * slots.size, np.int32)
            slots[:] = -1
            for number in range(count):
                known = bounds[offset[number] : offset[number + 1]]
                slots[_slot_of(slots, offset, bounds, known, known.size)] = number
    return count

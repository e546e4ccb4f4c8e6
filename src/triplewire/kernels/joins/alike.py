"""What is the same: subscriptions with the same clauses, and lists of rows. Much of what matches a publication is.

Used by `triplewire.verify.batch_verifier`, so that such matches are solved once, and by `triplewire.verify.rows`, so
that their bindings become objects once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import ClauseColumns
from triplewire.kernels.shared.compiled import kernel
from triplewire.kernels.shared.hashing import hash_numbers, mix_bits
from triplewire.kernels.shared.search import same_numbers


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


@kernel
def alike(kind: Any, group: Any, start: Any, size: Any, rows: Any, slots: Any, last: Any, number: Any,
          first: Any) -> int:  # fmt: skip
    """Number the lists of rows: two have the same number where `kind` and the `size` ids from `start` on in `rows` are
    the same. first[n] is the first list with the number n. Returns how many numbers there are. Lists of one group >= 0
    have the same rows, which are looked at once.

    `slots` is full of -1; it has a power of two places, at least twice as many as there are lists. `last`: -1 for each
    group.
    """
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

"""Which patterns of a clause hang together? Those that share a variable do; others are solved apart.

    for each clause:  for each pattern: join the sets of its variables
                      number the sets by their first patterns; a pattern without variables is a set of its own
                      for each set: its patterns, how many selected variables it has, and has it no others?

Used once for the clauses of a segment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from triplewire.kernels.shared.columns import Triples
from triplewire.kernels.shared.compiled import allocating_kernel, called_helper
from triplewire.kernels.shared.search import root, sort_by


@called_helper
def _number(first: Any, end: Any, pattern: Any, parent: Any, number: Any, part: Any) -> int:
    """The component of each of the patterns first .. end, in `part`; returns how many there are."""
    for i in range(first, end):
        for k in range(3):
            if pattern[i, k] < 0:
                parent[-1 - pattern[i, k]] = -1 - pattern[i, k]
                number[-1 - pattern[i, k]] = -1
    for i in range(first, end):
        seen = -1
        for k in range(3):
            if pattern[i, k] < 0:
                its_root = root(parent, -1 - pattern[i, k])
                if seen >= 0:
                    parent[its_root] = seen
                seen = root(parent, its_root)
    count = 0
    for i in range(first, end):
        seen = -1
        for k in range(3):
            if pattern[i, k] < 0:
                seen = root(parent, -1 - pattern[i, k])
        if seen < 0 or number[seen] < 0:
            part[i] = count
            count += 1
            if seen >= 0:
                number[seen] = part[i]
        else:
            part[i] = number[seen]
    return count


@allocating_kernel
def components(pattern_offset: Any, pattern: Any, width: Any, variables: int, offset: Any, component: Any,
               member: Any) -> None:  # fmt: skip
    """The components of each clause: its slice in `offset` of the rows of `component`, which are (where its patterns
    begin among the clause's in `member`, how many they are, how many selected variables they have, have they no
    others?). A member is the number of a pattern in its clause. `component` and `member` have a row for each pattern.

    `pattern` has a variable v as -1 - v; it is selected if v < width[clause]. `variables` is the largest number of
    variables of a clause.
    """
    parent, number = np.empty(variables, np.int64), np.empty(variables, np.int64)
    part, seen = np.empty(member.size, np.int64), np.empty(variables, np.int64)
    seen[:] = -1
    rows, members, offset[0] = 0, 0, 0
    for clause in range(width.size):
        first, end = pattern_offset[clause], pattern_offset[clause + 1]
        for k in range(_number(first, end, pattern, parent, number, part)):
            begin, needed, alone = members, 0, 1
            for i in range(first, end):
                if part[i] != k:
                    continue
                member[members] = i - first
                members += 1
                for q in range(3):
                    variable = -1 - pattern[i, q]
                    if variable >= width[clause]:
                        alone = 0
                    elif variable >= 0 and seen[variable] != clause:
                        seen[variable] = clause
                        needed += 1
            component[rows, 0], component[rows, 1] = begin - first, members - begin
            component[rows, 2], component[rows, 3] = needed, alone
            rows += 1
        offset[clause + 1] = rows


@allocating_kernel
def sort_triples(publications: Any, triples: Triples, key_offset: Any, keys: Any) -> None:
    """The triples of some publications by (predicate, object) and, behind them, by (object, subject): the two ids in
    64 bits. key_offset[p] is where those of publication p begin in `keys`; behind both, in the same order, are the
    numbers of the triples."""
    triple_offset, subject, predicate, object_ = triples
    most = 0
    for p in publications:
        most = max(most, triple_offset[p + 1] - triple_offset[p])
    order, key = np.empty(most, np.int32), np.empty(most, np.int64)
    for p in publications:
        first, n, place = triple_offset[p], triple_offset[p + 1] - triple_offset[p], key_offset[p]
        for half in range(2):
            for i in range(n):
                t = first + i
                order[i] = i
                key[i] = np.int64(predicate[t] if half == 0 else object_[t]) << 32
                key[i] |= object_[t] if half == 0 else subject[t]
            sort_by(order, key, 0, n)
            for i in range(n):
                keys[place + i], keys[place + i + 2 * n] = key[order[i]], first + order[i]
            place += n

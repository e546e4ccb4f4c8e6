"""Several indexes as one, without the subscriptions that are gone: nothing is parsed again.

Constants and tests that no subscription uses any more are left behind, so that an index does not grow while
subscriptions come and go. `triplewire.engine.snapshot` says when segments are merged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from triplewire.encode.batch import Ids
from triplewire.encode.names import Names
from triplewire.select.columns import slices
from triplewire.select.index import Index
from triplewire.select.programs import Programs
from triplewire.select.tests import Tests
from triplewire.select.trie import build_trie

Kept = NDArray[np.int64]


def merge(parts: Sequence[tuple[Index, Kept]]) -> Index:
    """One index of the kept subscriptions (ascending numbers) of each part, numbered on from part to part."""
    taken = [_taken(index.programs, kept) for index, kept in parts]
    terms, term_numbers = _joined_terms([index.terms for index, _ in parts], taken)
    used = [np.unique(programs.test) for programs in taken]
    tests, test_numbers = Tests.union([index.tests for index, _ in parts], used)
    for number, programs in enumerate(taken):
        constant = programs.pattern >= 0
        programs.pattern[constant] = term_numbers[number][programs.pattern[constant]]
        programs.test[:] = test_numbers[number][programs.test]
    programs = Programs(
        _offsets([part.clause_offset for part in taken]),
        _offsets([part.pattern_offset for part in taken]),
        np.concatenate([part.pattern for part in taken]),
        _offsets([part.test_offset for part in taken]),
        *(
            np.concatenate([getattr(part, name) for part in taken])
            for name in ("test_variable", "test", "variables", "selected", "flags")
        ),
    )
    return Index(terms, tests, programs, build_trie(programs, tests, len(terms)))


def _taken(programs: Programs, kept: Kept) -> Programs:
    """The programs of some subscriptions, copied."""
    clause_offset, clauses = slices(programs.clause_offset, kept)
    pattern_offset, patterns = slices(programs.pattern_offset, clauses)
    test_offset, tests = slices(programs.test_offset, clauses)
    return Programs(
        clause_offset.astype(np.int32),
        pattern_offset.astype(np.int32),
        programs.pattern[patterns],
        test_offset.astype(np.int32),
        programs.test_variable[tests],
        programs.test[tests],
        programs.variables[clauses],
        programs.selected[kept],
        programs.flags[kept],
    )


def _offsets(parts: Sequence[Ids]) -> Ids:
    """The offsets of several tables that are put one behind the other."""
    ends = np.concatenate(([0], np.cumsum([part[-1] for part in parts])))
    shifted = [part[1:] + shift for part, shift in zip(parts, ends[:-1].tolist(), strict=True)]
    return np.concatenate([np.zeros(1, np.int32), *shifted])


def _joined_terms(tables: Sequence[Names], programs: Sequence[Programs]) -> tuple[Names, list[Ids]]:
    """One table of the constants that are used, and the new number of each of them."""
    table, numbers = tables[0], []
    for number, (own, program) in enumerate(zip(tables, programs, strict=True)):
        used = np.unique(program.pattern[program.pattern >= 0])
        new = np.full(len(own), -1, np.int32)
        if number == 0:
            table = own.taken(used)
            new[used] = np.arange(len(used))
        else:
            table, new[used] = table.extended(own, used)
        numbers.append(new)
    return table, numbers

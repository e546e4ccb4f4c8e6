"""What the terms and words of a few publications are to clauses, in one call and in work areas that stay.

What is done: `triplewire.kernels.text.names` and `triplewire.kernels.pairs`. Who calls:
`triplewire.clauses.node_tests.few`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from triplewire.kernels.pairs import codes_of_words, tests_of_words
from triplewire.kernels.shared.columns import take_batch
from triplewire.kernels.shared.compiled import kernel
from triplewire.kernels.shared.lending import Field, borrowed, places
from triplewire.kernels.text.names import Spans, StringTable, find_rows


class WordPostings(NamedTuple):
    """The tests of each word of a table."""

    offset: Any
    test: Any


class Areas(NamedTuple):
    """Work areas: rows and codes of words; `seen` (`triplewire.kernels.pairs.from_words`) is 0 in between."""

    row: Any
    code: Any
    seen: Any
    no_kinds: Any  # what words have in place of a kind and a suffix
    no_numbers: Any
    no_offsets: Any


_bytes, _ids, _longs = Field(np.uint8), Field(np.int32), Field(np.int64)
_STRINGS = (_bytes, _longs, _bytes, Field(np.uint64), _ids)
LENT = (
    (StringTable, _STRINGS),
    (StringTable, _STRINGS),
    (WordPostings, (_longs, _ids)),
    (Areas, (_ids, _ids, _ids, _bytes, _ids, _longs)),
)
"""What is in the table of addresses, in its order: constants, words, their tests, work areas."""

_CONSTANTS, _WORDS, _POSTINGS, _AREAS = places(LENT)
_take_constants, _take_words, _take_postings, _take_areas = (borrowed(kind, fields) for kind, fields in LENT)


@kernel
def look_up(lent: Any, batch_table: Any, term: Any, offset: Any, test: Any) -> int:
    """`batch_table`: the addresses of a batch. `term`: the number of each of its terms among the constants, or -1;
    `offset` and `test`: the tests of the words of each term. Returns how many tests there are; if `test` has no more
    room than that, what is written there is nonsense."""
    areas, postings = _take_areas(lent, _AREAS), _take_postings(lent, _POSTINGS)
    batch = take_batch(batch_table, 0)
    texts = Spans(batch.text, batch.start, batch.end, batch.kind, batch.suffix, batch.suffix_text, batch.suffix_offset)
    find_rows(texts, batch.hash, _take_constants(lent, _CONSTANTS), term)
    count = batch.word_start.size
    row, code, seen = areas.row[:count], areas.code[:count], areas.seen
    no_suffixes = areas.no_numbers, areas.no_kinds, areas.no_offsets
    spans = Spans(batch.word_text, batch.word_start, batch.word_end, areas.no_kinds, *no_suffixes)
    find_rows(spans, batch.word_hash, _take_words(lent, _WORDS), row)
    codes_of_words(row, postings.offset, postings.test, seen.size - 1, code)
    tests = tests_of_words(batch.word_offset, batch.word_ids, code, postings.offset, postings.test, seen, offset, test)
    if tests < test.size:
        seen[seen.size - 1] = 0
        for i in range(tests):
            seen[test[i]] = 0
    else:
        seen[:] = 0
    return tests

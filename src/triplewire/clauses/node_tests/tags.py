"""Tests of a literal's language: LANG and LANGMATCHES of SPARQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from triplewire.clauses.node_tests.columns import Arrays, grouped
from triplewire.clauses.node_tests.postings import Posting
from triplewire.clauses.node_tests.substrings import Pairs
from triplewire.encode.batch import LITERAL_KIND, Ids, Offsets, Terms
from triplewire.ir.values.strings import language_matches


@dataclass(frozen=True, slots=True)
class Languages:
    """What is asked of the language, each with a slice of tests."""

    asked: tuple[tuple[str, str], ...]  # "=" and a language ("" for none), "~" and a language range
    offset: Offsets
    test: Ids

    def meta(self) -> list[Any]:
        """What is not in `arrays`, for JSON."""
        return [list(key) for key in self.asked]

    def arrays(self) -> Arrays:
        """The rest."""
        return {"offset": self.offset, "test": self.test}

    @classmethod
    def from_arrays(cls, arrays: Arrays, meta: Sequence[Sequence[str]]) -> Languages:
        """What `arrays` and `meta` gave."""
        a: dict[str, Any] = dict(arrays)
        return cls(tuple([(op, text) for op, text in meta]), a["offset"], a["test"])

    def pairs(self, terms: Terms) -> Pairs:
        """The tests that hold of each term."""
        languages = [suffix[1:] if suffix[:1] == "@" else "" for suffix in terms.suffixes]
        parts: list[Pairs] = [(np.zeros(0, np.int32), np.zeros(0, np.int32))]
        for number, (op, text) in enumerate(self.asked):
            holds = [tag == text if op == "=" else language_matches(tag, text) for tag in languages]
            rows = np.flatnonzero(np.array(holds, np.bool_)[terms.suffix] & (terms.kind == LITERAL_KIND)).astype(
                np.int32
            )
            tests = self.test[self.offset[number] : self.offset[number + 1]]
            parts.append((np.tile(rows, len(tests)), np.repeat(tests, len(rows))))
        return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def collect_languages(pairs: Sequence[tuple[Posting, int]]) -> Languages | None:
    """From postings "l" and their tests; None without any."""
    if not pairs:
        return None
    keys = [(str(posting[1]), str(posting[2])) for posting, _ in pairs]
    number = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    order, offset = grouped((number[key] for key in keys), len(number))
    return Languages(tuple(number), offset, np.array([test for _, test in pairs], np.int32)[order])

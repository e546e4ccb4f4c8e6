"""Tests of a literal's language: LANG and LANGMATCHES of SPARQL."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from triplewire.clauses.node_tests.lookup import KeyedTests
from triplewire.clauses.node_tests.substrings import Pairs
from triplewire.encode.batch import LITERAL_KIND, Terms
from triplewire.ir.values.strings import language_matches


@dataclass(frozen=True)
class Languages(KeyedTests):
    """What is asked of the language: "=" and a language ("" for none), or "~" and a language range."""

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

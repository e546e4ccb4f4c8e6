"""The tests that ask for the text of a term, a part of it, or its language: which terms satisfy which."""

from __future__ import annotations

import numpy as np

from triplewire.bounded_cache import cached_if_short
from triplewire.clauses.node_tests.columns import text_of
from triplewire.clauses.node_tests.lookup import TEXT_SEED
from triplewire.clauses.node_tests.postings import AN_IRI, HALVED, OTHER_LITERAL, SUFFIX, TEXT_LITERAL, TOO_LONG
from triplewire.clauses.node_tests.substrings import Pairs, changed
from triplewire.clauses.node_tests.table import Tests
from triplewire.encode.batch import BLANK_KIND, FEW_SUFFIXES, IRI_KIND, LITERAL_KIND, Hashes, Ids, Terms
from triplewire.encode.names import is_plain
from triplewire.kernels.text.names import hash_spans


def tests_of_texts(terms: Terms, tests: Tests, longest: int) -> list[Pairs]:
    """The tests that ask for a text, a part of one, or a language."""
    pairs = [tests.languages.pairs(terms)] if tests.languages is not None else []
    if tests.literals is not None or tests.substrings:
        kind = _kinds(terms, tests.literals.suffixes if tests.literals else (), longest)
        if tests.literals is not None:
            pairs.append(tests.literals.pairs(terms.text, terms.start, terms.end, _text_hashes(terms), kind))
        for change, automaton in tests.substrings.items():
            rows = np.flatnonzero(terms.kind == LITERAL_KIND if automaton.of_literals else terms.kind != BLANK_KIND)
            row_ids: Ids = rows.astype(np.int32)
            pairs.append(automaton.pairs(*changed(change, terms, row_ids), row_ids, kind))
    return pairs


def _text_hashes(terms: Terms) -> Hashes:
    hashes: Hashes = hash_spans(terms.text, terms.start, terms.end, TEXT_SEED)
    return hashes


def _kinds(terms: Terms, wanted: tuple[str, ...], longest: int) -> Ids:
    """Of each term what postings tell it by: its kind, and beside it the number of its suffix among those wanted."""
    of_literals = _kinds_of_literals(terms.suffixes, wanted)
    kind: Ids = np.where(terms.kind == LITERAL_KIND, of_literals[terms.suffix], _OF_OTHERS[terms.kind])
    if len(terms.text) > longest:
        for row in np.flatnonzero((terms.end - terms.start > longest) & (kind > 0)).tolist():
            if len(text_of(terms, row)) > longest:
                kind[row] |= TOO_LONG
    if terms.text.tobytes().find(b"\xed") >= 0:
        halves = np.flatnonzero(terms.text[:-1] == 0xED)
        halves = halves[terms.text[halves + 1] >= 0xA0]
        kind[np.searchsorted(halves, terms.end) > np.searchsorted(halves, terms.start)] |= HALVED
    return kind


@cached_if_short(256, FEW_SUFFIXES)
def _kinds_of_literals(suffixes: tuple[str, ...], wanted: tuple[str, ...]) -> Ids:
    """The kinds of literals by their suffix."""
    number = {suffix: place for place, suffix in enumerate(wanted, 1)}
    kinds = np.where(is_plain(suffixes), TEXT_LITERAL, OTHER_LITERAL).astype(np.int32)
    kinds += np.array([SUFFIX * number.get(suffix, 0) for suffix in suffixes], np.int32)
    return kinds


_OF_OTHERS = np.zeros(max(BLANK_KIND, IRI_KIND, LITERAL_KIND) + 1, np.int32)
_OF_OTHERS[IRI_KIND] = AN_IRI

"""Class tests of the terms of a batch: by the taxonomy, and by what each publication says itself (rdf:type).

The tests under their classes: `triplewire.clauses.node_tests.classes`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.classes import ClassIndex
from triplewire.clauses.node_tests.columns import to_bytes
from triplewire.clauses.node_tests.lookup import TEXT_SEED
from triplewire.clauses.node_tests.substrings import Pairs
from triplewire.clauses.node_tests.views import text_of
from triplewire.encode.batch import IRI_KIND, LITERAL_KIND, Batch, Hashes, Ids, Offsets
from triplewire.encode.names import Names
from triplewire.model.terms import RDF_TYPE


@dataclass(frozen=True)
class ClassFeatures:
    """Class tests of one batch. `text_hash` are the hashes of all terms' texts."""

    batch: Batch
    index: ClassIndex
    text_hash: Hashes

    @cached_property
    def types(self) -> tuple[Ids, Ids, Ids]:
        """The rdf:type triples whose class is an IRI: publication, subject, class."""
        batch, terms = self.batch, self.batch.terms
        name = to_bytes(RDF_TYPE.value)
        length = (terms.kind == IRI_KIND) & (terms.end - terms.start == len(name))
        is_type = np.zeros(len(terms), np.bool_)
        for term in np.flatnonzero(length).tolist():
            is_type[term] = terms.text[terms.start[term] : terms.end[term]].tobytes() == name
        rows = np.flatnonzero(is_type[batch.predicate] & (terms.kind[batch.object] == IRI_KIND))
        publication = np.searchsorted(batch.offset, rows, "right").astype(np.int32) - 1
        return publication, batch.subject[rows], batch.object[rows]

    # --- by the taxonomy ---------------------------------------------------------------------------------------------

    @cached_property
    def static(self) -> Ids:
        """Term -> the number of the set of tests that hold of it whatever the publication says."""
        terms, index = self.batch.terms, self.index
        sets = np.zeros(len(terms), np.int32)
        names, longest = index.names
        number = names.find_all(terms.text, terms.start, terms.end, self.text_hash)
        for kind, known in ((IRI_KIND, index.sets_of_iris), (LITERAL_KIND, index.sets_of_literals)):
            rows = np.flatnonzero((number >= 0) & (terms.kind == kind))
            for row in rows[known[number[rows]] < 0].tolist():
                known[number[row]] = index.set_of(text_of(terms, row), kind == IRI_KIND)
            sets[rows] = known[number[rows]]
        if longest > 0:
            for row, text in self._literals(number >= 0, longest):
                sets[row] = index.set_of(text, False)
        return sets

    def pairs(self) -> Pairs:
        """The terms with the tests that hold of them whatever the publication says."""
        rows = np.flatnonzero(self.static)
        place, tests = self.index.sets.spread(self.static[rows])
        return rows[place].astype(np.int32), tests

    def _literals(self, named: NDArray[np.bool_], longest: int) -> Iterator[tuple[int, str]]:
        """The literals that may stand for something: those that are named, and the others of at most so many bytes."""
        terms = self.batch.terms
        wanted = named if longest == 0 else named | (terms.end - terms.start <= longest)
        for row in np.flatnonzero(wanted & (terms.kind == LITERAL_KIND)).tolist():
            yield row, text_of(terms, row)

    # --- by the publication ------------------------------------------------------------------------------------------

    def stated(self) -> tuple[Ids, Ids, Ids]:
        """The tests that hold of a node because of rdf:type triples, and not in every publication: publication, term,
        test; unordered."""
        publication, subject, cls = self.types
        distinct, place = np.unique(cls, return_inverse=True)
        sets = self.index.sets
        of_class = np.array(
            [sets.number(self.index.instances(text_of(self.batch.terms, row))) for row in distinct.tolist()]
        )
        combined = self.static[subject].astype(np.int64) << 32 | of_class.astype(np.int64)[place]
        combinations, place = np.unique(combined, return_inverse=True)
        more = [sets.difference(pair & 0xFFFFFFFF, pair >> 32) for pair in combinations.tolist()]
        row, tests = sets.spread(np.array(more, np.int32)[place])
        of_nodes = publication[row], subject[row], tests
        of_literals = np.array(list(self._of_literals()), np.int32).reshape(-1, 3).T
        return tuple([np.concatenate(parts) for parts in zip(of_nodes, of_literals, strict=True)])  # type: ignore[return-value]  # as many as came in

    def _of_literals(self) -> Iterator[tuple[int, int, int]]:
        """A literal may name a node that the publication says something of."""
        batch, terms = self.batch, self.batch.terms
        typed = np.unique(self.types[1])
        typed = typed[terms.kind[typed] == IRI_KIND]
        if not len(typed):
            return
        number = {text_of(terms, int(row)): int(row) for row in typed}
        texts, longest = self.index.spelled(number)
        spelled = Names.build([to_bytes(text) for text in {*number, *texts}], TEXT_SEED)
        named = spelled.find_all(terms.text, terms.start, terms.end, self.text_hash) >= 0
        named |= self.index.texts.find_all(terms.text, terms.start, terms.end, self.text_hash) >= 0
        meant: dict[int, dict[str, list[int]]] = {}  # literal -> namespace -> typed IRIs
        for row, text in self._literals(named, longest):
            for namespace, iris in self.index.names_of(text):
                typed_rows = [number[iri] for iri in iris if iri in number]
                if typed_rows:
                    meant.setdefault(row, {})[namespace] = typed_rows
        if not meant:
            return
        classes: dict[tuple[int, int], list[str]] = defaultdict(list)
        for p, s, c in zip(*(column.tolist() for column in self.types), strict=True):
            classes[p, s].append(text_of(terms, c))
        where = np.flatnonzero(np.isin(batch.object, np.fromiter(meant, np.int32)))
        publication = np.searchsorted(batch.offset, where, "right") - 1
        for p, row in set(zip(publication.tolist(), batch.object[where].tolist(), strict=True)):
            static = self.index.sets.tests(int(self.static[row]))
            for namespace, iris_of in meant[row].items():
                for cls in {cls for iri in iris_of for cls in classes.get((p, iri), ())}:
                    for test in self.index.views[namespace].direct(cls, False):
                        if test not in static:
                            yield p, row, test


def by_publication(rows: tuple[Ids, Ids, Ids], publications: int) -> tuple[Offsets, Ids, Ids]:
    """`node_offset`, `node_term` and `node_test` of Features, each once, from rows of publication, term and test."""
    publication, term, test = rows
    if not len(term):
        return np.zeros(publications + 1, np.int64), term, test
    order = np.lexsort((test, term, publication))
    publication, term, test = publication[order], term[order], test[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(publication) != 0) | (np.diff(term) != 0) | (np.diff(test) != 0)
    offset = np.searchsorted(publication[fresh], np.arange(publications + 1)).astype(np.int64)
    return offset, term[fresh].astype(np.int32), test[fresh].astype(np.int32)

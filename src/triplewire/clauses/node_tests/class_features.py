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
from triplewire.clauses.node_tests.term_objects import text_of
from triplewire.clauses.node_tests.words import Slices
from triplewire.encode.batch import IRI_KIND, LITERAL_KIND, Batch, Hashes, Ids, Offsets
from triplewire.encode.names import Names
from triplewire.kernels import classes as kernels
from triplewire.kernels.shared.columns import fixed_array
from triplewire.kernels.text.names import hash_spans
from triplewire.model.terms import RDF_TYPE

TYPE_NAME = fixed_array(np.frombuffer(to_bytes(RDF_TYPE.value), np.uint8))


@dataclass(frozen=True)
class ClassFeatures:
    """Class tests of one batch."""

    batch: Batch
    index: ClassIndex

    @cached_property
    def text_hash(self) -> Hashes:
        """The hashes of the texts of all terms."""
        terms = self.batch.terms
        hashes: Hashes = hash_spans(terms.text, terms.start, terms.end, TEXT_SEED)
        return hashes

    @cached_property
    def types(self) -> NDArray[np.int32]:
        """The rdf:type triples whose class is an IRI, as columns: publication, subject, class."""
        batch, terms = self.batch, self.batch.terms
        types = np.empty((3, len(batch.subject)), np.int32)
        count = kernels.type_triples(batch.triples, terms.text, terms.start, terms.end, terms.kind, TYPE_NAME, types)
        return np.ascontiguousarray(types[:, :count])  # as kernels have it elsewhere: another layout is another type

    # --- by the taxonomy ---------------------------------------------------------------------------------------------

    @cached_property
    def named(self) -> Ids:
        """Term -> the number of its text among the names of the index, or -1."""
        terms = self.batch.terms
        return self.index.names[0].find_all(terms.text, terms.start, terms.end, self.text_hash)

    @cached_property
    def static(self) -> Ids:
        """Term -> the number of the set of tests that hold of it whatever the publication says."""
        terms, index, number = self.batch.terms, self.index, self.named
        sets, unknown = np.empty(len(terms), np.int32), np.empty(len(terms), np.int32)
        known = index.sets_of_iris, index.sets_of_literals
        while count := kernels.static_sets(number, terms.kind, *known, sets, unknown):
            for row in unknown[:count].tolist():
                is_iri = terms.kind[row] == IRI_KIND
                known[not is_iri][number[row]] = index.set_of(text_of(terms, row), bool(is_iri))
        if index.names[1] > 0:
            for row, text in self._literals(number >= 0, index.names[1]):
                sets[row] = index.set_of(text, False)
        return sets

    def slices(self) -> Slices:
        """The tests that hold of each term whatever the publication says."""
        sets, known = self.static, self.index.sets.flat()
        offset, test = np.empty(len(sets) + 1, np.int64), np.empty(int(np.diff(known[0])[sets].sum()), np.int32)
        kernels.spread_sets(sets, *known, offset, test)
        return offset, test

    def _literals(self, named: NDArray[np.bool_], longest: int) -> Iterator[tuple[int, str]]:
        """The literals that may stand for something: those that are named, and the others of at most so many bytes."""
        terms = self.batch.terms
        wanted = named if longest == 0 else named | (terms.end - terms.start <= longest)
        for row in np.flatnonzero(wanted & (terms.kind == LITERAL_KIND)).tolist():
            yield row, text_of(terms, row)

    # --- by the publication ------------------------------------------------------------------------------------------

    def stated(self, publications: int) -> tuple[Offsets, Ids, Ids]:
        """The tests that hold of a node because of rdf:type triples, and not in every publication: `node_offset`,
        `node_term` and `node_test` of Features, of so many publications."""
        types, sets = self.types, self._sets_of_types()
        flat = self.index.sets.flat()
        offset = np.empty(publications + 1, np.int64)
        count = room = 4 * len(sets)
        while count >= room:
            room = count + 1
            term, test = np.empty(room, np.int32), np.empty(room, np.int32)
            count = kernels.node_tests(types, len(sets), sets, *flat, offset, term, test)
        term, test = term[:count], test[:count]
        of_literals = np.array(list(self._of_literals()), np.int32).reshape(-1, 3).T
        if not of_literals.size:
            return offset, term, test
        publication = np.repeat(np.arange(publications, dtype=np.int32), np.diff(offset))
        rows = zip((publication, term, test), of_literals, strict=True)
        publication, term, test = (np.concatenate(parts) for parts in rows)
        return by_publication(publication, term, test, publications)

    def _sets_of_types(self) -> Ids:
        """Of each rdf:type triple, the set of tests that it adds to those that hold of its subject anyway."""
        _, subject, cls = self.types
        index, static = self.index, self.static[subject]
        added: Ids = index.sets_of_classes[self.named[cls]]
        for row in np.flatnonzero(added < 0).tolist() if len(added) and added.min() < 0 else ():
            number = self.named[cls[row]]  # of another row of the same class, it may be known by now
            if index.sets_of_classes[number] < 0:
                tests = index.instances(text_of(self.batch.terms, int(cls[row])))
                index.sets_of_classes[number] = index.sets.number(tests)
            added[row] = index.sets_of_classes[number]
        for row in np.flatnonzero(static).tolist() if static.any() else ():
            added[row] = index.sets.difference(int(added[row]), int(static[row]))
        return added

    def _of_literals(self) -> Iterator[tuple[int, int, int]]:
        """A literal may name a node that the publication says something of."""
        batch, terms, index, types = self.batch, self.batch.terms, self.index, self.types
        if not index.has_labels:
            slots = np.zeros(1 << (2 * types.shape[1]).bit_length(), np.uint64)
            if not kernels.literals_like(terms.kind, self.text_hash, self.named, index.is_name, types[1], slots):
                return
        typed = np.unique(types[1])
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


def by_publication(publication: Ids, term: Ids, test: Ids, publications: int) -> tuple[Offsets, Ids, Ids]:
    """`node_offset`, `node_term` and `node_test` of Features, each once, from rows in any order."""
    order = np.lexsort((test, term, publication))
    publication, term, test = publication[order], term[order], test[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(publication) != 0) | (np.diff(term) != 0) | (np.diff(test) != 0)
    offset = np.searchsorted(publication[fresh], np.arange(publications + 1)).astype(np.int64)
    return offset, term[fresh].astype(np.int32), test[fresh].astype(np.int32)

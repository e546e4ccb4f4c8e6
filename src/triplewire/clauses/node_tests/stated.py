"""Class tests of the terms of a batch: by the taxonomy, and by what each publication says itself (rdf:type).

The tests under their classes: `triplewire.clauses.node_tests.classes`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.node_tests.classes import ClassIndex
from triplewire.clauses.node_tests.columns import to_bytes
from triplewire.clauses.node_tests.lookup import TEXT_SEED
from triplewire.clauses.node_tests.substrings import Pairs
from triplewire.clauses.node_tests.views import text_of
from triplewire.encode.batch import IRI_KIND, LITERAL_KIND, Batch, Hashes, Ids, Offsets
from triplewire.encode.names import Names
from triplewire.model.terms import IRI, RDF_TYPE, Literal


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

    def static(self) -> Pairs:
        """The tests that hold of a term whatever the publication says."""
        terms = self.batch.terms
        rows: list[int] = []
        tests: list[int] = []
        names, longest = self.index.names
        named = names.find_all(terms.text, terms.start, terms.end, self.text_hash) >= 0
        iris = np.flatnonzero(named & (terms.kind == IRI_KIND)).tolist()
        of_iris = ((row, self.index.static(IRI(text_of(terms, row)))) for row in iris)
        of_literals = ((row, self.index.static(Literal(text))) for row, text in self._literals(named, longest))
        for row, numbers in chain(of_iris, of_literals):
            rows += [row] * len(numbers)
            tests += numbers
        return np.array(rows, np.int32), np.array(tests, np.int32)

    def _literals(self, named: NDArray[np.bool_], longest: int) -> Iterator[tuple[int, str]]:
        """The literals that may stand for something: those that are named, and the others of at most so many bytes."""
        terms = self.batch.terms
        wanted = named if longest == 0 else named | (terms.end - terms.start <= longest)
        for row in np.flatnonzero(wanted & (terms.kind == LITERAL_KIND)).tolist():
            yield row, text_of(terms, row)

    # --- by the publication ------------------------------------------------------------------------------------------

    def stated(self) -> tuple[Ids, Ids, Ids]:
        """The tests that hold of a node because of rdf:type triples: publication, term, test; unordered."""
        publication, subject, cls = self.types
        distinct, place = np.unique(cls, return_inverse=True)
        tests = [sorted(self.index.instances(text_of(self.batch.terms, int(row)))) for row in distinct]
        counts = np.array([len(numbers) for numbers in tests], np.int64)
        first = np.cumsum(counts) - counts
        flat = np.array([test for numbers in tests for test in numbers], np.int32)
        width = counts[place]
        at = np.arange(int(width.sum())) + np.repeat(first[place] - np.cumsum(width) + width, width)
        of_nodes = (np.repeat(publication, width), np.repeat(subject, width), flat[at])
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
            for namespace, iris_of in meant[row].items():
                for cls in {cls for iri in iris_of for cls in classes.get((p, iri), ())}:
                    for test in self.index.views[namespace].direct(cls, False):
                        yield p, row, test


def without(rows: tuple[Ids, Ids, Ids], static: Pairs, publications: int, tests: int) -> tuple[Offsets, Ids, Ids]:
    """`node_offset`, `node_term` and `node_test` of Features: each once, and none that holds in every publication."""
    publication, term, test = (column.astype(np.int64) for column in rows)
    known = np.isin(term * tests + test, static[0].astype(np.int64) * tests + static[1])
    publication, term, test = publication[~known], term[~known], test[~known]
    order = np.lexsort((test, term, publication))
    publication, term, test = publication[order], term[order], test[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (np.diff(publication) != 0) | (np.diff(term) != 0) | (np.diff(test) != 0)
    offset = np.searchsorted(publication[fresh], np.arange(publications + 1)).astype(np.int64)
    return offset, term[fresh].astype(np.int32), test[fresh].astype(np.int32)

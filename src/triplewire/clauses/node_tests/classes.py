"""Tests of how a node stands to a class, for many classes at once, and which of them the terms of a batch satisfy.

What a node stands for and which classes those are is asked of `triplewire.ir.taxonomy`; here the tests lie under the
classes, so that one look-up finds all that hold. The taxonomy's own word on a term is kept between batches
(`ClassIndex`); what the publication's rdf:type triples add to it is worked out for each (`ClassFeatures`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from triplewire.clauses.kernels import classes as kernels
from triplewire.clauses.kernels.classes import KnownSets
from triplewire.clauses.node_tests.columns import text_of, to_bytes
from triplewire.clauses.node_tests.lookup import TEXT_SEED, KeyedTests
from triplewire.clauses.node_tests.words import Slices
from triplewire.encode.batch import IRI_KIND, LITERAL_KIND, Batch, Bytes, Hashes, Ids, Offsets
from triplewire.encode.names import Names
from triplewire.forks import new_lock
from triplewire.ir.entailment import NONE
from triplewire.ir.nodes import Label, Relation
from triplewire.ir.taxonomy import Taxonomy, touched
from triplewire.kernels.shared.columns import fixed_array
from triplewire.kernels.text.names import hash_spans
from triplewire.model.namespaces import beside
from triplewire.model.terms import IRI, RDF_TYPE, Literal, made_iri

Name: TypeAlias = IRI | Label
TestNumbers: TypeAlias = frozenset[int]
NO_TESTS: TestNumbers = frozenset()
NOWHERE = "\0"
"""The namespace of a label that is its own IRI."""

_NEXT = "%[89AB][0-9A-F]"
_CODES = re.compile(f"(%[0-7][0-9A-F]|%[CD][0-9A-F]{_NEXT}|%E[0-9A-F](?:{_NEXT}){{2}}|%F[0-9A-F](?:{_NEXT}){{3}})")
_MOST_CODES = 5  # of one name, whose spellings are still told one by one
_MOST_KNOWN = 200_000  # terms whose tests are remembered


@dataclass(frozen=True, eq=False)
class Classes(KeyedTests):
    """The tests of each class, by (relation, IRI, and the name of a label). There is an index over them for each
    taxonomy that was asked."""

    def index(self, taxonomy: Taxonomy) -> ClassIndex:
        """The index for a taxonomy."""
        index: ClassIndex | None = taxonomy.caches.get(self)
        if index is None:
            index = taxonomy.caches[self] = ClassIndex(taxonomy, self.tests())
        return index

    def change(self, before: Taxonomy, after: Taxonomy) -> None:
        """Make the index for another taxonomy of that for the one before it, if there is one."""
        known: ClassIndex | None = before.caches.get(self)
        if known is not None and self not in after.caches:
            after.caches[self] = known.changed(after, self.tests())

    def tests(self) -> Iterable[tuple[Relation, Name, list[int]]]:
        """Relation, class and tests."""
        for number, (relation, iri, *text) in enumerate(self.asked):
            name = Label(text[0], iri) if text else made_iri(iri)
            yield Relation(relation), name, self.test[self.offset[number] : self.offset[number + 1]].tolist()


class TestSets:
    """Distinct sets of tests, numbered; 0 is the empty set. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._numbers: dict[TestNumbers, int] = {NO_TESTS: 0}
        self._sets: list[TestNumbers] = [NO_TESTS]
        self._differences: dict[tuple[int, int], int] = {}
        self._flat: tuple[Offsets, Ids] = np.zeros(2, np.int64), np.zeros(0, np.int32)  # offsets, tests

    def number(self, tests: TestNumbers) -> int:
        """The number of a set."""
        if tests not in self._numbers:
            with self._lock:
                if tests not in self._numbers:
                    self._sets.append(tests)
                    self._numbers[tests] = len(self._sets) - 1
        return self._numbers[tests]

    def tests(self, number: int) -> TestNumbers:
        """The set with a number."""
        return self._sets[number]

    def difference(self, number: int, other: int) -> int:
        """The number of the set of tests that are in one set and not in another."""
        pair = number, other
        if pair not in self._differences:
            self._differences[pair] = self.number(self._sets[number] - self._sets[other])
        return self._differences[pair]

    def flat(self) -> tuple[Offsets, Ids]:
        """All sets in one array, and where each begins and the last one ends."""
        offset, flat = self._flat
        if len(offset) <= len(self._sets):
            with self._lock:
                fresh = self._sets[len(offset) - 1 :]
                tests_of_fresh = np.array([test for tests in fresh for test in sorted(tests)], np.int32)
                ends_of_fresh = len(flat) + np.cumsum([len(tests) for tests in fresh])
                offset, flat = np.append(offset, ends_of_fresh).astype(np.int64), np.append(flat, tests_of_fresh)
                self._flat = offset, flat
        return offset, flat


class ClassIndex:
    """The tests under the classes of one taxonomy.

    Labels are told apart by the namespace in which they name a class, because a literal resolves as its class does:
    each namespace is a `NamespaceView`, that of IRIs and of labels without one is "".
    """

    def __init__(self, taxonomy: Taxonomy, tests: Iterable[tuple[Relation, Name, list[int]]]) -> None:
        self.taxonomy = taxonomy
        self.views: dict[str, NamespaceView] = {}
        for relation, name, numbers in tests:
            namespace = _namespace_of(name)
            if namespace not in self.views:
                self.views[namespace] = NamespaceView(taxonomy, name if namespace else made_iri(""))
            self.views[namespace].add(relation, name, numbers)
        self.sets = TestSets()
        self._instances: dict[str, TestNumbers] = {}
        self._touched = 0  # names that changes have touched since `names` was made

    def changed(self, taxonomy: Taxonomy, tests: Iterable[tuple[Relation, Name, list[int]]]) -> ClassIndex:
        """The index of the same tests for another taxonomy. What is known of names is taken over, but for those that
        the change touches."""
        other = ClassIndex(taxonomy, tests)
        if "names" not in vars(self):
            return other
        views = other.views.items()
        names = touched(self.taxonomy, taxonomy, {c for name, view in views for c in view.differing(self.views[name])})
        other._touched = self._touched + len(names)
        if other._touched <= len(self.names[0]):  # else there may be more names that are none any more than others
            other._take_over(self, names)
        return other

    def _take_over(self, before: ClassIndex, names: set[str]) -> None:
        """Take over what another index knows of all names but these, among which are all new ones."""
        texts, longest = self.spelled(names)
        table, number = before.names[0].extended(
            Names.build([to_bytes(name) for name in names | texts], TEXT_SEED), np.arange(len(names | texts))
        )
        vars(self)["names"] = table, max(longest, before.names[1])
        if self.taxonomy.names is before.taxonomy.names:
            vars(self)["texts"] = before.texts
        self._instances = {cls: tests for cls, tests in before._instances.items() if cls not in names}
        for theirs, ours in (
            (before.sets_of_iris, self.sets_of_iris),
            (before.sets_of_literals, self.sets_of_literals),
            (before.sets_of_classes, self.sets_of_classes),
        ):
            known = np.flatnonzero(theirs[: len(before.names[0])] >= 0)
            sets, place = np.unique(theirs[known], return_inverse=True)
            numbers_here = np.array([self.sets.number(before.sets.tests(number)) for number in sets.tolist()], np.int32)
            ours[known] = numbers_here[place]
            ours[number] = -1

    @cached_property
    def texts(self) -> Names:
        """The names that the taxonomy has for classes and instances."""
        return Names.build([to_bytes(name) for name in self.taxonomy.names], TEXT_SEED)

    @cached_property
    def names(self) -> tuple[Names, int]:
        """All texts, IRIs among them, of which something may hold in any publication, or of instances of which; and as
        `spelled`."""
        taxonomy = self.taxonomy
        stated = set(taxonomy.classes).union(taxonomy.classes_of)
        texts, longest = self.spelled(stated)
        stated = stated.union(taxonomy.names, texts, *[names for view in self.views.values() for names in view.asked])
        return Names.build([to_bytes(name) for name in sorted(stated)], TEXT_SEED), longest

    def spelled(self, iris: Iterable[str]) -> tuple[set[str], int]:
        """The texts that have one of these IRIs in one of the namespaces. They may be more than can be told: those have
        at most so many bytes as the number says."""
        texts: set[str] = set()
        longest = 0
        starts = [namespace.rstrip(NOWHERE) for namespace in self.views if namespace]
        for name in (iri[len(start) :] for iri in iris for start in starts if iri.startswith(start)):
            spelled = spellings(name)
            if spelled is None:
                longest = max(longest, len(name))
            else:
                texts.update(spelled)
        return texts, longest

    @cached_property
    def sets_of_iris(self) -> Ids:
        """Number among `names` -> the set of tests that hold of the IRI by the taxonomy alone, or -1: not known yet."""
        return np.full(len(self.names[0]), -1, np.int32)

    @cached_property
    def sets_of_literals(self) -> Ids:
        """Number among `names` -> the set of tests that hold of a literal of that text by the taxonomy alone, or -1:
        not known yet."""
        return np.full(len(self.names[0]), -1, np.int32)

    @cached_property
    def sets_of_classes(self) -> Ids:
        """Number among `names` -> the set of tests that hold of a node because the publication says that it is an
        instance of that class, or -1: not known yet. The last set is empty: that of a class that is no name."""
        sets = np.full(len(self.names[0]) + 1, -1, np.int32)
        sets[-1] = self.sets.number(NO_TESTS)
        return sets

    @cached_property
    def is_name(self) -> Bytes:
        """Number among `names` -> is it a name that the taxonomy has for classes and instances?"""
        texts, is_name = self.texts, np.zeros(len(self.names[0]) + 1, np.uint8)
        is_name[self.names[0].find_all(texts.text, texts.offset[:-1], texts.offset[1:], texts.hash)] = 1
        return is_name

    @property
    def has_labels(self) -> bool:
        """Are there classes that are named by a label in a namespace?"""
        return any(self.views)

    def known_sets(self) -> KnownSets | None:
        """What is known of names so far, as kernels take it; None where other texts may stand for classes, too."""
        if self.names[1] > 0 or self.has_labels:
            return None
        of_names = self.sets_of_iris, self.sets_of_literals, self.sets_of_classes
        return KnownSets(*of_names, self.is_name, *self.sets.flat())

    def prepare(self, most: int) -> None:
        """Find out which tests hold of so many of the names, which is else done for each when a batch first has it."""
        names = self.names[0]
        for number in range(min(len(names), most)):
            if self.sets_of_iris[number] < 0:
                self.sets_of_iris[number] = self.set_of(names[number].decode("utf-8", "surrogatepass"), True)

    def set_of(self, text: str, is_iri: bool) -> int:
        """The number of the set of tests that hold of an IRI, or of a literal of this text, by the taxonomy alone."""
        sets = [view.static(text, is_iri) for view in self.views.values()]
        return self.sets.number(sets[0] if len(sets) == 1 else NO_TESTS.union(*sets))

    def instances(self, cls: str) -> TestNumbers:
        """The tests that hold of a node that the publication makes an instance of the class."""
        tests = self._instances.get(cls)
        if tests is None:
            if len(self._instances) >= _MOST_KNOWN:
                self._instances.clear()
            tests = self._instances[cls] = NO_TESTS.union(*[v.direct(cls, False) for v in self.views.values()])
        return tests


def spellings(name: str) -> list[str] | None:
    """The texts that an IRI spells so, percent-encoding what it cannot hold (`triplewire.model.namespaces`); None where
    they are too many. A code of the text itself stays, so each code may or may not stand for a character."""
    if "%" not in name:
        return [name]
    parts = _CODES.split(name)  # text and codes in turn
    if len(parts) > 2 * _MOST_CODES + 1 or "%3F" in parts:  # %3F may be any lone surrogate
        return None
    texts = [""]
    for number, part in enumerate(parts):
        character = unquote(part) if number % 2 else part
        ends = [part] if character == part or beside(character, "x", "x") != part else [part, character]
        texts = [text + end for text in texts for end in ends]
    return texts


def _namespace_of(name: Name) -> str:
    """The namespace in which a label has its IRI; "" for an IRI, and where that is unknown."""
    if isinstance(name, IRI) or not name.iri:
        return ""
    end = beside("", name.text, name.iri)
    return end or ("" if not beside("x", name.text, name.iri) else NOWHERE)


class NamespaceView:
    """The tests whose classes are named in one namespace. `example`: a class of them."""

    def __init__(self, taxonomy: Taxonomy, example: Name) -> None:
        self._taxonomy = taxonomy
        self._example = example
        self._above: dict[str, list[int]] = defaultdict(list)  # a class at or above the node's -> DESCENDANT
        self._lower: dict[str, list[int]] = defaultdict(list)  # the node's class -> ANCESTOR
        self._equal: dict[str, list[int]] = defaultdict(list)  # the node's class, or directly above it -> DIRECT
        self._of_classes: dict[frozenset[str], TestNumbers] = {}  # the classes of an instance -> its tests
        self.below: dict[str, list[int]] = defaultdict(list)  # a class at or above the node -> SUBCLASS

    def add(self, relation: Relation, name: Name, tests: list[int]) -> None:
        """Add tests of one class."""
        tables = {Relation.DESCENDANT: self._above, Relation.SUBCLASS: self.below, Relation.DIRECT: self._equal}
        for meant in self._taxonomy.meant(name):
            if relation in tables:
                tables[relation][meant] += tests
                continue
            for cls in self._taxonomy.at_or_above(meant):
                self._lower[cls] += tests

    @property
    def asked(self) -> tuple[Mapping[str, list[int]], ...]:
        """The tests of classes, in a table for each relation."""
        return self._above, self._lower, self._equal, self.below

    def differing(self, other: NamespaceView) -> Iterator[str]:
        """The classes that have other tests in another view."""
        for table, of_other in zip(self.asked, other.asked, strict=True):
            yield from (cls for cls in table.keys() | of_other.keys() if table.get(cls) != of_other.get(cls))

    def direct(self, cls: str, is_class: bool) -> Iterable[int]:
        """The tests that hold of an instance of the class, or of the class itself."""
        for above in self._taxonomy.at_or_above(cls):
            yield from self._above.get(above, ())
        yield from self._lower.get(cls, ())
        for equal in self._taxonomy.superclasses.get(cls, NONE) if is_class else (cls,):
            yield from self._equal.get(equal, ())

    def static(self, text: str, is_iri: bool) -> TestNumbers:
        """The tests that hold of an IRI, or of a literal of this text, in a publication that says nothing of classes.

        What `triplewire.ir.taxonomy.Taxonomy.readings` says, with the tests of the same classes looked up once."""
        if not is_iri:
            return NO_TESTS.union(*[self._of_start(start) for start in self.names_of(Literal(text))])
        above = self._taxonomy.at_or_above(text) if self.below else ()
        return self._of_start(text).union(*[self.below[cls] for cls in above if cls in self.below])

    def _of_start(self, iri: str) -> TestNumbers:
        """The tests that hold of what stands for a class or an instance."""
        taxonomy = self._taxonomy
        classes = taxonomy.classes_of.get(iri, NONE)
        tests = self._of_classes.get(classes)
        if tests is None:
            tests = NO_TESTS.union(*[self.direct(cls, False) for cls in classes])
            self._of_classes[classes] = tests
        return tests.union(self.direct(iri, True)) if iri in taxonomy.classes else tests

    def names_of(self, literal: Literal) -> frozenset[str]:
        """The IRIs that a literal stands for."""
        return self._taxonomy.stands_for(literal, self._example)


# --- the terms of a batch --------------------------------------------------------------------------------------------

TYPE_NAME = fixed_array(np.frombuffer(to_bytes(RDF_TYPE.value), np.uint8))


@dataclass(frozen=True)
class ClassFeatures:
    """Class tests of the terms of one batch: by the taxonomy, and by what each publication says itself (rdf:type)."""

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
        rows = np.unique(np.concatenate(((publication, term, test), of_literals), axis=1), axis=1)  # sorted, each once
        offset = np.searchsorted(rows[0], np.arange(publications + 1)).astype(np.int64)
        return offset, np.ascontiguousarray(rows[1]), np.ascontiguousarray(rows[2])

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
            for namespace, view in self.index.views.items():
                typed_rows = [number[iri] for iri in view.names_of(Literal(text)) if iri in number]
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

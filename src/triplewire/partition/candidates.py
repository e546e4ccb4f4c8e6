"""Which subscriptions could contain, or be contained in, a new one? A look-up, so that no pair is compared in vain.

A homomorphism keeps constants. So each pattern of a container is a pattern of what it contains with constants left
out. A container is listed under the rarest of its own *keys*: a pattern without its variables, alone or with a word or
class that one of its nodes must have. For a new subscription all keys that follow from it are looked up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import TypeAlias, TypeVar

from triplewire.ir.fulltext.nodes import Word
from triplewire.ir.nodes import FullText, InstanceOf, Label, Relation, Variable
from triplewire.ir.normal_form.clauses import Clause, Position
from triplewire.ir.normal_form.conditions import Test
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.terms import IRI, Literal
from triplewire.partition.containment import Form, contains, tests_of

Constant: TypeAlias = IRI | Literal
Shape: TypeAlias = tuple[int, int, int]
"""The numbers of the constants of a pattern; 0 for a variable, and for what is left out."""
Key: TypeAlias = tuple[Shape, object]

K = TypeVar("K")

MOST_CANDIDATES = 128
"""Subscriptions that a new one is compared with before it is taken for one that nothing contains."""


class Containers:
    """Subscriptions, none of which is known to contain another; finds those that contain a new one, or are in it."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._forms: dict[str, Form] = {}
        self._listed: dict[Key, dict[str, None]] = {}
        self._of: dict[str, list[Key]] = {}  # id -> the keys that it is listed under
        self._seen: dict[Key, int] = {}  # how many clauses have asked for the key
        self._with: dict[Constant, dict[str, None]] = {}  # a constant -> those with it
        self._shaped: dict[frozenset[Shape], dict[str, None]] = {}
        self._number: dict[Constant, int] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def container_of(self, form: Form) -> str | None:
        """The id of one that contains it; None where none does, or none was come upon in `MOST_CANDIDATES`."""
        if not form.contained:
            return None
        left = MOST_CANDIDATES
        tried: set[str] = set()
        for key in self._given_keys(form.clauses[0]):  # a container has a clause for the first clause, too
            for id in self._listed.get(key, ()):
                if id in tried or id == form.id:
                    continue
                tried.add(id)
                if contains(self._forms[id], form, self._taxonomy):
                    return id
                left -= 1
                if not left:
                    return None
        return None

    def contained_in(self, form: Form, *, alike: bool = False) -> list[str]:
        """The ids of those that it contains, as far as `MOST_CANDIDATES` go. `alike`: only those of the same patterns
        but for their variables are looked at."""
        if not form.contains:
            return []
        ids: Iterable[str] = self._shaped.get(self._shape(form), ()) if alike else self._with_constants(form)
        out: list[str] = []
        for number, id in enumerate(ids):
            if number == MOST_CANDIDATES and not out:
                break
            if id != form.id and contains(form, self._forms[id], self._taxonomy):
                out.append(id)
        return out

    def add(self, form: Form) -> None:
        """Take one more."""
        self._forms[form.id] = form
        for constant in _constants(form):
            self._with.setdefault(constant, {})[form.id] = None
        if form.contained:
            self._shaped.setdefault(self._shape(form), {})[form.id] = None
        if form.contains:
            keys = [self._rarest(clause) for clause in form.clauses]
            for key in keys:
                self._listed.setdefault(key, {})[form.id] = None
            self._of[form.id] = keys

    def remove(self, id: str) -> None:
        """Take one out."""
        form = self._forms.pop(id)
        for key in self._of.pop(id, ()):
            _drop(self._listed, key, id)
        for constant in _constants(form):
            _drop(self._with, constant, id)
        _drop(self._shaped, self._shape(form), id)

    def _with_constants(self, form: Form) -> Iterable[str]:
        """Those that have all constants of one of its clauses."""
        ids: dict[str, None] = {}
        for clause in form.clauses:
            constants = {term for pattern in clause.patterns for term in pattern if not isinstance(term, Variable)}
            if not constants:
                return list(self._forms)
            lists = sorted((self._with.get(constant, {}) for constant in constants), key=len)
            ids |= dict.fromkeys(id for id in lists[0] if all(id in other for other in lists[1:]))
        return ids

    # --- keys --------------------------------------------------------------------------------------------------------

    def _rarest(self, clause: Clause) -> Key:
        keys = list(self._own_keys(clause))
        for key in keys:
            self._seen[key] = self._seen.get(key, 0) + 1
        return min(keys, key=lambda key: (self._seen[key], -_size(key)))

    def _given_keys(self, clause: Clause) -> Iterator[Key]:
        """The keys of all clauses that this one could be in."""
        tests = tests_of(clause)
        seen: set[Key] = set()
        for pattern in clause.patterns:
            s, p, o = self._numbers(pattern)
            marks = list(self._given_marks(pattern, tests)) if tests else []
            for shape in product({s, 0}, {p, 0}, {o, 0}):
                for key in ((shape, None), *((shape, mark) for mark in marks)):
                    if key not in seen:
                        seen.add(key)
                        yield key

    def _given_marks(self, pattern: tuple[Position, ...], tests: dict[str, list[Test]]) -> Iterator[object]:
        """The marks that follow from the tests of the pattern's nodes."""
        for at, term in enumerate(pattern):
            if isinstance(term, Variable):
                for test in tests.get(term.name, ()):
                    mark = _mark(test)
                    if mark is None:
                        continue
                    yield at, mark
                    if isinstance(test, InstanceOf):
                        for lower in self._taxonomy.meant(test.cls):
                            for cls in self._taxonomy.at_or_above(lower):
                                yield at, ("class", cls)

    def _own_keys(self, clause: Clause) -> Iterator[Key]:
        """The keys of a container's clause: each follows from the clauses that are in it, as far as keys go."""
        tests = tests_of(clause)
        for pattern in clause.patterns:
            shape = self._numbers(pattern)
            yield shape, None
            for at, term in enumerate(pattern):
                for test in tests.get(term.name, ()) if isinstance(term, Variable) else ():
                    mark = _mark(test)
                    if mark is not None:
                        yield shape, (at, mark)

    def _numbers(self, pattern: tuple[Position, Position, Position]) -> Shape:
        known = self._number
        s, p, o = (0 if type(t) is Variable else known.setdefault(t, len(known) + 1) for t in pattern)  # type: ignore[arg-type]  # a constant, by its kind
        return s, p, o

    def _shape(self, form: Form) -> frozenset[Shape]:
        return frozenset(self._numbers(pattern) for clause in form.clauses for pattern in clause.patterns)


def _drop(table: dict[K, dict[str, None]], key: K, id: str) -> None:
    ids = table.get(key)
    if ids is not None:
        ids.pop(id, None)
        if not ids:
            del table[key]


def _mark(test: Test) -> object | None:
    """What a node must have for the test: a word, a class or a label."""
    if isinstance(test, FullText) and isinstance(test.expression, Word):
        return test.expression
    if isinstance(test, Label):
        return test
    if isinstance(test, InstanceOf) and test.relation is Relation.DESCENDANT and isinstance(test.cls, IRI):
        return "class", test.cls.value
    return None


def _constants(form: Form) -> set[Constant]:
    return {
        term
        for clause in form.clauses
        for pattern in clause.patterns
        for term in pattern
        if not isinstance(term, Variable)
    }


def _size(key: Key) -> int:
    """How much a key says."""
    return sum(number > 0 for number in key[0]) + 2 * (key[1] is not None)

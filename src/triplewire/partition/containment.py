"""Does one subscription contain another: does it match every publication that the other matches (001, 3.1 and 4.2)?

Decided on normal forms, in a bounded number of steps; "don't know" is no. S contains S' where each clause of S' is in
some clause of S. A clause is in another where a homomorphism leads from the other to it: variables go to variables or
constants so that each pattern goes to a pattern, and each test follows from what is known of the node that its variable
goes to (`node_tests`). The clauses of S must be all there is to S; those of S' may be less, as each of its matches
satisfies one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, product
from typing import TypeAlias, TypeVar

from triplewire.ir.entailment import with_subclasses
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import FullText, InstanceOf, Label, Relation, Variable, Word
from triplewire.ir.normal_form import Clause, Position, Test, normal_form
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.model.terms import IRI, Literal
from triplewire.partition import node_tests
from triplewire.partition.placement import SERVER, Placement
from triplewire.partition.split_calls import CallSplit, has_calls_alone

Triple = tuple[Position, Position, Position]

MOST_STEPS = 2_000
"""Patterns that are tried for a pair of clauses before the answer is no."""

MOST_CLAUSES = 16
"""Clauses of a subscription past which it is not compared with others."""


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """A subscription as it is compared. `contains`: may it contain others? `contained`: may others contain it?"""

    id: str
    clauses: tuple[Clause, ...]
    contains: bool
    contained: bool


def form_of(subscription: Subscription, world: World, entailment: str = "none") -> Form:
    """The form of a subscription as an engine of this world and entailment means it."""
    meant = subscription if entailment == "none" else with_subclasses(subscription)
    normal = normal_form(meant, most=min(MOST_CLAUSES, world.settings.max_branches))
    comparable = 0 < len(normal.clauses) <= MOST_CLAUSES and all(clause.patterns for clause in normal.clauses)
    return Form(subscription.id, normal.clauses, comparable and normal.exact and not normal.asked, comparable)


def contains(container: Form, other: Form, taxonomy: Taxonomy) -> bool:
    """Does `container` match every publication that `other` matches? False where that is not known."""
    if not (container.contains and other.contained):
        return False
    return all(any(_is_in(clause, wider, taxonomy) for wider in container.clauses) for clause in other.clauses)


def _is_in(clause: Clause, wider: Clause, taxonomy: Taxonomy) -> bool:
    """Is there a homomorphism from `wider` to `clause`? Most pairs that are compared fail at a single pattern."""
    choices: list[list[Triple]] = []
    for pattern in wider.patterns:
        choices.append([target for target in clause.patterns if _fits(pattern, target)])
        if not choices[-1]:
            return False
    return _Search(clause, wider, choices, taxonomy).succeeds()


class _Search:
    """Looks for a homomorphism from `wider` to `clause`, with backtracking. `choices`: for each pattern of `wider`,
    the patterns that it may go to."""

    def __init__(self, clause: Clause, wider: Clause, choices: list[list[Triple]], taxonomy: Taxonomy) -> None:
        self._given, self._wanted, self._taxonomy = tests_of(clause), tests_of(wider), taxonomy
        self._steps_left, self._choices = MOST_STEPS, choices
        order = sorted(range(len(wider.patterns)), key=lambda number: len(choices[number]))
        self._order, self._patterns = _connected(order, wider), wider.patterns
        self._goes_to: dict[str, Position] = {}

    def succeeds(self, place: int = 0) -> bool:
        """Is there one for the patterns of the order from this place on?"""
        if place == len(self._order):
            return True
        number = self._order[place]
        for target in self._choices[number]:
            self._steps_left -= 1
            if self._steps_left < 0:
                return False
            new = self._bound(self._patterns[number], target)
            if new is None:
                continue
            self._goes_to.update(new)
            if self.succeeds(place + 1):
                return True
            for name in new:
                del self._goes_to[name]
        return False

    def _bound(self, pattern: Triple, target: Triple) -> dict[str, Position] | None:
        """The variables that get a node here; None where one has another node, or fails a test."""
        new: dict[str, Position] = {}
        for position, node in zip(pattern, target, strict=True):
            if not isinstance(position, Variable):
                continue
            known = self._goes_to.get(position.name, new.get(position.name))
            if known is None:
                if not self._holds(position.name, node):
                    return None
                new[position.name] = node
            elif known != node:
                return None
        return new

    def _holds(self, name: str, node: Position) -> bool:
        wanted = self._wanted.get(name)
        if not wanted:
            return True
        if not isinstance(node, Variable):
            return all(node_tests.holds(test, node, self._taxonomy) for test in wanted)
        given = self._given.get(node.name, [])
        return all(node_tests.follows(test, given, self._taxonomy) for test in wanted)


def tests_of(clause: Clause) -> dict[str, list[Test]]:
    """The tests of each variable."""
    tests: dict[str, list[Test]] = {}
    for name, test in clause.tests:
        tests.setdefault(name, []).append(test)
    return tests


def _fits(pattern: Triple, target: Triple) -> bool:
    (s, p, o), (subject, predicate, object_) = pattern, target
    return (
        (isinstance(p, Variable) or p == predicate)
        and (isinstance(s, Variable) or s == subject)
        and (isinstance(o, Variable) or o == object_)
    )


def _connected(order: list[int], clause: Clause) -> list[int]:
    """The numbers in this order, but a pattern that shares a variable with those before it comes first."""
    names = [{term.name for term in pattern if isinstance(term, Variable)} for pattern in clause.patterns]
    remaining, connected, bound = list(order), list[int](), set[str]()
    while remaining:
        number = next((number for number in remaining if names[number] & bound), remaining[0])
        remaining.remove(number)
        connected.append(number)
        bound |= names[number]
    return connected


# --- candidates ------------------------------------------------------------------------------------------------------


Constant: TypeAlias = IRI | Literal
Shape: TypeAlias = tuple[int, int, int]
"""The numbers of the constants of a pattern; 0 for a variable, and for what is left out."""
Key: TypeAlias = tuple[Shape, object]

K = TypeVar("K")

MOST_CANDIDATES = 128
"""Subscriptions that a new one is compared with before it is taken for one that nothing contains."""


class Containers:
    """Subscriptions, none of which is known to contain another; finds those that contain a new one, or are in it, by
    look-ups, so that no pair is compared in vain."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._forms: dict[str, Form] = {}
        self._listed: dict[Key, dict[str, None]] = {}
        self._of: dict[str, list[Key]] = {}  # id -> the keys that it is listed under
        self._seen: Counter[Key] = Counter()  # how many clauses have asked for the key
        self._with: dict[Constant, dict[str, None]] = {}  # a constant -> those with it
        self._shaped: dict[frozenset[Shape], dict[str, None]] = {}
        self._number: dict[Constant, int] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def container_of(self, form: Form) -> str | None:
        """The id of one that contains it; None where none does, or none was come upon in `MOST_CANDIDATES`."""
        if not form.contained:
            return None
        keys = self._given_keys(form.clauses[0])  # a container has a clause for the first clause, too
        ids = _distinct(id for key in keys for id in self._listed.get(key, ()) if id != form.id)
        tried = islice(ids, MOST_CANDIDATES)
        return next((id for id in tried if contains(self._forms[id], form, self._taxonomy)), None)

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

    def _rarest(self, clause: Clause) -> Key:
        """The key that fewest clauses have asked for; of several, the one that says most."""
        keys = list(self._container_keys(clause))
        self._seen.update(keys)
        return min(keys, key=lambda key: (self._seen[key], -sum(map(bool, key[0])) - 2 * (key[1] is not None)))

    def _given_keys(self, clause: Clause) -> Iterator[Key]:
        """The keys of all clauses that this one could be in."""
        tests = tests_of(clause)
        for pattern in clause.patterns:
            s, p, o = self._numbers(pattern)
            marks = None, *(self._given_marks(pattern, tests) if tests else ())
            for shape in product({s, 0}, {p, 0}, {o, 0}):
                yield from ((shape, mark) for mark in marks)

    def _given_marks(self, pattern: tuple[Position, ...], tests: dict[str, list[Test]]) -> Iterator[object]:
        """The marks that follow from the tests of the pattern's nodes."""
        for place, test in _tests_by_place(pattern, tests):
            if (mark := _mark(test)) is not None:
                yield place, mark
                if isinstance(test, InstanceOf):
                    for lower in self._taxonomy.meant(test.cls):
                        yield from ((place, ("class", cls)) for cls in self._taxonomy.at_or_above(lower))

    def _container_keys(self, clause: Clause) -> Iterator[Key]:
        """The keys of a container's clause: each follows from the clauses that are in it, as far as keys go."""
        tests = tests_of(clause)
        for pattern in clause.patterns:
            shape = self._numbers(pattern)
            yield shape, None
            for place, test in _tests_by_place(pattern, tests):
                if (mark := _mark(test)) is not None:
                    yield shape, (place, mark)

    def _numbers(self, pattern: Triple) -> Shape:
        known = self._number
        s, p, o = (0 if type(t) is Variable else known.setdefault(t, len(known) + 1) for t in pattern)  # type: ignore[arg-type]  # a constant, by its kind
        return s, p, o

    def _shape(self, form: Form) -> frozenset[Shape]:
        return frozenset(self._numbers(pattern) for clause in form.clauses for pattern in clause.patterns)


def _tests_by_place(pattern: tuple[Position, ...], tests: dict[str, list[Test]]) -> Iterator[tuple[int, Test]]:
    for place, term in enumerate(pattern):
        if isinstance(term, Variable):
            yield from ((place, test) for test in tests.get(term.name, ()))


def _distinct(ids: Iterable[str]) -> Iterator[str]:
    """Each of them once, as it first comes."""
    seen: set[str] = set()
    return (id for id in ids if not (id in seen or seen.add(id)))  # type: ignore[func-returns-value]


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


class ContainmentPartitioner:
    """The partitioner *containment* (001, section 4.2): the server has the roots, and what they contain is spread over
    nodes; so is what calls operators alone (`triplewire.partition.split_calls`)."""

    def __init__(self, nodes: int, world: World, entailment: str = "none") -> None:
        self.placement = Placement(nodes)
        self._world, self._entailment = world, entailment
        self._roots = Containers(world.taxonomy)
        self._forms: dict[str, Form] = {}
        self._calls = CallSplit(self.placement)

    def subscribe(self, subscriptions: Iterable[Subscription]) -> None:
        """Place new subscriptions. Many at once are taken from the general to the special."""
        compared = [(each, form_of(each, self._world, self._entailment)) for each in subscriptions]
        self._calls.add(each for each, form in compared if has_calls_alone(each, form.clauses))
        forms = [form for _, form in compared if form.id not in self._calls]
        self._forms |= {form.id: form for form in forms}
        self._add(forms, alike=not len(self._roots))

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription. Children of a root are checked for containment again (001, section 4.4)."""
        if id in self._calls:
            self._calls.remove(id)
            return
        del self._forms[id]
        if id in self.placement.above:
            self.placement.unhang(id)
            self.placement.drop(id)
            return
        self._roots.remove(id)
        freed = self.placement.hanging(id)
        for child in freed:
            self.placement.unhang(child)
        self.placement.drop(id)
        self._add([self._forms[child] for child in freed], alike=False)

    def _add(self, forms: list[Form], *, alike: bool) -> None:
        for form in sorted(forms, key=specialty):
            root = self._roots.container_of(form)
            if root is not None:
                self.placement.hang(form.id, root)
                continue
            for below in self._roots.contained_in(form, alike=alike):
                self._lower(below, form.id)
            self._roots.add(form)
            self.placement.put(form.id, SERVER)

    def _lower(self, old: str, new: str) -> None:
        """A root, and all below it, are below a new one."""
        self._roots.remove(old)
        for id in (*self.placement.hanging(old), old):
            self.placement.hang(id, new)


def specialty(form: Form) -> tuple[int, int, int]:
    """What contains another has seldom more patterns or tests, and of as many patterns never more constants."""
    patterns = max((len(clause.patterns) for clause in form.clauses), default=0)
    tests = max((len(clause.tests) for clause in form.clauses), default=0)
    terms = ([term for pattern in clause.patterns for term in pattern] for clause in form.clauses)
    constants = max((sum(not isinstance(term, Variable) for term in each) for each in terms), default=0)
    return patterns, tests, constants

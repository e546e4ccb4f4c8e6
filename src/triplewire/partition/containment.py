"""Does one subscription contain another: does it match every publication that the other matches (001, 3.1 and 4.2)?

Decided on normal forms, in a bounded number of steps; "don't know" is no. S contains S' where each clause of S' is in
some clause of S. A clause is in another where a homomorphism leads from the other to it: variables go to variables or
constants so that each pattern goes to a pattern, and each test follows from what is known of the node that its variable
goes to (`node_tests`). The clauses of S must be all there is to S; those of S' may be less, as each of its matches
satisfies one of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from triplewire.ir.entailment import with_subclasses
from triplewire.ir.evaluation.evaluate import World
from triplewire.ir.nodes import Variable
from triplewire.ir.normal_form.clauses import Clause, NormalForm, Position, normal_form
from triplewire.ir.normal_form.conditions import Test
from triplewire.ir.subscription import Subscription
from triplewire.ir.taxonomy import Taxonomy
from triplewire.partition import node_tests

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
    return Form(subscription.id, normal.clauses, *_roles(normal))


def _roles(normal: NormalForm) -> tuple[bool, bool]:
    comparable = 0 < len(normal.clauses) <= MOST_CLAUSES and all(clause.patterns for clause in normal.clauses)
    return comparable and normal.exact, comparable


def contains(container: Form, other: Form, taxonomy: Taxonomy) -> bool:
    """Does `container` match every publication that `other` matches? False where that is not known."""
    if not (container.contains and other.contained):
        return False
    return all(any(is_in(clause, wider, taxonomy) for wider in container.clauses) for clause in other.clauses)


def is_in(clause: Clause, wider: Clause, taxonomy: Taxonomy) -> bool:
    """Is there a homomorphism from the wider clause?"""
    return _Search(clause, wider, taxonomy).goes()


class _Search:
    """Looks for a homomorphism from `wider` to `clause`, with backtracking."""

    def __init__(self, clause: Clause, wider: Clause, taxonomy: Taxonomy) -> None:
        self._given = tests_of(clause)
        self._wanted = tests_of(wider)
        self._taxonomy = taxonomy
        self._left = MOST_STEPS
        self._choices = [[target for target in clause.patterns if _fits(pattern, target)] for pattern in wider.patterns]
        order = sorted(range(len(wider.patterns)), key=lambda at: len(self._choices[at]))
        self._order = _connected(order, wider)
        self._patterns = wider.patterns
        self._goes_to: dict[str, Position] = {}

    def goes(self) -> bool:
        return all(self._choices) and self._from(0)

    def _from(self, place: int) -> bool:
        if place == len(self._order):
            return True
        at = self._order[place]
        for target in self._choices[at]:
            self._left -= 1
            if self._left < 0:
                return False
            new = self._bound(self._patterns[at], target)
            if new is None:
                continue
            self._goes_to.update(new)
            if self._from(place + 1):
                return True
            for name in new:
                del self._goes_to[name]
        return False

    def _bound(
        self, pattern: tuple[Position, Position, Position], target: tuple[Position, Position, Position]
    ) -> dict[str, Position] | None:
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


def _fits(pattern: tuple[Position, Position, Position], target: tuple[Position, Position, Position]) -> bool:
    return all(isinstance(a, Variable) or a == b for a, b in zip(pattern, target, strict=True))


def _connected(order: list[int], clause: Clause) -> list[int]:
    """The numbers in this order, but a pattern that shares a variable with those before it comes first."""
    names = [{term.name for term in pattern if isinstance(term, Variable)} for pattern in clause.patterns]
    left, out, bound = list(order), [], set[str]()
    while left:
        at = next((n for n in left if names[n] & bound), left[0])
        left.remove(at)
        out.append(at)
        bound |= names[at]
    return out

"""Normal form of a rule (MDV paper, section 3.3): every resource that a path reaches becomes a variable.

    search CycleProvider c register c where c.serverInformation.memory > 64 and c.serverHost contains 'uni'

becomes, for each branch of its condition, variables with conditions on one resource each, and links between them:

    c: CycleProvider, serverHost contains 'uni'     c --serverInformation--> c.1     c.1: memory > 64

Paths with an equal beginning share a variable, as in `triplewire.languages.mdv`, whose trees say the same. The links
of a branch must make a tree: results of rules are sets of resources, and joins of two such sets cannot tell that two
ways lead to the same one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from triplewire.errors import UnsupportedQuery
from triplewire.ir.subscription import Subscription
from triplewire.languages.context import Context
from triplewire.languages.grammar.conditions import FLIPPED
from triplewire.languages.mdv import CONTAINS, EXISTS, Path, Rule, Step, Test, parse_rule
from triplewire.model.terms import IRI

WITHIN = "within"
"""`x within y`: y contains x."""
IS = "is"
"""Of a link: the value is the resource itself, the very node."""

_TURNED = {**FLIPPED, CONTAINS: WITHIN, WITHIN: CONTAINS}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a property of one resource; on the resource itself where `property` is None. `constant` is the
    text of a constant; None for "exists". `op`: = != < <= > >= contains within exists."""

    op: str
    property: IRI | None
    constant: str | None = None
    negated: bool = False
    is_iri: bool = False


@dataclass(slots=True)
class Variable:
    """What one resource has to be: an instance of all classes, registered by all rules that are named; it satisfies all
    conditions, and has none of the paths in `absent`."""

    name: str
    classes: dict[IRI, None] = field(default_factory=dict)
    named: list[tuple[Branch, ...]] = field(default_factory=list)
    conditions: dict[Condition, None] = field(default_factory=dict)
    absent: list[tuple[IRI, ...]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Link:
    """A value of `property` of the resource `left` compares with one of `other` of the resource `right`. None for the
    resource itself. With `op` IS, `right` is the value."""

    left: str
    property: IRI | None
    op: str
    right: str
    other: IRI | None = None
    negated: bool = False

    def turned(self) -> Link:
        """The same, seen from the right."""
        return Link(self.right, self.other, _TURNED[self.op], self.left, self.property, self.negated)


@dataclass(slots=True)
class Branch:
    """One branch of a rule in normal form. `variables` by name, in the order of the rule."""

    registered: str
    variables: dict[str, Variable]
    links: list[Link]


def normalised(rule: Rule, context: Context, ranges: Mapping[IRI, IRI] | None = None) -> tuple[Branch, ...]:
    """The branches of a rule in normal form. `ranges` are the classes that a schema gives the values of properties.
    Raises `UnsupportedQuery` with line and column where the links of a branch go in a circle."""
    return tuple(_Normaliser(rule, tests, context, ranges or {}).branch() for tests in rule.branches)


def normalised_text(
    subscription: Subscription, context: Context, ranges: Mapping[IRI, IRI] | None
) -> tuple[Branch, ...]:
    """The same of a rule that another one names."""
    rules = {rule.id: rule for rule in subscription.rules}
    prefixes, base = dict(subscription.prefixes), subscription.base
    own = Context(subscription.id, prefixes, base, rules=rules, settings=context.settings)
    return normalised(parse_rule(subscription.text, own), own, ranges)


class _Normaliser:
    """Makes one branch. A *place* is a variable of the rule, or where a step leads that some path goes on from."""

    def __init__(self, rule: Rule, tests: tuple[Test, ...], context: Context, ranges: Mapping[IRI, IRI]) -> None:
        self._rule, self._tests, self._context, self._ranges = rule, tests, context, ranges
        self._variables: dict[str, Variable] = {}
        self._links: list[Link] = []
        self._places: dict[tuple[str, IRI], str] = {}  # where a step leads from a place: the name of the place
        self._middle: set[str] = set()
        self._same: dict[str, str] = {}

    def branch(self) -> Branch:
        """The branch."""
        for searched in self._rule.searched:
            variable = self._variables[searched.variable] = Variable(searched.variable)
            if isinstance(searched.meaning, IRI):
                variable.classes[searched.meaning] = None
            else:
                variable.named.append(normalised_text(searched.meaning, self._context, self._ranges))
        for path in (path for test in self._tests for path in test.paths):
            place = path.variable
            for position, step in enumerate(path.steps):
                if position:
                    self._middle.add(place)
                name = f"{place}.{len(self._places) + 1}"
                place = self._places.setdefault((place, step.property), name)
        absent = [test for test in self._tests if test.op == EXISTS and test.negated]
        for test in self._tests:
            if test not in absent:
                self._test(test)
        for test in absent:
            assert isinstance(test.left, Path)
            self._absent(test.left)
        self._merge()
        self._check_tree()
        return Branch(self._root(self._rule.registered), self._variables, self._links)

    # --- tests -------------------------------------------------------------------------------------------------------

    def _end(self, path: Path) -> tuple[str, IRI | None]:
        """Where a path ends: a variable and one of its properties, or a variable itself (None)."""
        name = path.variable
        for position, step in enumerate(path.steps, 1):
            place = self._places[name, step.property]
            if position == len(path.steps) and place not in self._middle:
                return name, step.property
            if place not in self._variables:
                self._variables[place] = Variable(place, dict.fromkeys(self._range_of(step)))
                self._links.append(Link(name, step.property, IS, place))
            name = place
        return name, None

    def _range_of(self, step: Step) -> Iterator[IRI]:
        if step.property in self._ranges:
            yield self._ranges[step.property]

    def _test(self, test: Test) -> None:
        if isinstance(test.left, Path) and isinstance(test.right, Path):
            self._compare(test, test.left, test.right)
            return
        op = test.op
        path, constant = test.left, test.right
        if not isinstance(path, Path):
            assert isinstance(constant, Path)  # one side is a path
            path, constant, op = constant, path, _TURNED[op]
        name, property_ = self._end(path)
        if constant is None:
            if property_ is not None:
                self._variables[name].conditions[Condition(EXISTS, property_)] = None
            return
        assert not isinstance(constant, Path)
        is_iri = isinstance(constant, IRI)
        text = constant.value if isinstance(constant, IRI) else constant.lexical
        self._variables[name].conditions[Condition(op, property_, text, test.negated, is_iri)] = None

    def _compare(self, test: Test, left: Path, right: Path) -> None:
        """Two paths. `=` with a variable of the search clause says that the path leads to that resource."""
        if test.op == "=" and not (left.steps and right.steps):
            path, resource = (left, right) if left.steps else (right, left)
            name, property_ = self._end(path)
            if property_ is None:
                self._unify(name, resource.variable)
            else:
                self._links.append(Link(name, property_, IS, resource.variable))
            return
        (a, x), (b, y) = self._end(left), self._end(right)
        self._links.append(Link(a, x, test.op, b, y, test.negated))

    def _absent(self, path: Path) -> None:
        """There is no way along the path: from the last variable of it that other paths have made."""
        name, rest = path.variable, [step.property for step in path.steps]
        while len(rest) > 1 and (place := self._places[name, rest[0]]) in self._variables:
            name = place
            del rest[0]
        self._variables[name].absent.append(tuple(rest))

    # --- variables that are one ---------------------------------------------------------------------------------------

    def _root(self, name: str) -> str:
        while name in self._same:
            name = self._same[name]
        return name

    def _unify(self, left: str, right: str) -> None:
        """Two names of one resource: the registered variable stays, else the one on the right."""
        left, right = self._root(left), self._root(right)
        if left != right:
            stays, goes = (left, right) if left == self._rule.registered else (right, left)
            self._same[goes] = stays

    def _merge(self) -> None:
        for name in list(self._variables):
            root = self._root(name)
            if root != name:
                goes, stays = self._variables.pop(name), self._variables[root]
                stays.classes |= goes.classes
                stays.named += goes.named
                stays.conditions |= goes.conditions
                stays.absent += goes.absent
        renamed = (
            Link(self._root(x.left), x.property, x.op, self._root(x.right), x.other, x.negated) for x in self._links
        )
        self._links = list(dict.fromkeys(renamed))

    def _check_tree(self) -> None:
        """Raises `UnsupportedQuery` where links go in a circle, as two between the same two variables do."""
        groups = {name: name for name in self._variables}

        def root(name: str) -> str:
            while groups[name] != name:
                name = groups[name]
            return name

        for link in self._links:
            left, right = root(link.left), root(link.right)
            if link.left != link.right and left == right:
                what = "its conditions lead from a resource to another one in two ways"
                remedy = "compare the two in one condition, or split the rule: search the first rule in the second"
                line, column = self._rule.place(self._tests[0])
                raise UnsupportedQuery(what, source=self._context.source, line=line, column=column, remedy=remedy)
            groups[left] = right

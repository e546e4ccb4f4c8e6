"""Decomposition of normalised rules into atomic rules (MDV paper, section 3.3.1).

A *triggering rule* asks one condition of the resources of one class. A *join rule* has exactly two inputs, other atomic
rules, and registers resources of the first, its *parent*. All of one variable's rules are joined with each other, then
with those of each variable that a link leads to, so that the last join is the end rule of a branch.

Atomic rules are made once: a rule that was made before, of this or of another subscription, is found by its parts.
"""

from __future__ import annotations

from enum import StrEnum
from functools import reduce
from typing import NamedTuple, TypeAlias

from triplewire.errors import UnsupportedQuery
from triplewire.languages.mdv import CONTAINS, EXISTS
from triplewire.metadata.keys import constant_key
from triplewire.metadata.normal import IS, Branch, Condition, Link, Variable
from triplewire.model.terms import IRI

GRAM = 3
"""Characters of the pieces of a text by which `contains` is found."""
NEVER = "never"
"""The operator of a condition that no value satisfies."""


class Kind(StrEnum):
    """What a join rule asks of its inputs. p and q are the properties of its group."""

    SAME = "same"  # both register the resource (the paper's a = b)
    OR = "or"  # one of them does
    WITHOUT = "without"  # the parent does, the child does not
    REFERS = "refers"  # p of the parent's resource is the child's (the paper's c.p = a)
    REFERRED = "referred"  # p of the child's resource is the parent's
    MISSES = "misses"  # the parent's resource has a value of p that the child does not register
    VALUES = "values"  # p of the parent's compares with q of the child's
    OWN = "own"  # p and q of the parent's resource compare with each other; the child is the parent
    ALL = "all"  # no link at all: the child registers something


class Trigger(NamedTuple):
    """A triggering rule: resources of the class (None: any) that have a value of the property (None: the resource
    itself) that the operator, one of `filter.OPERATORS`, finds beside `constant`, a key."""

    class_: IRI | None
    property: IRI | None
    operator: str
    constant: str


class Join(NamedTuple):
    """A join rule. `parent` and `child` are places of atomic rules in `Decomposition.rules`."""

    kind: Kind
    property: IRI | None
    comparison: str
    other: IRI | None
    parent: int
    child: int


Atomic: TypeAlias = Trigger | Join


class Decomposition:
    """Atomic rules, each once, inputs before the rules that have them. `levels`: 0 for a triggering rule, for others 1
    more than the higher of the inputs."""

    def __init__(self) -> None:
        self.rules: list[Atomic] = []
        self.levels: list[int] = []
        self._places: dict[Atomic, int] = {}

    def add(self, branches: tuple[Branch, ...]) -> int:
        """Decompose a rule; returns the place of its end rule."""
        ends = sorted({self._branch(branch) for branch in branches})
        return reduce(lambda parent, child: self._join(Kind.OR, parent, child), ends)

    def _place(self, rule: Atomic) -> int:
        place = self._places.setdefault(rule, len(self.rules))
        if place == len(self.rules):
            self.rules.append(rule)
            inputs = (rule.parent, rule.child) if isinstance(rule, Join) else ()
            self.levels.append(1 + max(self.levels[x] for x in inputs) if inputs else 0)
        return place

    def _join(
        self,
        kind: Kind,
        parent: int,
        child: int,
        property_: IRI | None = None,
        comparison: str = "",
        other: IRI | None = None,
    ) -> int:
        return self._place(Join(kind, property_, comparison, other, parent, child))

    # --- a branch ----------------------------------------------------------------------------------------------------

    def _branch(self, branch: Branch) -> int:
        """The end rule of a branch: of its registered variable, with all that links lead to, and all that none does."""
        waiting = dict(branch.variables)
        end = self._variable(branch, branch.registered, waiting)
        while waiting:
            end = self._join(Kind.ALL, end, self._variable(branch, next(iter(waiting)), waiting))
        return end

    def _variable(self, branch: Branch, name: str, waiting: dict[str, Variable]) -> int:
        """The rule of a variable and of those behind it, which do not wait any more."""
        variable = waiting.pop(name)
        rule = self._own(variable)
        for link in branch.links:
            seen = link if link.left == name else link.turned() if link.right == name and link.op != IS else link
            if link.left == link.right == name:
                same = "same" if link.op == IS else link.op
                rule = self._join(Kind.OWN, rule, rule, link.property, _named(same, link.negated), link.other)
            elif link.op == IS and link.left == name and link.right in waiting:
                rule = self._followed(branch, rule, link, waiting)
            elif link.op == IS and link.right == name and link.left in waiting:
                child = self._variable(branch, link.left, waiting)
                rule = self._join(Kind.REFERRED, rule, child, link.property)
            elif link.op != IS and seen.left == name and seen.right in waiting:
                child = self._variable(branch, seen.right, waiting)
                comparison = _named(seen.op, seen.negated)
                rule = self._join(Kind.VALUES, rule, child, seen.property, comparison, seen.other)
        for path in variable.absent:
            rule = self._join(Kind.WITHOUT, rule, self._path(path))
        return rule

    def _followed(self, branch: Branch, rule: int, link: Link, waiting: dict[str, Variable]) -> int:
        """Joined with what a property leads to. A value of which is only asked what it has not may be none of the
        resources that there are, even a literal."""
        target = waiting[link.right]
        others = [x for x in branch.links if link.right in (x.left, x.right) and x is not link]
        if target.absent and not (target.classes or target.named or target.conditions or others):
            waiting.pop(link.right)
            absent = sorted({self._path(path) for path in target.absent})
            child = reduce(lambda a, b: self._join(Kind.OR, a, b), absent)
            return self._join(Kind.MISSES, rule, child, link.property)
        return self._join(Kind.REFERS, rule, self._variable(branch, link.right, waiting), link.property)

    def _own(self, variable: Variable) -> int:
        """The rule of what is asked of the resource alone."""
        classes = list(variable.classes)
        first = classes[0] if classes else None
        triggers = {_trigger(first, condition) for condition in variable.conditions}
        triggers |= {Trigger(class_, None, EXISTS, "") for class_ in classes[1:]}
        if (classes and not variable.conditions) or not (classes or variable.conditions or variable.named):
            triggers.add(Trigger(first, None, EXISTS, ""))
        ends = [self.add(named) for named in variable.named]
        rules = [self._place(trigger) for trigger in sorted(triggers, key=_order)] + ends
        return reduce(lambda parent, child: self._join(Kind.SAME, parent, child), dict.fromkeys(rules))

    def _path(self, path: tuple[IRI, ...]) -> int:
        """The rule of all resources that the path leads on from."""
        *before, last = path
        rule = self._place(Trigger(None, last, EXISTS, ""))
        for property_ in reversed(before):
            rule = self._join(Kind.REFERS, self._place(Trigger(None, property_, EXISTS, "")), rule, property_)
        return rule


def _order(trigger: Trigger) -> tuple[str, ...]:
    """Equal conditions are joined in one order, whatever the order in which a rule has them."""
    return trigger.operator, trigger.constant, str(trigger.class_), str(trigger.property)


def _named(op: str, negated: bool) -> str:
    return f"not {op}" if negated else op


def _trigger(class_: IRI | None, condition: Condition) -> Trigger:
    text = condition.constant
    if text is None:
        return Trigger(class_, condition.property, EXISTS, "")
    if condition.op == CONTAINS and not condition.negated:
        return Trigger(class_, condition.property, f"{CONTAINS} {min(len(text), GRAM)}", text)
    if condition.op in ("contains", "within"):
        return Trigger(class_, condition.property, _named(condition.op, condition.negated), text)
    is_ordering = condition.op not in ("=", "!=")
    if text.strip() == "NaN" or (is_ordering and condition.is_iri):  # neither compares with anything
        return Trigger(class_, condition.property, NEVER, "")
    kind, key = constant_key(text)
    return Trigger(class_, condition.property, f"{kind} {condition.op}", key)


def check_supported(branches: tuple[Branch, ...], source: str) -> None:
    """Raises `UnsupportedQuery` for what atomic rules cannot say: a value that may be none of the resources, as nothing
    is asked of it but what it has not, and that is compared with a constant."""
    for branch in branches:
        for variable in branch.variables.values():
            asked = [condition for condition in variable.conditions if condition.property is not None]
            is_subject = any(link.left == variable.name for link in branch.links)
            if (
                variable.absent
                and variable.conditions
                and not (variable.classes or variable.named or asked or is_subject)
            ):
                what = "one value is compared with a constant and has to lack a property"
                raise UnsupportedQuery(what, source=source, remedy="ask for a class or a property of it, too")

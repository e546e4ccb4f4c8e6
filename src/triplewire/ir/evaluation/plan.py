"""What evaluation asks of a query again and again, worked out once: which variables a group binds, reads and needs.

A plan changes no answer; it holds the same parts in the order of their meaning (SPARQL 1.1, 18.2.2). It is kept as long
as its subscription lives. How a plan is run: `triplewire.ir.evaluation.evaluate` and
`triplewire.ir.evaluation.patterns`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Set
from dataclasses import dataclass, replace
from itertools import groupby, product
from math import prod
from typing import TypeAlias

from triplewire.ir import nodes as ir
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import children, walk
from triplewire.model.terms import IRI, Literal

Names: TypeAlias = frozenset[str]
Constants: TypeAlias = tuple[IRI | Literal | None, IRI | Literal | None, IRI | Literal | None]

NONE: Names = frozenset()

_NODES_A_STEP = 16  # of an expression


@dataclass(frozen=True, slots=True)
class Atom:
    """A triple pattern, position by position: a constant, the name of a variable, or a label; all None is the
    wildcard."""

    constants: Constants
    names: tuple[str | None, str | None, str | None]
    labels: tuple[ir.Label | None, ir.Label | None, ir.Label | None] | None
    variables: Names
    needed: Names  # of its variables, those whose values matter outside the run


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter, and the variables that it reads. A `plain` one may be tested as soon as they are bound. `cost` is what
    a test counts in steps: long expressions are no cheaper than what they hold back."""

    expression: ir.Expression
    variables: Names
    plain: bool
    cost: int


@dataclass(frozen=True, slots=True)
class Run:
    """Patterns that join. `conditions` need no variable but theirs. No two of the `components` share a variable."""

    atoms: tuple[Atom, ...]
    conditions: tuple[Condition, ...]
    components: tuple[Run, ...]  # empty where all are connected


@dataclass(frozen=True, slots=True)
class Nested:
    """A group inside a group."""

    group: Group


@dataclass(frozen=True, slots=True)
class Union:
    """An Or."""

    branches: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class LeftJoin:
    """An Optional."""

    group: Group


@dataclass(frozen=True, slots=True)
class Difference:
    """A Minus."""

    group: Group


@dataclass(frozen=True, slots=True)
class Extend:
    """A Bind; `cost` as in Condition."""

    name: str
    expression: ir.Expression
    cost: int


Step: TypeAlias = Run | Nested | Union | LeftJoin | Difference | Extend | ir.Values | ir.Call


@dataclass(frozen=True, slots=True)
class Group:
    """A group: steps, then conditions over the whole.

    Every solution binds the `certain` variables. Starting the steps from a solution that binds one of
    `sensitive_steps` (the whole group: `sensitive`) would change what the group means by itself.
    """

    steps: tuple[Step, ...]
    conditions: tuple[Condition, ...]
    certain: Names
    sensitive_steps: Names
    sensitive: Names


@dataclass(frozen=True, slots=True)
class Plan:
    """A subscription, ready to run. Without a triple for each of `required`, nothing matches. `existential` has the
    groups of EXISTS by the identity of their nodes. `outputs` are the variables that only operator calls bind."""

    group: Group
    required: tuple[Constants, ...]
    existential: dict[int, Group]
    outputs: Names


_MOST_VARIANTS = 64


def variants(plan: Plan) -> tuple[Plan, ...]:
    """The plan with one branch of each union: what solves one of these solves the whole, as joins, left joins,
    differences and filters look at one solution at a time. Past `_MOST_VARIANTS` unions are left whole."""
    return tuple([replace(plan, group=group) for group in _variants(plan.group, _MOST_VARIANTS)])


def _variants(group: Group, most: int) -> list[Group]:
    choices: list[list[Step]] = []
    for step in group.steps:
        choice: list[Step] = [step]
        if isinstance(step, Nested):
            choice = [Nested(inner) for inner in _variants(step.group, most)]
        elif isinstance(step, Union):
            choice = [Union((inner,)) for branch in step.branches for inner in _variants(branch, most)]
        if not 0 < len(choice) * prod(map(len, choices)) <= most:
            choice = [step]
        choices.append(choice)
    return [replace(group, steps=steps) for steps in product(*choices)]


_PLANS: dict[int, tuple[weakref.ref[Subscription], Plan]] = {}


def plan_of(subscription: Subscription) -> Plan:
    """The plan of this very object, made when it is first asked for."""
    key = id(subscription)
    entry = _PLANS.get(key)
    if entry is not None and entry[0]() is subscription:
        return entry[1]
    planner, where = _Planner(), subscription.where
    groups = [node.group for node in walk(where) if isinstance(node, ir.Exists | ir.Not)]
    existential = {id(group): planner.group(group, NONE) for group in groups}
    patterns = [part for part in ir.joined(where) if isinstance(part, ir.Pattern)]
    constants = [_atom(pattern, NONE).constants for pattern in patterns]
    required = sorted(constants, key=lambda terms: terms.count(None))
    group = planner.group(where, NONE if subscription.ask else frozenset(subscription.select))
    plan = Plan(group, tuple(c for c in dict.fromkeys(required) if any(c)), existential, _outputs(where))
    _PLANS[key] = weakref.ref(subscription, lambda _: _PLANS.pop(key, None)), plan
    return plan


def _outputs(where: ir.Where) -> Names:
    """The variables that stand in calls, but neither in a pattern nor in inline data nor behind BIND."""
    called: set[str] = set()
    bound: set[str] = set()
    for node in walk(where):
        (called if isinstance(node, ir.Call) else bound).update(ir.names_bound(node))
    return frozenset(called - bound)


class _Planner:
    """Plans the groups of one tree; looks for the variables of each node once."""

    def __init__(self) -> None:
        self._names: dict[int, Names] = {}  # by the identity of nodes, which the tree keeps alive

    def variables(self, node: object) -> Names:
        """The names of all variables in a node."""
        if isinstance(node, ir.Variable):
            return frozenset((node.name,))
        key = id(node)
        names = self._names.get(key)
        if names is None:
            names = self._names[key] = NONE.union(*[self.variables(part) for part in children(node)])
        return names

    def group(self, where: ir.Where, needed: Names | None) -> Group:
        """The plan of a group, of whose variables `needed` matter outside (None: all)."""
        flat = _flat(where)
        conditions = [self._condition(part) for part in flat if isinstance(part, ir.Filter | ir.Not)]
        ordered = _in_order([part for part in flat if not isinstance(part, ir.Filter | ir.Not)])
        mentioned = [self.variables(part) for part in ordered]
        steps: list[Step] = []
        certain: Names = NONE
        sensitive: Names = NONE
        at = 0
        while at < len(ordered):
            part = ordered[at]
            end = at + 1
            if isinstance(part, ir.Pattern):
                while end < len(ordered) and isinstance(ordered[end], ir.Pattern):
                    end += 1
                bound = certain.union(*mentioned[at:end])
                early = [c for c in conditions if c.plain and c.variables <= bound]
                conditions = [c for c in conditions if not (c.plain and c.variables <= bound)]
                others = (*mentioned[:at], *mentioned[end:], *(c.variables for c in conditions))
                outside = None if needed is None else needed.union(*others)
                atoms = tuple([_atom(p, outside) for p in ordered[at:end] if isinstance(p, ir.Pattern)])
                parts = components(atoms, early, certain)
                apart = tuple([Run(*part, ()) for part in parts]) if len(parts) > 1 else ()
                steps.append(Run(atoms, tuple(early), apart))
                certain = bound
            else:
                step, binds, reads = self._step(part)
                steps.append(step)
                sensitive |= reads - certain
                certain |= binds
            at = end
        whole = sensitive.union(*(c.variables - certain for c in conditions))
        return Group(tuple(steps), tuple(conditions), certain, sensitive, whole)

    def _step(self, part: ir.Where) -> tuple[Step, Names, Names]:
        """The step of a part that is no Pattern, what it surely binds, and which variables it must not find bound
        unless its own group has bound them."""
        if isinstance(part, ir.And):
            group = self.group(part, None)
            return Nested(group), group.certain, NONE
        if isinstance(part, ir.Or):
            branches = tuple([self.group(branch, None) for branch in part.branches])
            binds = frozenset.intersection(*(branch.certain for branch in branches)) if branches else NONE
            return Union(branches), binds, NONE
        if isinstance(part, ir.Values):
            full = (v.name for at, v in enumerate(part.variables) if all(row[at] is not None for row in part.rows))
            return part, frozenset(full), NONE
        if isinstance(part, ir.Optional):
            return LeftJoin(self.group(part.group, None)), NONE, self.variables(part.group)
        if isinstance(part, ir.Minus):
            return Difference(self.group(part.group, None)), NONE, self.variables(part.group)
        if isinstance(part, ir.Bind):
            extend = Extend(part.variable.name, part.expression, _cost(part.expression))
            return extend, NONE, self.variables(part)
        assert isinstance(part, ir.Call)
        return part, NONE, self.variables(part)

    def _condition(self, part: ir.Filter | ir.Not) -> Condition:
        if isinstance(part, ir.Not):
            return Condition(ir.Negate(ir.Exists(part.group)), self.variables(part.group), False, 1)
        expression = part.condition
        is_plain = not any(isinstance(node, ir.Exists | ir.Holds) for node in walk(expression))
        return Condition(expression, self.variables(expression), is_plain, _cost(expression))


def _cost(expression: ir.Expression) -> int:
    return 1 + sum(1 for _ in walk(expression)) // _NODES_A_STEP


def _flat(where: ir.Where) -> list[ir.Where]:
    """The parts of a group; a nested group that only joins is no group of its own."""
    parts: list[ir.Where] = []
    stack = [where]
    while stack:
        part = stack.pop()
        if isinstance(part, ir.And) and (part is where or all(isinstance(p, _Joining) for p in part.parts)):
            stack.extend(reversed(part.parts))
        else:
            parts.append(part)
    return parts


_Joining = ir.Pattern | ir.Or | ir.And | ir.Values
_RANKS: dict[type, int] = {ir.Values: 0, ir.Pattern: 1}  # of parts that join; groups come last


def _in_order(parts: list[ir.Where]) -> list[ir.Where]:
    """Between two parts that act on what stands before them, joins may come in any order: inline data, patterns,
    groups. A Call waits for all parts of its group that join, and what stands behind it and acts on it waits with
    it."""
    waiting: list[ir.Where] = []
    ordered: list[ir.Where] = []
    for part in parts:
        joins = isinstance(part, _Joining)
        (waiting if not joins and (waiting or isinstance(part, ir.Call)) else ordered).append(part)
    runs = groupby(ordered, lambda part: isinstance(part, _Joining))
    in_order = [part for _, run in runs for part in sorted(run, key=lambda part: _RANKS.get(type(part), 2))]
    return in_order + waiting


_Component: TypeAlias = tuple[Names, tuple[Atom, ...], tuple[Condition, ...]]


def components(
    atoms: Iterable[Atom], conditions: Iterable[Condition], bound: Set[str]
) -> list[tuple[tuple[Atom, ...], tuple[Condition, ...]]]:
    """The atoms and conditions in classes that share no variable that is not bound already."""
    single: list[_Component] = [(atom.variables - bound, (atom,), ()) for atom in atoms]
    single += [(condition.variables - bound, (), (condition,)) for condition in conditions]
    classes: list[_Component] = []
    for component in single:
        names = component[0]
        touched = [known for known in classes if not known[0].isdisjoint(names)] + [component]
        classes = [known for known in classes if known[0].isdisjoint(names)]
        all_names, some_atoms, some_conditions = zip(*touched, strict=True)
        classes.append((names.union(*all_names), sum(some_atoms, ()), sum(some_conditions, ())))
    return [(some_atoms, some_conditions) for _, some_atoms, some_conditions in classes]


def _atom(pattern: ir.Pattern, needed: Names | None) -> Atom:
    terms = (pattern.subject, pattern.predicate, pattern.object)

    variables = frozenset(term.name for term in terms if isinstance(term, ir.Variable))
    subject, predicate, object_ = (term if isinstance(term, IRI | Literal) else None for term in terms)
    s_name, p_name, o_name = (term.name if isinstance(term, ir.Variable) else None for term in terms)
    s_label, p_label, o_label = (term if isinstance(term, ir.Label) else None for term in terms)
    return Atom(
        (subject, predicate, object_),
        (s_name, p_name, o_name),
        (s_label, p_label, o_label) if s_label or p_label or o_label else None,
        variables,
        variables if needed is None else variables & needed,
    )

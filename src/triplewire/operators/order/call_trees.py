"""The calls of one subscription as a tree of AND and OR, and which of its open calls is worth most for its cost.

A call with the value constraints over what it alone binds is one predicate (operators paper, section 2.2): `near(?d)`
with `?d < 5` is false where no row is below 5, and as such it has a probability and takes part in every order. The best
order for one subscription takes the parts of an AND by ascending cost / probability to be false (section 4), those of
an OR by ascending cost / probability to be true. How open subscriptions are weighed against each other:
`triplewire.operators.order.choice`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from triplewire.ir import nodes as ir
from triplewire.ir.evaluation.plan import plan_of
from triplewire.ir.evaluation.unknown import CallKey
from triplewire.ir.show import show
from triplewire.ir.subscription import Subscription
from triplewire.ir.walk import calls_in, rewrite, walk
from triplewire.operators.order.learned import conditional

_NEAR_0 = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """A call with the conditions over its outputs. `text`: these, with variables named by the call's arguments, so
    that it is the same for all subscriptions that ask the same. `negated`: it has to be false."""

    call: ir.Call
    conditions: tuple[ir.Expression, ...] = ()
    text: str = ""
    negated: bool = False

    def takes(self, key: CallKey) -> bool:
        """Is this a call of it, whatever values its variables have?"""
        mine = self.call.arguments
        return (
            key.operator == self.call.operator
            and len(key.arguments) == len(mine)
            and all(isinstance(a, ir.Variable) or a == given for a, given in zip(mine, key.arguments, strict=True))
        )

    def key(self, call: CallKey) -> CallKey:
        """Under which what comes of it is learned: the call's own, where it has no conditions."""
        return conditional(call, self.text) if self.text else call


@dataclass(frozen=True, slots=True, eq=False)
class Connective:
    """Parts of which one decides: an OR where that is a true one (`decisive`), an AND where it is a false one."""

    decisive: bool
    parts: tuple[CallTree, ...]


CallTree: TypeAlias = Predicate | Connective

Chance: TypeAlias = Callable[[CallKey, Predicate], tuple[float, float]]
"""The probability that a call makes a predicate true, and its cost, above 0."""


class Rated(NamedTuple):
    """A call that comes next in some part, and how much it is expected to decide for its cost."""

    key: CallKey
    rate: float


class _Expected(NamedTuple):
    """Of a part: the probability to be true, the cost until that is known, and the first call."""

    true: float
    cost: float
    first: CallKey


_TREES: dict[int, tuple[weakref.ref[Subscription], Connective]] = {}


def tree_of(subscription: Subscription) -> Connective:
    """The calls of a subscription that may decide it; those that only add bindings are left out. It is kept as long as
    this very object lives."""
    key = id(subscription)
    entry = _TREES.get(key)
    if entry is not None and entry[0]() is subscription:
        return entry[1]
    tree = _Trees(plan_of(subscription).outputs).group(subscription.where)
    _TREES[key] = weakref.ref(subscription, lambda _: _TREES.pop(key, None)), tree
    return tree


def rated(tree: Connective, calls: Collection[CallKey], chance: Chance) -> list[Rated]:
    """The call that is best for each part that could decide. Where no open call is of any part, the first one of all.
    `calls`: the open ones, at least one."""
    by_operator: dict[str, list[CallKey]] = {}
    for key in calls:
        by_operator.setdefault(key.operator, []).append(key)
    parts = [each for part in tree.parts if (each := _expected(part, by_operator, chance)) is not None]
    if not parts:
        return [Rated(next(iter(calls)), _NEAR_0)]
    return [Rated(each.first, (1 - each.true) / each.cost) for each in parts]


def _expected(tree: CallTree, calls: dict[str, list[CallKey]], chance: Chance) -> _Expected | None:
    """None where no open call is of the tree."""
    if isinstance(tree, Connective):
        below = (_expected(part, calls, chance) for part in tree.parts)
        return _connected([each for each in below if each is not None], tree.decisive)
    keys = [key for key in calls.get(tree.call.operator, ()) if tree.takes(key)]
    of_values = _connected([_Expected(*chance(key, tree), key) for key in keys], True)  # one of the values has to do
    if of_values is None or not tree.negated:
        return of_values
    return of_values._replace(true=1 - of_values.true)


def _connected(parts: Sequence[_Expected], decisive: bool) -> _Expected | None:
    if len(parts) <= 1:
        return parts[0] if parts else None

    def deciding(part: _Expected) -> float:
        return max(part.true if decisive else 1 - part.true, _NEAR_0)

    in_order = sorted(parts, key=lambda part: part.cost / deciding(part))
    cost, left = 0.0, 1.0
    for part in in_order:
        cost += left * part.cost
        left *= 1 - deciding(part)
    return _Expected(1 - left if decisive else left, cost, in_order[0].first)


class _Trees:
    """Makes the tree of one subscription. `outputs`: the variables that only calls bind."""

    def __init__(self, outputs: frozenset[str]) -> None:
        self._outputs = outputs

    def group(self, where: ir.Where, negated: bool = False) -> Connective:
        """The tree of a group: an AND of what it joins; of a negated one an OR."""
        joined = list(ir.joined(where))
        conditions = [c for part in joined if isinstance(part, ir.Filter) for c in ir.conjuncts(part.condition)]
        plain = [condition for condition in conditions if not any(_asks(node) for node in walk(condition))]
        parts: list[CallTree] = []
        for part in joined:
            if isinstance(part, ir.Call):
                parts.append(self._predicate(part, plain, negated))
            elif isinstance(part, ir.Or):
                parts += self._or(part.branches, negated)
            elif isinstance(part, ir.Not | ir.Minus) and any(calls_in(part.group)):
                parts.append(self.group(part.group, not negated))
        for condition in conditions:
            parts += self._condition(condition, negated)
        return Connective(negated, tuple(parts))

    def _or(self, branches: Iterable[ir.Where], negated: bool) -> Iterator[CallTree]:
        below = tuple([self.group(branch, negated) for branch in branches if any(calls_in(branch))])
        if below:
            yield Connective(not negated, below)

    def _condition(self, condition: ir.Expression, negated: bool) -> Iterator[CallTree]:
        """The tree of a condition; nothing where no call is in it, or what calls decide of it is not plain."""
        match condition:
            case ir.Holds(call):
                yield self._predicate(call, (), negated)
            case ir.Negate(inner):
                yield from self._condition(inner, not negated)
            case ir.AllOf(inner) | ir.AnyOf(inner):
                below = tuple([tree for each in inner for tree in self._condition(each, negated)])
                if below:
                    yield Connective(isinstance(condition, ir.AnyOf) != negated, below)
            case ir.Exists(group) if any(calls_in(group)):
                yield self.group(group, negated)

    def _predicate(self, call: ir.Call, conditions: Iterable[ir.Expression], negated: bool) -> Predicate:
        """The call with those of the conditions that it alone decides."""
        places: dict[str, int] = {}
        for place, argument in enumerate(call.arguments, 1):
            if isinstance(argument, ir.Variable):
                places.setdefault(argument.name, place)
        outputs = places.keys() & self._outputs
        mine = []
        for condition in conditions:
            names = {node.name for node in walk(condition) if isinstance(node, ir.Variable)}
            if names and names <= outputs:
                mine.append(condition)
        by_place = [
            rewrite(condition, (ir.Variable,), lambda variable: ir.Variable(str(places[variable.name])))
            for condition in mine
        ]
        by_place += [ir.Variable(f"{place}={places[a.name]}") for place, a in enumerate(call.arguments, 1)
                     if isinstance(a, ir.Variable) and places[a.name] != place]  # fmt: skip
        text = " ".join(sorted(map(show, by_place)))
        return Predicate(call, tuple(mine), text, negated)


def _asks(node: object) -> bool:
    """Does it ask more than values of variables?"""
    return isinstance(node, ir.Exists | ir.Holds) or (isinstance(node, ir.Function) and node.name == "NOW")

"""Queries of a repository (MDV paper, section 2.2): the rule language over cache and local metadata, in one statement.

    search CycleProvider c register c where c.serverInformation.memory > 64

becomes a join of the table of statements with itself, an alias a class, rule and step; `or` becomes UNION. A name in
the search clause may be that of a rule of the repository: then the resources that it holds are meant. What a query
means is what the rule means over one publication (`triplewire.languages.mdv`) that has all statements.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple

import sqlalchemy as sa

from triplewire.errors import LimitError
from triplewire.ir.nodes import And
from triplewire.ir.subscription import Subscription
from triplewire.languages.grammar.conditions import FLIPPED
from triplewire.languages.mdv import CONTAINS, EXISTS, Path, Rule, Step, Test
from triplewire.metadata.keys import constant_key
from triplewire.metadata.repository_tables import held, statements
from triplewire.model.terms import IRI, RDF_TYPE, Literal

Column = sa.ColumnElement[Any]
Place = tuple[str, tuple[IRI, ...]]
"""A variable and the properties that lead on from it."""

_MOST_TABLES = 60  # of a join; SQLite takes 64
_COMPARED: dict[str, Callable[[Any, Any], Any]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


class Node(NamedTuple):
    """What a variable or a path stands for, as columns: the name of the resource, and how it is compared."""

    name: Column
    label: Column
    literal: Column
    number_key: Column
    instant_key: Column

    def by(self, kind: str, *, is_order: bool) -> Column:
        """The column for a constant of a kind of `keys.constant_key`. Only literals have an order."""
        if kind == "text":
            return self.literal if is_order else self.label
        return self.number_key if kind == "number" else self.instant_key


def query(rule: Rule) -> sa.Select[Any]:
    """The names of all resources that a rule registers. Raises `LimitError` where a database cannot join so many."""
    branches = [_Branch(rule, tests).compiled() for tests in rule.branches]
    union = sa.union(*branches).subquery()
    return sa.select(union.c[0])


def named_rule(id: str) -> Subscription:
    """What a search clause that names a rule of the repository stands for."""
    return Subscription(id, "mdv", "", (), And(()))


class _Branch:
    """One branch of a rule as one join."""

    def __init__(self, rule: Rule, tests: tuple[Test, ...]) -> None:
        self._rule = rule
        self._tests = tests
        self._count = 0
        self._from: list[Any] = []
        self._where: list[Column] = []
        self._variables: dict[str, Node] = {}
        self._middle: set[Place] = set()  # which some path goes on from: it is one resource in all of them
        self._shared: dict[Place, Node] = {}

    def compiled(self) -> sa.Select[Any]:
        for searched in self._rule.searched:
            self._variables[searched.variable] = self._searched(searched.meaning)
        for path in (path for test in self._tests for path in test.paths):
            self._middle |= {_place(path, count) for count in range(1, len(path.steps))}
        absent = [test for test in self._tests if test.op == EXISTS and test.negated]
        for test in self._tests:
            if test not in absent:
                self._add(test)
        for test in absent:  # last, when it is known which resources other paths go on from
            assert isinstance(test.left, Path)
            self._where.append(~self._way(test.left))
        return sa.select(self._variables[self._rule.registered].name).select_from(*self._from).where(*self._where)

    def _table(self, table: sa.Table) -> Any:
        self._count += 1
        if self._count > _MOST_TABLES:
            raise LimitError(f"the query has more than {_MOST_TABLES} classes and steps", remedy="ask in parts")
        return table.alias(f"t{self._count}")

    def _searched(self, meaning: IRI | Subscription) -> Node:
        if isinstance(meaning, IRI):
            here = self._table(statements)
            self._where += [here.c.property == RDF_TYPE.value, here.c.refers == meaning.value]
        else:
            here = self._table(held)
            self._where.append(here.c.rule == meaning.id)
        self._from.append(here)
        name = here.c.resource
        label = sa.case((name.startswith("_:", autoescape=True), None), else_=name)
        return Node(name, label, sa.null(), sa.null(), sa.null())

    def _end(self, path: Path) -> Node:
        """What a path leads to: joined once for what other paths go on from, else for each that is written."""
        node = self._variables[path.variable]
        for count, step in enumerate(path.steps, 1):
            place = _place(path, count)
            following = self._shared.get(place)
            if following is None:
                here, following = self._step(node, step)
                self._from.append(here)
                self._where += _leads(node, here, step)
                if place in self._middle:
                    self._shared[place] = following
            node = following
        return node

    def _step(self, node: Node, step: Step) -> tuple[Any, Node]:
        here = self._table(statements)
        return here, Node(*(here.c[name] for name in ("refers", "label", "literal", "number_key", "instant_key")))

    def _way(self, path: Path) -> Column:
        """Is there a way along the path? It begins where other paths go on from, if they share a beginning."""
        node, begin = self._variables[path.variable], 0
        for count in range(1, len(path.steps)):
            if _place(path, count) not in self._shared:
                break
            node, begin = self._shared[_place(path, count)], count
        tables, conditions = [], []
        for step in path.steps[begin:]:
            here, following = self._step(node, step)
            tables.append(here)
            conditions += _leads(node, here, step)
            node = following
        return sa.exists(sa.select(sa.literal(1)).select_from(*tables).where(*conditions).correlate_except(*tables))

    def _add(self, test: Test) -> None:
        left = self._end(test.left) if isinstance(test.left, Path) else test.left
        right = self._end(test.right) if isinstance(test.right, Path) else test.right
        if test.op == EXISTS:
            return
        assert right is not None
        bare = [side for side in (test.left, test.right) if isinstance(side, Path) and not side.steps]
        if test.op == CONTAINS:
            condition = _contains(_literal(left), _literal(right), test.negated)
        elif isinstance(left, Node) and isinstance(right, Node):
            is_same = test.op == "=" and bare  # the resource itself, not a value that reads like its name
            condition = left.name == right.name if is_same else _compared(test.op, left, right)
        elif isinstance(left, Node):
            assert not isinstance(right, Node)
            condition = _with_constant(test.op, left, right)
        else:
            assert isinstance(right, Node)
            condition = _with_constant(FLIPPED[test.op], right, left)
        self._where.append(condition)


def _place(path: Path, count: int) -> Place:
    return path.variable, tuple(step.property for step in path.steps[:count])


def _leads(node: Node, here: Any, step: Step) -> list[Column]:
    return [here.c.resource == node.name, here.c.property == step.property.value]


def _literal(side: Node | IRI | Literal) -> Column:
    """The text of a side of `contains`, null of what is no literal; a constant is read by its text, quoted or not."""
    if isinstance(side, Node):
        return side.literal
    return sa.literal(side.lexical if isinstance(side, Literal) else side.value)


def _contains(text: Column, part: Column, negated: bool) -> Column:
    # no function of this name is the same in all databases: without its occurrences the text is another one
    holds = (part == "") | (sa.func.replace(text, part, "") != text)
    return sa.and_(text.is_not(None), part.is_not(None), ~holds if negated else holds)


def _with_constant(op: str, node: Node, constant: IRI | Literal) -> Column:
    """Semantics, section 2: the constant decides how both are read."""
    text = constant.lexical if isinstance(constant, Literal) else constant.value
    is_order = op not in ("=", "!=")
    if text.strip() == "NaN" or (is_order and isinstance(constant, IRI)):
        return sa.false()
    kind, key = constant_key(text)
    return sa.and_(node.label.is_not(None), _COMPARED[op](node.by(kind, is_order=is_order), key))


def _compared(op: str, left: Node, right: Node) -> Column:
    """Both read alike as numbers or instants, else they compare as texts."""
    is_order = op not in ("=", "!=")
    readings: list[tuple[Column, Column]] = []
    for kind in ("number", "instant"):
        a, b = left.by(kind, is_order=is_order), right.by(kind, is_order=is_order)
        readings.append((a.is_not(None) & b.is_not(None), _COMPARED[op](a, b)))
    a, b = left.by("text", is_order=is_order), right.by("text", is_order=is_order)
    comparable = left.label.is_not(None) & right.label.is_not(None)
    return comparable & sa.case(*readings, else_=_COMPARED[op](a, b))

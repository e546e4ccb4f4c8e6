"""Guards: for which parameters a template must not be used, since some of them are equal.

Equal parameters can make two parts of a query one part, and so can a parameter that is equal to a constant of the tree.
The latter are always refused. Of the former, a plain conjunction shows which parameters make two of its parts equal; in
other trees (alternatives, inline data, MDV paths) a template holds for one pattern of equal parameters only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias

from triplewire.ir.fulltext.nodes import Analyzer, TextAnd, Word
from triplewire.ir.nodes import (
    AllOf,
    And,
    Compare,
    Filter,
    FullText,
    InstanceOf,
    Label,
    Pattern,
    TextTest,
    Variable,
    Where,
)
from triplewire.ir.normal_form.clauses import Clause, NormalForm
from triplewire.ir.walk import children, walk
from triplewire.languages.templates.parameters import Parameters, content
from triplewire.languages.templates.template import LEAVES, Placeholder, leaves
from triplewire.model.terms import IRI, Literal

_PARTS = frozenset([And, Pattern, Filter])
_CONDITIONS = frozenset([Compare, FullText, TextAnd, Word, Analyzer, TextTest, InstanceOf, AllOf])
_CONJUNCTION = _PARTS | _CONDITIONS | frozenset([Variable, IRI, Literal, Label])
_MOST_PARTS = 64

Part: TypeAlias = tuple[object, ...]
"""The kinds of nodes and the leaves of a pattern or a test in order; a placeholder is a `_Number`."""


@dataclass(frozen=True, slots=True)
class Guard:
    """What keeps a template from holding.

    `reserved`: contents that no parameter may have, since the tree has them already. `alike`: groups of parts that
    differ in their parameters only; each function takes those of one part. `compares`: the template holds for one
    pattern of equal parameters only.
    """

    reserved: frozenset[str]
    alike: tuple[tuple[Callable[[Parameters], Any], ...], ...] = ()
    compares: bool = False

    def allows(self, parameters: Parameters) -> bool:
        """Does the template hold for these parameters?"""
        if self.reserved and not self.reserved.isdisjoint(map(content, parameters)):
            return False
        if not self.alike or len(set(parameters)) == len(parameters):
            return True
        return all(len({key(parameters) for key in group}) == len(group) for group in self.alike)


@dataclass(frozen=True, slots=True)
class _Number:
    """A placeholder in a part, by its number; -1 for any."""

    number: int


def is_conjunction(where: Where, form: NormalForm) -> bool:
    """Is it a plain conjunction of patterns and conditions, of a size at which its parts can be compared?"""
    if len(form.clauses) != 1:
        return False
    clause = form.clauses[0]
    return len(clause.patterns) + len(clause.tests) <= _MOST_PARTS and all(type(n) in _CONJUNCTION for n in walk(where))


def guard_of_conjunction(clause: Clause, placeholders: tuple[Placeholder, ...]) -> Guard:
    """The guard of a plain conjunction."""
    numbers: dict[object, _Number] = {}
    for number, placeholder in enumerate(placeholders):
        for node in placeholder.replacement(placeholder.example):
            numbers[node] = _Number(number)
    alike: dict[Part, list[Callable[[Parameters], Any]]] = {}
    for item in (*clause.patterns, *clause.tests):
        part = tuple(_flattened(item, numbers))
        used = [leaf.number for leaf in part if isinstance(leaf, _Number)]
        if used:
            anonymous = tuple([_Number(-1) if isinstance(leaf, _Number) else leaf for leaf in part])
            alike.setdefault(anonymous, []).append(itemgetter(*used))
    parts = (clause.patterns, tuple([test for _, test in clause.tests]))
    constants = [leaf for leaf in leaves(parts) if not isinstance(leaf, Variable) and leaf not in numbers]
    reserved = frozenset([text for constant in constants for text in _texts(constant)])
    return Guard(reserved, tuple([tuple(group) for group in alike.values() if len(group) > 1]))


def guard_of_tree(where: Where, placeholders: tuple[Placeholder, ...]) -> Guard:
    """The guard of any other tree."""
    examples = {content(placeholder.example) for placeholder in placeholders}
    return Guard(frozenset([text for text in _texts(where) if text not in examples]), compares=True)


def _texts(root: object) -> Iterator[str]:
    """All strings in a tree."""
    stack = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
        else:
            stack.extend(children(node))


def _flattened(node: object, numbers: dict[object, _Number]) -> Iterator[object]:
    """The members of a `Part`."""
    kind = type(node)
    if kind in LEAVES:
        yield numbers.get(node, node)
        return
    parts = children(node)
    yield kind if parts or kind is tuple else node
    if kind is tuple:
        yield len(parts)
    for part in parts:
        yield from _flattened(part, numbers)

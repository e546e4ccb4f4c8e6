"""Equal constants can make two parts of a query one: which constants a shape does not hold for, for this reason.

In a plain conjunction that is seen from its parts. In other trees (alternatives, inline data, MDV paths) a shape holds
for one pattern of equal constants only, and for none that the tree itself has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from operator import itemgetter
from typing import Any, TypeAlias

from triplewire.ir.evidence import Clause, Evidence
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
from triplewire.ir.text import Analyzer, TextAnd, Word
from triplewire.ir.walk import walk
from triplewire.languages.masks import Constants, content, is_mixed, one_quoting, written
from triplewire.languages.shape import LEAVES, Slot, fields_of
from triplewire.model.terms import IRI, Literal

_PARTS = frozenset([And, Pattern, Filter])
_CONDITIONS = frozenset([Compare, FullText, TextAnd, Word, Analyzer, TextTest, InstanceOf, AllOf])
_CONJUNCTION = _PARTS | _CONDITIONS | frozenset([Variable, IRI, Literal, Label])
_MOST_PARTS = 64

Part: TypeAlias = tuple[object, ...]
"""The leaves of a pattern or a test in order; a slot is a `_Hole`."""


@dataclass(frozen=True, slots=True)
class Guard:
    """`alike`: groups of parts that differ in their slots only. `fixed`: pairs of other parts, with what makes them the
    same: slots that hold the same, or a constant. `reserved`: what no slot may hold. `mixed`: strings are
    quoted in both ways."""

    alike: tuple[tuple[Callable[[Constants], Any], ...], ...] = ()
    fixed: tuple[tuple[tuple[int, int | str], ...], ...] = ()
    reserved: frozenset[str] | None = None
    mixed: bool = False

    def allows(self, constants: Constants) -> bool:
        """Does the shape hold for these constants?"""
        if self.reserved is not None:
            return not any(content(one) in self.reserved for one in constants)
        if self.mixed:
            constants = one_quoting(constants)
        for conditions in self.fixed:
            if all(constants[a] == (constants[b] if isinstance(b, int) else b) for a, b in conditions):
                return False
        if not self.alike or len(set(constants)) == len(constants):
            return True
        return all(len({key(constants) for key in group}) == len(group) for group in self.alike)


@dataclass(frozen=True, slots=True)
class _Hole:
    slot: int


def is_conjunction(where: Where, evidence: Evidence) -> bool:
    """Is it a plain conjunction of patterns and conditions, of a size at which its parts can be compared?"""
    if len(evidence.clauses) != 1:
        return False
    clause = evidence.clauses[0]
    return len(clause.patterns) + len(clause.tests) <= _MOST_PARTS and all(type(n) in _CONJUNCTION for n in walk(where))


def guard_of(clause: Clause, slots: tuple[Slot, ...]) -> Guard:
    """The guard of a plain conjunction."""
    holes: dict[object, _Hole] = {}
    for number, slot in enumerate(slots):
        for node in slot.replaced(slot.placeholder):
            holes[node] = _Hole(number)
    alike: dict[Part, list[Callable[[Constants], Any]]] = {}
    parts = []
    for item in (*clause.patterns, *clause.tests):
        part = tuple(_leaves(item, holes))
        found = [leaf.slot for leaf in part if isinstance(leaf, _Hole)]
        if found:
            bare = tuple([_Hole(-1) if isinstance(leaf, _Hole) else leaf for leaf in part])
            alike.setdefault(bare, []).append(itemgetter(*found))
        parts.append(part)
    mixed = is_mixed([slot.placeholder for slot in slots])
    delimiters = ['"' if mixed and slot.placeholder[0] == "'" else slot.placeholder[0] for slot in slots]
    pairs = (_conditions(a, b, delimiters) for a, b in combinations(parts, 2))
    return Guard(
        tuple([tuple(group) for group in alike.values() if len(group) > 1]),
        tuple([pair for pair in pairs if pair and any(isinstance(b, str) for _, b in pair)]),
        mixed=mixed,
    )


def reserving(where: Where, slots: tuple[Slot, ...]) -> Guard:
    """The guard of any other tree."""
    placeholders = {content(slot.placeholder) for slot in slots}
    texts = frozenset([text for text in texts_of(where) if text not in placeholders])
    return Guard(reserved=texts)


def texts_of(node: object) -> Iterator[str]:
    """All texts of a tree."""
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, tuple):
            stack.extend(one)
        else:
            stack.extend([getattr(one, name) for name in fields_of(type(one)) or ()])


def _leaves(node: object, holes: dict[object, _Hole]) -> Iterator[object]:
    kind = type(node)
    if kind in LEAVES:
        yield holes.get(node, node)
        return
    names = fields_of(kind)
    yield kind if names is not None or kind is tuple else node
    if isinstance(node, tuple):
        yield len(node)
        for one in node:
            yield from _leaves(one, holes)
    for name in names or ():
        yield from _leaves(getattr(node, name), holes)


def _conditions(a: Part, b: Part, delimiters: list[str]) -> tuple[tuple[int, int | str], ...] | None:
    """What makes both parts the same; None where nothing does."""
    if len(a) != len(b):
        return None
    found: list[tuple[int, int | str]] = []
    for one, other in zip(a, b, strict=True):
        if one == other:
            continue
        if isinstance(other, _Hole):
            one, other = other, one
        if not isinstance(one, _Hole):
            return None
        if isinstance(other, _Hole):
            found.append((one.slot, other.slot))
            continue
        text = written(other, delimiters[one.slot])
        if text is None:
            return None
        found.append((one.slot, text))
    return tuple(found)

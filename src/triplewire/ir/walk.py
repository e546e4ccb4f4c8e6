"""Traversal of trees of dataclass nodes: `walk` visits every node, `rewrite` makes a tree with other nodes.

What the nodes are: `triplewire.ir.nodes`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, cast

from triplewire.ir.nodes import Call

T = TypeVar("T")
Parts: TypeAlias = Callable[[Any], tuple[object, ...]] | None


class _PartsByType(dict[type, Parts]):
    """A function for each type that returns the parts of its nodes, in order; None where it has none."""

    def __missing__(self, kind: type) -> Parts:
        parts: Parts = None
        if issubclass(kind, tuple):
            parts = tuple
        elif dataclasses.is_dataclass(kind):
            names = [field.name for field in dataclasses.fields(kind)]
            # of one name, attrgetter makes no tuple
            parts = attrgetter(*names) if len(names) > 1 else lambda node: tuple([getattr(node, n) for n in names])
        self[kind] = parts
        return parts


_PARTS = _PartsByType()


def walk(root: object) -> Iterator[object]:
    """The dataclass nodes below and including `root`, each before its parts, in the order of the fields.

    Iterative, so that a tree of any depth is visited.
    """
    stack = [root]
    while stack:
        node = stack.pop()
        parts = _PARTS[type(node)]
        if parts is None:
            continue
        if not isinstance(node, tuple):
            yield node
        stack += [part for part in parts(node)[::-1] if type(part) is not str]


def calls_in(root: object) -> Iterator[Call]:
    """The operator calls in a tree, in the order of `walk`."""
    return (node for node in walk(root) if isinstance(node, Call))


def rewrite(node: T, kinds: Collection[type], change: Callable[[Any], object]) -> T:
    """The tree in which `change(part)` replaces each part whose type is one of `kinds`.

    Parts are nodes, strings and whatever else stands in fields and tuples, in the order of the fields. What `change`
    returns is not rewritten again. A node without a changed part is the same object as before. Recursive: the parsers
    limit the depth of a tree (`max_query_depth`).
    """
    kind = type(node)
    if kind in kinds:
        return cast(T, change(node))
    parts = _PARTS[kind]
    if parts is None:
        return node
    before = parts(node)
    after = [rewrite(part, kinds, change) for part in before]
    for old, new in zip(before, after, strict=True):
        if old is not new:
            return kind(after) if kind is tuple else kind(*after)  # type: ignore[call-arg]  # a node's parts are the arguments of its class
    return node


def children(node: object) -> tuple[object, ...]:
    """What a node holds, in order: the values of its fields, or a tuple's members."""
    parts = _PARTS[type(node)]
    return () if parts is None else parts(node)

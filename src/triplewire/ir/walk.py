"""Visit every node of a tree: for questions such as "which operators does it call?". What the nodes are: `nodes`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

_KNOWN: dict[type, Callable[[Any], tuple[object, ...]] | None] = {}


def walk(root: object) -> Iterator[object]:
    """The dataclass nodes below and including `root`, each before its parts, in the order of the fields.

    Iterative, so that a tree of any depth is visited.
    """
    stack = [root]
    while stack:
        node = stack.pop()
        kind = type(node)
        parts = _KNOWN[kind] if kind in _KNOWN else _parts(kind)
        if parts is None:
            continue
        if not isinstance(node, tuple):
            yield node
        stack += [part for part in parts(node)[::-1] if type(part) is not str]


def children(node: object) -> tuple[object, ...]:
    """What a node holds, in order: the values of its fields, or a tuple's members."""
    parts = _parts(type(node))
    return () if parts is None else parts(node)


def _parts(kind: type) -> Callable[[Any], tuple[object, ...]] | None:
    """What takes out the parts of such a node; None where it has none."""
    if kind not in _KNOWN:
        _KNOWN[kind] = _parts_of(kind)
    return _KNOWN[kind]


def _parts_of(kind: type) -> Callable[[Any], tuple[object, ...]] | None:
    if issubclass(kind, tuple):
        return tuple
    if not dataclasses.is_dataclass(kind):
        return None
    names = [field.name for field in dataclasses.fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda node: tuple([getattr(node, name) for name in names])

"""Visit every node of a tree: for questions such as "which operators does it call?". What the nodes are: `nodes`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

_KNOWN: dict[type, tuple[str, ...] | None] = {}


def walk(root: object) -> Iterator[object]:
    """The dataclass nodes below and including `root`, each before its parts, in the order of the fields.

    Iterative, so that a tree of any depth is visited.
    """
    stack = [root]
    while stack:
        node = stack.pop()
        if not isinstance(node, tuple):
            if _fields(type(node)) is None:
                continue
            yield node
        stack.extend(reversed(children(node)))


def children(node: object) -> tuple[object, ...]:
    """What a node holds, in order: the values of its fields, or a tuple's members."""
    if isinstance(node, tuple):
        return node
    return tuple([getattr(node, name) for name in _fields(type(node)) or ()])


def _fields(kind: type) -> tuple[str, ...] | None:
    if kind not in _KNOWN:
        _KNOWN[kind] = tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None
    return _KNOWN[kind]

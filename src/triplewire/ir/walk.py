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
        if isinstance(node, tuple):
            stack.extend(reversed(node))
            continue
        names = _fields(type(node))
        if names is not None:
            yield node
            stack.extend(getattr(node, name) for name in reversed(names))


def _fields(kind: type) -> tuple[str, ...] | None:
    if kind not in _KNOWN:
        _KNOWN[kind] = tuple(f.name for f in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None
    return _KNOWN[kind]

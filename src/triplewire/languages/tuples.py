"""GQL texts tuple by tuple: `SELECT * WHERE (...) AND (...)`, in which each tuple has a shape of its own.

Graph patterns of many edges hardly ever have the same mask, but their tuples do, once variables are constants, too. A
text is taken apart where nothing but ` AND ` stands between two closed parentheses. Such tuples are read one after the
other and know nothing of each other: the text's patterns are theirs, its filters stand behind them, it selects what
they bind. A tuple is trusted when a first text with it, parsed in full, was what its tuples make of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from triplewire.config import Settings
from triplewire.errors import TriplewireError
from triplewire.ir.evidence import evidence
from triplewire.ir.nodes import Variable
from triplewire.ir.subscription import Subscription
from triplewire.languages.guards import is_conjunction
from triplewire.languages.masks import HOLE, WITH_VARIABLES, Constants
from triplewire.languages.shape import Composed, Shape

Outside: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""What a text is parsed with beside itself: language, base, prefixes."""

ShapeOf: TypeAlias = Callable[[str, Constants, Outside, "tuple[int, ...] | None"], Shape | None]

_HEAD = re.compile(r"(?:[^()\0]*?\s)?(?:SELECT\s+\*\s+)?WHERE\s+(?=\()", re.IGNORECASE)
_ODD = re.compile(r"[\"'\\$?]")  # a string or variable that the cut has not taken
_PARENTHESIS = re.compile("[()]")
_AND = " AND "


class Parse(Protocol):
    """Parses a text in full."""

    def __call__(self, text: str, outside: Outside, rules: Mapping[str, Subscription] | None = None) -> Subscription:
        """The subscription."""


class Tuples:
    """Finds the tuples of texts; `shape_of` gives the shape of a mask, `parse` parses in full."""

    def __init__(self, shape_of: ShapeOf, parse: Parse, settings: Settings) -> None:
        self._shape_of = shape_of
        self._parse = parse
        self._settings = settings
        self._trusted: set[Shape] = set()
        self._refused: set[Shape] = set()

    def clear(self) -> None:
        """Forget all shapes."""
        self._trusted.clear()
        self._refused.clear()

    def find(self, text: str, outside: Outside) -> tuple[Composed, Constants] | None:
        """The text as a conjunction; None where it is not known to be one."""
        pieces = WITH_VARIABLES.split(text)
        mask = HOLE.join(pieces[::2])
        head = _HEAD.match(mask)
        if head is None:
            return None
        constants = tuple(pieces[1::2])
        parts: list[Shape] = []
        at = 0
        item = ""
        for piece in mask[head.end() :].split(_AND):
            item = item + _AND + piece if item else piece
            if item.count("(") > item.count(")"):
                continue
            end = at + item.count(HOLE)
            part = self._part(head[0], item, constants[at:end], outside)
            if part is None:
                return None
            parts.append(part)
            at, item = end, ""
        if item or sum(len(part.evidence.clauses[0].patterns) for part in parts) > self._settings.max_patterns:
            return None
        composed = Composed(outside[0], tuple(parts))
        if len(parts) > 1 and not all(map(self._trusted.__contains__, parts)):
            return (composed, constants) if self._trust(composed, constants, text, outside) else None
        return composed, constants

    def _part(self, head: str, item: str, constants: Constants, outside: Outside) -> Shape | None:
        names = [one if one[0] == "?" else number for number, one in enumerate(constants)]
        shape = self._shape_of(head + item, constants, outside, tuple(map(names.index, names)))
        if shape is None or shape in self._trusted:
            return shape
        if shape in self._refused or not (_is_closed(item) and _is_tuple(shape)):
            self._refused.add(shape)
            return None
        return shape

    def _trust(self, composed: Composed, constants: Constants, text: str, outside: Outside) -> bool:
        """Is a text with tuples that are not trusted yet what they make of it? Then they are."""
        try:
            stated = self._parse(text, outside)
        except TriplewireError:
            return False
        made = composed.subscription_of(constants, stated.id, text, dict(outside[2]), outside[1])
        is_same = stated == made and not stated.warnings
        if is_same and evidence(stated, most=self._settings.max_branches) == composed.evidence_of(constants):
            self._trusted.update(composed.parts)
            return True
        self._refused.update([part for part in composed.parts if part not in self._trusted])
        return False


def _is_closed(item: str) -> bool:
    """Is it one pair of parentheses with what is in it, and nothing that the cut cannot tell?"""
    if _ODD.search(item) or not item.endswith(")"):
        return False
    depth = 0
    for found in _PARENTHESIS.finditer(item):
        depth += 1 if found[0] == "(" else -1
        if depth <= 0 and found.end() < len(item):
            return False
    return depth == 0


def _is_tuple(shape: Shape) -> bool:
    """Are its parts those of a conjunction whatever else is in it, and does it select all that they bind?"""
    if shape.warnings or shape.ask or shape.named or not is_conjunction(shape.stated, shape.evidence):
        return False
    clause = shape.evidence.clauses[0]
    terms = [term for pattern in clause.patterns for term in pattern]
    names = dict.fromkeys([term.name for term in terms if isinstance(term, Variable)])
    return tuple(names) == shape.select and not any(name.startswith("*") for name in names)

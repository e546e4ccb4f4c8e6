"""Estimates, from the text of a regular expression, the work that RE2 may have with each character that it reads.

RE2 makes a deterministic automaton of a pattern while it reads: a step a byte. Where the automaton has too many states
for its memory, each byte is a step for every place of the pattern where a match may be at that moment. Whether that may
happen is estimated here, from above. What is made of it: docs/decisions/008.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

_MANY = 1 << 40  # no number of states or ways is larger
_UNICODE, _DIGITS, _OTHERS = 64, 16, 8  # ranges of first bytes: of letters and the like, of digits, of all but a few
_NOTED, _TOGETHER = 5, 16  # to note the ends of a group costs as much as 5 branches, and one more for each 16 groups
_STATE = 350  # bytes of a state, beside those for each position
_PLAIN = 5 << 15  # bytes of an automaton: less than RE2 has for one (`regexes.LEAST_MEMORY`)
TOKEN = re.compile(
    r"(?P<times>[*+?]|\{(?P<least>\d{1,4})(?P<more>,(?P<most>\d{0,4}))?\})\??"
    r"|(?P<open>\((?:\?[^:)>]*[:>]?)?)|(?P<close>\))|(?P<either>\|)"
    r"|(?P<set>\[(?:\\.|[^\]\\])*\])|\\[pPx]\{[^}]*\}|\\.|.",
    re.DOTALL,
)
"""The parts of a pattern: what repeats, groups, sets, escapes, characters."""

_WIDTHS = dict.fromkeys("wWiIcCpPD", _UNICODE) | {"d": _DIGITS, "s": 2, "S": _OTHERS}
_PLACELESS = frozenset(("^", "$", r"\b", r"\B", r"\A", r"\z"))


class Shape(NamedTuple):
    """A part of a pattern: its positions (characters and classes, repeated ones often), the branches that they are in
    RE2's program, in how many ways a text may be read behind it, and how many states it takes to know which."""

    positions: int
    width: int
    ways: int
    states: int

    @property
    def is_plain(self) -> bool:
        """Is the automaton small, whatever the text?"""
        return self.states * (4 * self.positions + _STATE) <= _PLAIN

    def then(self, other: Shape) -> Shape:
        """One behind the other."""
        return _shape(
            self.positions + other.positions,
            self.width + other.width,
            self.ways * other.ways,
            self.states + self.ways * other.states,
        )

    def either(self, other: Shape) -> Shape:
        """One or the other."""
        return _shape(*map(sum, zip(self, other, strict=True)))

    def times(self, least: int, most: int | None, *, is_group: bool) -> Shape:
        """Repeated: any number of times without `most`."""
        copies = max(least, 1) if most is None else most
        if not copies:
            return _EMPTY
        free = max(copies - least, 0)
        if most is None:
            free = copies * self.positions if is_group else int(self.ways == 1)
        ways = self.ways ** min(copies, 64) << min(free, 64)
        return _shape(
            self.positions * copies,
            (self.width + (free > 0)) * copies,
            ways,
            self.states * (copies if ways == 1 else max(copies, ways)),
        )


def _shape(positions: int, width: int, ways: int, states: int) -> Shape:
    return Shape(positions, width, min(ways, _MANY), min(states, _MANY))


_EMPTY = Shape(0, 0, 1, 0)  # matches the empty text: one way to read it
_NEVER = Shape(0, 0, 0, 0)  # matches nothing: `either` begins with it


def shape_of(pattern: str, flags: str) -> Shape:
    """Of an XPath pattern. Of one that is malformed, of something like it."""
    if "q" in flags:
        return _literal(pattern)
    spaced, noting = "x" in flags, _NOTED + pattern.count("(") // _TOGETHER
    # of each open group: the branches before, what is before in this one, and what noting it takes
    branches, before, last, is_group = _NEVER, _EMPTY, _EMPTY, False
    outer: list[tuple[Shape, Shape, int]] = []
    for token in TOKEN.finditer(pattern):
        text = token[0]
        if token["times"]:
            last, is_group = last.times(*_bounds(token.group), is_group=is_group), True
        elif token["either"]:
            branches, before, last = branches.either(before.then(last)), _EMPTY, _EMPTY
        elif token["open"]:
            outer.append((branches, before.then(last), noting * (text == "(" or "<" in text)))
            branches, before, last = _NEVER, _EMPTY, _EMPTY
        elif token["close"] and outer:
            inner, is_group = branches.either(before.then(last)), True
            branches, before, noted = outer.pop()
            last = inner._replace(width=inner.width + noted)
        elif text not in _PLACELESS and not (spaced and text in " \t\n\r"):
            before, last, is_group = before.then(last), _atom(text), False
    while outer:  # malformed, or quoted parentheses
        last = branches.either(before.then(last))
        branches, before, _ = outer.pop()
    whole = branches.either(before.then(last))
    return whole._replace(width=2 * whole.width) if "i" in flags else whole


def _bounds(group: Callable[[str], str | None]) -> tuple[int, int | None]:
    """How often something is repeated, at least and at most."""
    least = group("least")
    if least is None:
        return (1 if group("times") == "+" else 0), (1 if group("times") == "?" else None)
    if group("more") is None:
        return int(least), int(least)
    most = group("most")
    return int(least), (int(most) if most else None)


def _atom(text: str) -> Shape:
    """A character or a class."""
    if text.startswith("["):
        ranges = len(text) - 2 - 2 * text.count("-")
        escapes = sum(_WIDTHS.get(letter, 0) for letter in re.findall(r"\\(.)", text, re.DOTALL))
        others = 0 if text.isascii() and text[1] != "^" else _OTHERS
        return Shape(1, max(1, min(ranges + escapes + others, _UNICODE)), 2, 1)
    if text == "." or (text[0] == "\\" and text[1:2] in _WIDTHS):
        return Shape(1, _OTHERS if text == "." else _WIDTHS[text[1]], 2, 1)
    return _literal(text[-1] if len(text) == 2 else text[:1])


def _literal(text: str) -> Shape:
    length = len(text.encode("utf-8", "surrogatepass"))
    return Shape(length, length, 1, length)

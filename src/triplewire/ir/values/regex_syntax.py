r"""The grammar of XPath's regular expressions: a pattern is read into parts, each with what it is in RE2's syntax.

Standard: XPath functions 3.1, sections 5.6.1 and 5.6.2 (flags), on XML Schema 1.1 part 2, appendix G. What the grammar
does not have (`\b`, `(?i)`, `\x41`, `a{,2}`) is refused, so that no pattern means what another dialect means by it.
So is what RE2 cannot do: back-references, repetition beyond 1,000.

Sets of characters are RE2's classes where these can say the same; where they cannot (subtraction `[a-z-[aeiou]]`,
blocks `\p{IsGreek}`, negated escapes within a class) they are worked out as ranges of code points. The flag `i` adds
the case variants of characters and of ranges, and leaves `\p{Lu}` and its like as they are.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, NoReturn, TypeAlias

import re2
import regex

from triplewire.ir.values.numbers import ExpressionError

LITERAL, SET, ANCHOR, OPEN, CLOSE, EITHER, TIMES = "literal", "set", "anchor", "open", "close", "either", "times"
NOTING = "("
"""The text of an opened group that is noted; of others it is `(?:`."""

_UNICODE, _DIGITS, _OTHERS = 64, 16, 8  # ranges of first bytes: of letters and the like, of digits, of all but a few
_LAST = 0x10FFFF
_MOST_TIMES, _MOST_NESTED = 1_000, 20  # repetitions that RE2 takes; classes within classes
_SPACE = " \t\n\r"
_CATEGORY = re.compile("L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|Z[slp]?|S[mcko]?|C[cfon]?")
_BLOCK = re.compile("Is([a-zA-Z0-9-]+)")
_QUANTITY = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_SINGLE = frozenset(r"\|.?*+(){}$-[]^")
_ASSIGNED = r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Z}"
_START = (
    r":A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}\x{200C}\x{200D}\x{2070}-\x{218F}"
    r"\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}"
)

_ESCAPES: Mapping[str, tuple[str, bool, int]] = {
    "d": (r"\p{Nd}", False, _DIGITS),
    "D": (r"\p{Nd}", True, _UNICODE),
    "w": (r"\p{L}\p{M}\p{N}\p{S}", False, _UNICODE),
    "W": (r"\p{L}\p{M}\p{N}\p{S}", True, _UNICODE),
    "s": (r" \t\n\r", False, 2),
    "S": (r" \t\n\r", True, _OTHERS),
    "i": (_START, False, _UNICODE),
    "I": (_START, True, _UNICODE),
    "c": (_START + r"\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}\x{2040}", False, _UNICODE),
    "C": (_START + r"\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}\x{2040}", True, _UNICODE),
    "p{C}": (_ASSIGNED, True, _UNICODE),  # RE2's \p{C} lacks what is not assigned
    "p{Cn}": (_ASSIGNED + r"\p{C}", True, _UNICODE),
}
"""What escapes stand for: inside a class of RE2, whether it is all but that, and about how many ranges they have."""

_WORDS = "for words, use ftcontains, or (^|\\W) and (\\W|$)"
_ANCHORS = "write ^ for the beginning and $ for the end"
_PLAIN_TEXT = 'for a text as it is, give the flag "q"'
_CODES = "write the character itself, or where the language has it, \\u and its code"
_REMEDIES = (
    dict.fromkeys("bB", _WORDS)
    | dict.fromkeys("AzZ", _ANCHORS)
    | dict.fromkeys("QE", _PLAIN_TEXT)
    | dict.fromkeys("xu", _CODES)
    | {"h": r"write [ \t]", "R": r"write \r?\n", "v": r"write [\n\r]", "N": "write ."}
)

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""Code points, first to last, ascending and apart."""


class RegexError(ExpressionError):
    """A pattern that is none of XPath's, or that RE2 cannot take; the text says why, `remedy` what to write instead."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


class Part(NamedTuple):
    """A part of a pattern.

    `kind`: LITERAL, one character, as it is in `literal`; SET, one of many characters; ANCHOR; OPEN, CLOSE and EITHER
    of groups; TIMES, how often what stands before is repeated: at least `least` times, and at most `most`, if that is
    given. `text` is the part in RE2's syntax, `width` the branches that it may be in RE2's program.
    """

    kind: str
    text: str
    literal: str = ""
    width: int = 0
    least: int = 0
    most: int | None = None


def parts_of(pattern: str, flags: str) -> list[Part]:
    """The parts of a pattern, in order. Raises `RegexError` where it is none of XPath's."""
    if "q" in flags:
        return [_literal(char, ignore_case="i" in flags) for char in pattern]
    return _Reader(pattern, flags).parts()


@dataclass(frozen=True, slots=True)
class _Escape:
    """Characters that an escape stands for: RE2's class of them without the brackets, or of all others."""

    inner: str
    is_negated: bool
    width: int


@dataclass(frozen=True, slots=True)
class _Class:
    """A class: its members, ranges of code points and escapes; is it of all others; what is subtracted."""

    members: tuple[tuple[int, int] | _Escape, ...]
    is_negated: bool
    less: _Class | None


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str, flags: str) -> None:
        self._pattern = pattern
        places = _without_space(pattern) if "x" in flags else list(range(len(pattern)))
        self._place = [*places, len(pattern)]  # of each character that is read, in the pattern
        self._text = "".join([pattern[place] for place in places])
        self._ignore_case = "i" in flags
        self._dot = Part(SET, "(?s:.)" if "s" in flags else r"[^\n\r]", width=_OTHERS)
        self._at = 0

    def parts(self) -> list[Part]:
        """All parts."""
        parts: list[Part] = []
        opened: list[int] = []  # where groups begin
        while self._at < len(self._text):
            begin, char = self._at, self._text[self._at]
            self._at += 1
            if char in "?*+{":
                if not parts or parts[-1].kind in (OPEN, EITHER, TIMES):
                    what = "a second quantifier" if parts and parts[-1].kind == TIMES else "a quantifier behind nothing"
                    self._refuse(begin, f"{what}, {char!r}", f"write \\{char} for the character")
                parts.append(self._times(begin))
            elif char == "(":
                opened.append(begin)
                parts.append(self._open(begin))
            elif char == ")":
                if not opened:
                    self._refuse(begin, "')' without '('", "write \\) for the character")
                opened.pop()
                parts.append(Part(CLOSE, char))
            elif char == "|":
                parts.append(Part(EITHER, char))
            elif char in "]}":
                self._refuse(begin, f"{char!r} alone", f"write \\{char} for the character")
            else:
                parts.append(self._atom(begin, char))
        if opened:
            self._refuse(opened[-1], "'(' without ')'", "write \\( for the character")
        return parts

    def _refuse(self, at: int, what: str, remedy: str = "") -> NoReturn:
        place = self._place[min(at, len(self._text))] + 1
        shown = repr(self._pattern[:80]) + ("..." if len(self._pattern) > 80 else "")
        raise RegexError(f"XPath's regular expressions do not have {what}: character {place} of {shown}", remedy)

    def _open(self, begin: int) -> Part:
        if not self._text.startswith("?", self._at):
            return Part(OPEN, NOTING)
        if self._text.startswith("?:", self._at):
            self._at += 2
            return Part(OPEN, "(?:")
        dialect = re.compile(r"\?(?:[a-z]*-?[a-z]*[:)]|P?<\w+>|<?[=!>]|.?)", re.DOTALL).match(self._text, self._at)
        what = "(" + (dialect[0] if dialect else "?")
        remedy = "groups are ( ) and (?: )"
        if re.fullmatch(r"\(\?[a-z-]+[:)]", what):
            remedy = "give flags as the argument behind the pattern"
        elif what[-1] in "=!":
            remedy = "write it without look-around"
        elif what[-1] == ">" and len(what) > 3:
            remedy = "groups are counted: write ( )"
        self._refuse(begin, f"the group '{what}'", remedy)

    def _times(self, begin: int) -> Part:
        char = self._text[begin]
        text, bounds = char, (int(char == "+"), 1 if char == "?" else None)
        if char == "{":
            quantity = _QUANTITY.match(self._text, begin)
            if quantity is None:
                end = self._text.find("}", begin) + 1 or begin + 1
                what = self._text[begin:end] if end - begin < 12 else char
                open_end = what.startswith("{,") and what[2:-1].isdecimal()
                remedy = f"write {{0,{what[2:]}" if open_end else "write {2}, {2,} or {2,5}, or \\{ for the character"
                self._refuse(begin, f"the quantifier {what!r}", remedy)
            self._at = quantity.end()
            numbers = [number.lstrip("0") or "0" for number in (quantity[1], quantity[3]) if number]
            if any(len(number) > 4 or int(number) > _MOST_TIMES for number in numbers):
                raise RegexError(f"RE2 repeats a part at most {_MOST_TIMES:,} times, not {quantity[0][:20]}")
            bounds = int(numbers[0]), int(numbers[-1]) if quantity[3] or not quantity[2] else None
            text = f"{{{','.join(numbers)}{',' * (bounds[1] is None)}}}"
            if bounds[1] is not None and bounds[0] > bounds[1]:
                self._refuse(begin, f"the quantifier {text!r}", "the larger number comes last")
        if self._text.startswith("?", self._at):  # reluctant
            self._at += 1
            text += "?"
        return Part(TIMES, text, least=bounds[0], most=bounds[1])

    def _atom(self, begin: int, char: str) -> Part:
        if char == ".":
            return self._dot
        if char in "^$":
            return Part(ANCHOR, char)
        if char == "[":
            return self._set(self._class(begin, 0))
        if char != "\\":
            return _literal(char, self._ignore_case)
        escaped = self._escape(begin)
        if isinstance(escaped, str):
            return _literal(escaped, self._ignore_case)
        return Part(SET, f"[{'^' * escaped.is_negated}{escaped.inner}]", width=escaped.width)

    def _escape(self, begin: int) -> str | _Escape:
        """What the escape stands for whose backslash stands at `begin`: a character, or many."""
        char = self._text[self._at : self._at + 1]
        self._at += 1
        if char in _CONTROLS or (char and char in _SINGLE):
            return _CONTROLS.get(char, char)
        if char in _ESCAPES:
            return _Escape(*_ESCAPES[char])
        if char in ("p", "P"):
            return self._property(begin, is_negated=char == "P")
        if "1" <= char <= "9":
            raise RegexError(
                f"RE2 has no back-references such as \\{char} in {self._pattern[:80]!r}", "write it without them"
            )
        remedy = _REMEDIES.get(char, f"write {char} without the backslash" if char and not char.isalnum() else "")
        self._refuse(begin, f"the escape '\\{char}'", remedy)

    def _property(self, begin: int, *, is_negated: bool) -> _Escape:
        r"""`\p{...}`: a general category, or a block."""
        end = self._text.find("}", self._at)
        name = self._text[self._at + 1 : end] if self._text.startswith("{", self._at) and end > 0 else ""
        block = _BLOCK.fullmatch(name)
        letter = "P" if is_negated else "p"
        if _CATEGORY.fullmatch(name):
            inner, negated, width = _ESCAPES.get(f"p{{{name}}}", (f"\\p{{{name}}}", False, _UNICODE))
        elif block is not None and (ranges := _block(block[1])) is not None:
            inner, negated, width = _text_of(ranges), False, _OTHERS
        else:
            what = f"\\{letter}{{{name}}}" if name else f"\\{letter}"
            remedy = r"it is \p{L}, \p{Lu} or another category, or a block: \p{IsGreek}"
            self._refuse(begin, f"the property '{what[:60]}'", remedy)
        self._at = end + 1
        return _Escape(inner, negated != is_negated, width)

    def _class(self, begin: int, depth: int) -> _Class:
        """The class that was opened at `begin`."""
        if depth > _MOST_NESTED:
            raise RegexError(f"a class of more than {_MOST_NESTED} classes within another in a regular expression")
        text = self._text
        is_negated = text.startswith("^", self._at)
        self._at += is_negated
        members: list[tuple[int, int] | _Escape] = []
        while self._at < len(text):
            at, char = self._at, text[self._at]
            if char == "]" and members:
                self._at += 1
                return _Class(tuple(members), is_negated, None)
            if char == "-" and members and text.startswith("[", at + 1):
                self._at += 2
                less = self._class(at + 1, depth + 1)
                if not text.startswith("]", self._at):
                    self._refuse(at, "a class that goes on behind what is subtracted", "subtract last")
                self._at += 1
                return _Class(tuple(members), is_negated, less)
            members.append(self._member())
        self._refuse(begin, "'[' without ']'", "write \\[ for the character")

    def _member(self) -> tuple[int, int] | _Escape:
        """A character, a range of them or an escape within a class."""
        begin = self._at
        first = self._one()
        text, at = self._text, self._at
        if isinstance(first, _Escape) or not text.startswith("-", at) or text.startswith(("-[", "-]"), at):
            return first if isinstance(first, _Escape) else (ord(first), ord(first))
        self._at += 1
        last = self._one()
        if isinstance(last, _Escape) or last < first:
            self._refuse(begin, f"the range '{text[begin : self._at]}'", "it goes up from one character to another")
        return ord(first), ord(last)

    def _one(self) -> str | _Escape:
        begin = self._at
        char = self._text[begin : begin + 1]
        self._at += 1
        if char == "\\":
            return self._escape(begin)
        if char in ("[", "]", ""):
            what = f"{char!r} at this place of a class" if char else "a class without an end"
            self._refuse(begin, what, f"write \\{char} for the character" if char else "")
        return char

    def _set(self, cls: _Class) -> Part:
        """The part that a class is."""
        if cls.less is not None:
            ranges = self._ranges(cls)
            return Part(SET, _class_text(ranges), width=min(max(len(ranges), 1), _UNICODE))
        stated, escapes = self._stated(cls), [member for member in cls.members if isinstance(member, _Escape)]
        text, width = _text_of(stated), len(stated)
        for escape in escapes:
            text += _text_of(_all_but(_ranges_of(escape.inner))) if escape.is_negated else escape.inner
            width += escape.width
        is_wide = cls.is_negated or bool(escapes) or stated[-1][1] > 127
        return Part(SET, f"[{'^' * cls.is_negated}{text}]", width=min(width + _OTHERS * is_wide, _UNICODE))

    def _stated(self, cls: _Class) -> Ranges:
        """The members that are no escapes, with their case variants where case is ignored."""
        stated = [member for member in cls.members if not isinstance(member, _Escape)]
        if self._ignore_case:
            stated += [
                (ord(variant), ord(variant))
                for char, variants in _case_variants().items()
                if any(first <= ord(char) <= last for first, last in stated)
                for variant in variants
            ]
        return _merged(stated)

    def _ranges(self, cls: _Class) -> Ranges:
        """The code points of a class."""
        ranges = list(self._stated(cls))
        for member in cls.members:
            if isinstance(member, _Escape):
                those = _ranges_of(member.inner)
                ranges += _all_but(those) if member.is_negated else those
        members = _all_but(_merged(ranges)) if cls.is_negated else _merged(ranges)
        return members if cls.less is None else _all_but(_merged((*_all_but(members), *self._ranges(cls.less))))


def _without_space(pattern: str) -> list[int]:
    """The places of the characters that the flag `x` leaves: all but white space outside of classes."""
    places: list[int] = []
    depth, is_escaped = 0, False
    for place, char in enumerate(pattern):
        if char in _SPACE and not depth:
            continue
        places.append(place)
        if is_escaped or char == "\\":
            is_escaped = not is_escaped
        elif char == "[":
            depth += 1
        elif char == "]" and depth:
            depth -= 1
    return places


def _literal(char: str, ignore_case: bool) -> Part:
    length = len(char.encode("utf-8", "surrogatepass"))
    variants = _case_variants().get(char) if ignore_case else None
    if variants is None:
        return Part(LITERAL, char if char.isalnum() else _text_of(((ord(char), ord(char)),)), char, length)
    code_points = _merged((ord(variant), ord(variant)) for variant in variants)
    return Part(LITERAL, _class_text(code_points), char, length * len(variants))


# --- sets of characters ----------------------------------------------------------------------------------------------


@cache
def _case_variants() -> Mapping[str, frozenset[str]]:
    """The case variants of each character that has others, itself included: those with the same form in small or in
    capital letters (XPath functions 3.1, section 5.6.2). No character beyond the second plane has cases."""
    same: dict[tuple[str, str], set[str]] = defaultdict(set)
    cased: list[str] = []
    for first in range(0, 0x20000, 0x100):
        block = "".join(map(chr, range(first, first + 0x100)))
        if block.lower() != block or block.upper() != block:
            cased += [char for char in block if char.lower() != char or char.upper() != char]
    for char in cased:
        same["lower", char.lower()].add(char)
        same["upper", char.upper()].add(char)
    return {char: frozenset(same["lower", char.lower()] | same["upper", char.upper()]) for char in cased}


@cache
def _everything() -> str:
    """All characters, by code point."""
    return array("I", [*range(0xD800), *range(0xE000, _LAST + 1)]).tobytes().decode("utf-32")


def _code_point(place: int) -> int:
    """Of the character at that place of `_everything`."""
    return place if place < 0xD800 else place + 0x800


@cache
def _ranges_of(inner: str) -> Ranges:
    """The code points of an escape, as RE2 has it."""
    spans = [match.span() for match in re2.compile(f"[{inner}]+").finditer(_everything())]
    return _merged((_code_point(first), _code_point(last - 1)) for first, last in spans)


@cache
def _block(name: str) -> Ranges | None:
    """The code points of a block of Unicode; None where none is named so."""
    try:
        block = regex.search(rf"\p{{Block={name}}}+", _everything())
    except regex.error:
        return None
    return () if block is None else ((_code_point(block.start()), _code_point(block.end() - 1)),)


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return tuple(merged)


def _all_but(ranges: Ranges) -> Ranges:
    ends = [-1, *(end for both in ranges for end in both), _LAST + 1]
    return tuple([(a + 1, b - 1) for a, b in zip(ends[::2], ends[1::2], strict=True) if b - a > 1])


def _text_of(ranges: Ranges) -> str:
    """Ranges within a class of RE2."""
    return "".join([_hex(first) if first == last else f"{_hex(first)}-{_hex(last)}" for first, last in ranges])


def _class_text(ranges: Ranges) -> str:
    """A class of RE2; one that nothing is in where there are no ranges."""
    return f"[{_text_of(ranges)}]" if ranges else f"[^{_text_of(((0, _LAST),))}]"


def _hex(code_point: int) -> str:
    char = chr(code_point)
    return char if char.isascii() and char.isalnum() else f"\\x{{{code_point:X}}}"

"""XPath regular expressions on RE2, which takes time linear in the text whatever the pattern.

What a pattern says, and what of it is refused: `triplewire.ir.values.regex_syntax`.
Also here: the texts that no match is without (`needed_texts`), and what work on texts costs in steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import re2

from triplewire.bounded_cache import BoundedCache
from triplewire.ir.nodes import Analyzer
from triplewire.ir.values.numbers import ExpressionError
from triplewire.ir.values.regex_syntax import ANCHOR, CLOSE, EITHER, NOTING, OPEN, TIMES, Part, RegexError, parts_of
from triplewire.model.terms import BlankNode, Term, text_of

# --- shapes: the work that RE2 may have with each character that it reads, estimated from the pattern -----------------

_MANY = 1 << 40  # no number of states or ways is larger
_NOTED, _TOGETHER = 5, 16  # to note the ends of a group costs as much as 5 branches, and one more for each 16 groups
_STATE = 350  # bytes of a state, beside those for each position
_PLAIN = 5 << 15  # bytes of an automaton: less than RE2 has for one (`regexes.LEAST_MEMORY`)


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


def shape_of(parts: Sequence[Part]) -> Shape:
    """Of the parts of a pattern."""
    noting = _NOTED + sum(part.text == NOTING for part in parts) // _TOGETHER
    # of each open group: the branches before, what is before in this one, and what noting it takes
    branches, before, last, is_group = _NEVER, _EMPTY, _EMPTY, False
    outer: list[tuple[Shape, Shape, int]] = []
    for part in parts:
        if part.kind == TIMES:
            last, is_group = last.times(part.least, part.most, is_group=is_group), True
        elif part.kind == EITHER:
            branches, before, last = branches.either(before.then(last)), _EMPTY, _EMPTY
        elif part.kind == OPEN:
            outer.append((branches, before.then(last), noting * (part.text == NOTING)))
            branches, before, last = _NEVER, _EMPTY, _EMPTY
        elif part.kind == CLOSE:
            inner, is_group = branches.either(before.then(last)), True
            branches, before, noted = outer.pop()
            last = inner._replace(width=inner.width + noted)
        elif part.kind != ANCHOR:
            length = len(part.literal.encode("utf-8", "surrogatepass"))
            atom = Shape(length, part.width, 1, length) if length else Shape(1, part.width, 2, 1)
            before, last, is_group = before.then(last), atom, False
    return branches.either(before.then(last))


# --- texts that no match is without: an index looks for them before RE2 is asked --------------------------------------

PLAIN = re.compile(r"(\^?)([\w ,:;/'\"-]+)(\$?)")
"""A pattern that only asks for a text: whether it is anchored at the start, the text, and whether at the end."""

_LEAST = 2  # characters of a text that is worth looking for
_MOST = 16  # alternatives
_FOLDED = re.compile(r"[A-Za-z0-9 ]")  # what of a pattern that ignores case is looked for

Texts: TypeAlias = tuple[str, ...]
"""Texts of which a match has at least one; empty where nothing is known."""


class _Level(NamedTuple):
    """An open group: its alternatives so far, and what the one that is read needs."""

    alternatives: tuple[Texts, ...]
    needed: Texts


def needed_texts(pattern: str, flags: str) -> Texts:
    """Texts of which every text that an XPath pattern matches has one; with the flag `i` in any case, and of ASCII
    letters, digits and spaces. Empty where there may be a match without them, and where the pattern is none."""
    try:
        parts = parts_of(pattern, flags)
    except RegexError:
        return ()
    outer: list[_Level] = []
    level, run = _Level((), ()), ""
    last: Texts = ()  # what the group needs that was closed last
    for part in parts:
        if part.kind == TIMES:
            run, last = (run, last) if part.least else (run[:-1], ())
            level = level._replace(needed=_better(level.needed, _better(_worth(run), last)))
            run, last = "", ()
            continue
        level, last = level._replace(needed=_better(level.needed, last)), ()
        if part.literal and ("i" not in flags or _FOLDED.fullmatch(part.literal)):
            run += part.literal
            continue
        level, run = level._replace(needed=_better(level.needed, _worth(run))), ""
        if part.kind == EITHER:
            level = _Level((*level.alternatives, level.needed), ())
        elif part.kind == OPEN:
            outer.append(level)
            level = _Level((), ())
        elif part.kind == CLOSE:
            last, level = _any_of(level), outer.pop()
    return _any_of(level._replace(needed=_better(level.needed, _better(_worth(run), last))))


def _worth(run: str) -> Texts:
    return (run,) if len(run) >= _LEAST else ()


def _better(first: Texts, second: Texts) -> Texts:
    """Which of both finds less: that with the longer shortest text, of these the shorter list."""
    return max(first, second, key=lambda texts: (min(map(len, texts), default=0), -len(texts)))


def _any_of(level: _Level) -> Texts:
    """What a whole group needs."""
    every = (*level.alternatives, level.needed)
    texts = tuple(dict.fromkeys(text for alternative in every for text in alternative))
    return texts if all(every) and len(texts) <= _MOST else ()


# --- costs in steps (`Settings.max_steps`): functions cost what they read and write -----------------------------------

CHARACTERS = 128
"""That are read or written in the time of a step."""

TYPED = 4
"""Reading a number, date or boolean takes so many times as long; long integers take longest."""

ENCODED = 8
"""ENCODE_FOR_URI takes so many times as long."""

ARGUMENTS = 8
"""Arguments of a function that are computed in the time of a step, beside what their own expressions take."""

PIECES = 8
"""Of a replacement, or characters of its text, that are put together or read in the time of a step."""

_PER_MATCH = 2  # steps for each occurrence that REPLACE replaces
_PROGRAM = 5_120  # characters of a text, times the size of a regular expression, that are read in the time of a step
_ANY_PROGRAM = 64  # added to the size of each
_GROUP_STEPS = 32  # added for each group, which is noted for each way to read the text
_BRANCH = 10  # added for each branch of an expression whose automaton may be too large to be kept
_COMPILED = 64  # instructions of a regular expression that are compiled, or taken from the cache, in the time of a step
_WORDS = {"default": 16, "unicode": 2}  # characters that are cut into words in the time of a step, by tokenizer


def of_reading(*terms: Term, times: int = 1) -> int:
    """Steps for reading these terms `times` times; a blank node has no characters."""
    return times * sum([len(text_of(term)) for term in terms if type(term) is not BlankNode]) // CHARACTERS


def of_regex(compiled: int, weight: int, text: str) -> int:
    """Steps for one search through a text, from end to end, of a regular expression that was compiled in so many."""
    return compiled + len(text) * weight // _PROGRAM


def of_words(text: str, analyzer: Analyzer) -> int:
    """Steps for cutting a text into words."""
    return len(text) // _WORDS[analyzer.tokenizer]


# --- compiling, matching, replacing ----------------------------------------------------------------------------------

Spend: TypeAlias = Callable[[int], None]
"""Is told of the steps that work takes, before it is done; may raise to refuse it."""

_FLAGS = frozenset("smixq")
LEAST_MEMORY = 768 << 10
"""Bytes that RE2 may use for one pattern. It uses two thirds at most."""

MEMORY = 1_536 << 20
"""For all patterns that are kept."""

_PER_INSTRUCTION = 128  # bytes more for each instruction of a large program
_LARGE = 2_048  # instructions
_MOST_MEMORY = 8 << 20  # for a program that takes so much


@dataclass(frozen=True, slots=True)
class Regex:
    """A compiled pattern, what work with it costs, and the bytes that RE2 may use for it."""

    program: Any
    groups: int
    compiled: int
    weight: int
    memory: int


def compile_regex(pattern: str, flags: str, limit: int) -> Regex:
    """The compiled pattern. `flags` are of XPath's s m i x q; `limit` is in UTF-8 bytes of `pattern`.

    Raises `RegexError`.
    """
    if not _FLAGS.issuperset(flags):
        raise RegexError(f"{flags!r} are no flags of a regular expression (s, m, i, x, q)")
    if len(pattern) > limit:  # characters are at least a byte; the bytes are counted where it is compiled
        raise RegexError(f"a regular expression of more than {limit} bytes")
    key = pattern, "".join(sorted(set(flags))), limit
    regex = _cache.get(key)
    if regex is None:
        regex = _compile(*key)
        if _cache.put(key, regex, regex.memory, MEMORY):
            re2.purge()  # the package keeps the last ones as well
    return regex


_cache: BoundedCache[tuple[str, str, int], Regex] = BoundedCache()  # RE2's automata stay


def _compile(pattern: str, flags: str, limit: int) -> Regex:
    try:
        if len(pattern.encode("utf-8")) > limit:
            raise RegexError(f"a regular expression of more than {limit} bytes")
        parts = parts_of(pattern, flags)
        text = "".join([part.text for part in parts])
        if "m" in flags:
            text = f"(?m:{text})"
        memory = LEAST_MEMORY
        try:
            program = _program(text, memory)
            if program.programsize > _LARGE:
                memory = min(memory + _PER_INSTRUCTION * program.programsize, _MOST_MEMORY)
                program = _program(text, memory)
        except re2.error:
            memory = _MOST_MEMORY
            program = _program(text, memory)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise RegexError(f"RE2 cannot take the regular expression {pattern[:80]!r}: {reason}") from None
    size, groups = program.programsize, program.groups
    # RE2 takes time linear in the text and, at worst, in the branches of the program that may be open at a time
    shape, weight = shape_of(parts), _ANY_PROGRAM + size // 2 + _GROUP_STEPS * groups
    weight += 0 if shape.is_plain else _BRANCH * (_ANY_PROGRAM + shape.width)
    return Regex(program, groups, 1 + size // _COMPILED, weight, memory)


def _program(text: str, memory: int) -> Any:
    """Raises `re2.error` where the program does not fit into the memory, and where there is none."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    return re2.compile(text, options=options)


def matches(regex: Regex, text: str, spend: Spend) -> bool:
    """fn:matches: does it occur anywhere in the text?"""
    spend(of_regex(regex.compiled, regex.weight, text))
    try:
        return regex.program.search(text) is not None
    except UnicodeEncodeError:
        raise ExpressionError("a text with half a surrogate pair") from None


def replace(regex: Regex, text: str, pieces: Sequence[str | int], *, limit: int, spend: Spend) -> str:
    """fn:replace: every occurrence by the `pieces`, from left to right. Raises `ExpressionError` where the pattern
    matches the empty string, and where the result is longer than `limit` characters."""
    spend(of_regex(regex.compiled, regex.weight, text))
    steps = _PER_MATCH + len(pieces) // PIECES
    try:
        if regex.program.search("") is not None:
            raise ExpressionError("REPLACE with a pattern that matches the empty string")
        out, at, size = [], 0, 0
        for match in regex.program.finditer(text):
            spend(steps)
            new = "".join(piece if isinstance(piece, str) else match.group(piece) or "" for piece in pieces)
            out.append(text[at : match.start()] + new)
            at = match.end()
            size += len(out[-1])
            if size > limit:
                raise ExpressionError(f"REPLACE makes a text of more than {limit} characters")
    except UnicodeEncodeError:
        raise ExpressionError("a text with half a surrogate pair") from None
    return "".join(out) + text[at:]


def pieces(replacement: str, groups: int, *, literal: bool) -> list[str | int]:
    """What fn:replace puts for an occurrence: text, and numbers of groups. In a `replacement` that is not `literal`,
    `$1` is a group and `\\$` a dollar sign; `$12` is group 12 where there are so many, else group 1 and a 2. Raises
    `ExpressionError` where it is malformed."""
    return [replacement] if literal else list(_pieces(replacement, groups))


def _pieces(replacement: str, groups: int) -> Iterator[str | int]:
    at, length = 0, len(replacement)
    while at < length:
        char = replacement[at]
        at += 1
        if char == "\\":
            if at == length or replacement[at] not in "\\$":
                raise ExpressionError("in a replacement, \\ stands before \\ or $ only")
            yield replacement[at]
            at += 1
        elif char == "$":
            digit = replacement[at : at + 1]
            if not ("0" <= digit <= "9"):
                raise ExpressionError("in a replacement, $ stands before a digit only")
            number = int(digit)
            at += 1
            while at < length and "0" <= replacement[at] <= "9" and number * 10 + int(replacement[at]) <= groups:
                number = number * 10 + int(replacement[at])
                at += 1
            yield number if number <= groups else ""
        else:
            yield char

"""XPath regular expressions on RE2, which takes time linear in the text whatever the pattern.

Standard: XPath functions 3.1, section 5.6 (on XML Schema 1.1 part 2, appendix G). `\\d \\w \\s \\i \\c` get XML
Schema's meaning: \\w is any letter, mark, digit or symbol, not the underscore. What RE2 cannot take is refused:
back-references, class subtraction `[a-z-[aeiou]]`, Unicode blocks `\\p{IsGreek}`, repetition beyond 1,000.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import re2

from triplewire.bounded_cache import BoundedCache
from triplewire.ir.values import costs
from triplewire.ir.values.numbers import ExpressionError
from triplewire.ir.values.regex_shapes import shape_of

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

# inside a character class; outside, the same in brackets
_CLASSES = {
    "d": r"\p{Nd}",
    "D": r"\P{Nd}",
    "w": r"\p{L}\p{M}\p{N}\p{S}",
    "W": r"\p{P}\p{Z}\p{C}",
    "s": r" \t\n\r",
    "S": r"\x00-\x08\x0b\x0c\x0e-\x1f!-\x{10ffff}",
    "i": r"\p{L}\p{Nl}_:",
    "c": r"\p{L}\p{Nl}\p{Nd}\p{M}_:.·\-",
}
_NEGATED = {"I": "i", "C": "c"}
_SPACE = " \t\n\r"


class RegexError(ExpressionError):
    """RE2 cannot take the pattern; the text says why."""


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
        if "q" in flags:
            text = pattern
        else:
            text = "".join(_translated(pattern, spaced="x" in flags))
            text = f"(?m:{text})" if "m" in flags else text
        memory = LEAST_MEMORY
        try:
            program = _program(text, flags, memory)
            if program.programsize > _LARGE:
                memory = min(memory + _PER_INSTRUCTION * program.programsize, _MOST_MEMORY)
                program = _program(text, flags, memory)
        except re2.error:
            memory = _MOST_MEMORY
            program = _program(text, flags, memory)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise RegexError(f"RE2 cannot take the regular expression {pattern[:80]!r}: {reason}") from None
    size, groups = program.programsize, program.groups
    weight = costs.of_character(size, groups, shape_of(pattern, flags))
    return Regex(program, groups, costs.of_compiled(size), weight, memory)


def _program(text: str, flags: str, memory: int) -> Any:
    """Raises `re2.error` where the program does not fit into the memory, and where there is none."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    options.case_sensitive = "i" not in flags
    options.literal = "q" in flags
    options.dot_nl = "s" in flags
    return re2.compile(text, options=options)


def _translated(pattern: str, *, spaced: bool) -> Iterator[str]:
    """The pattern in RE2's syntax, piece by piece."""
    inside = False  # a character class
    at, length = 0, len(pattern)
    while at < length:
        char = pattern[at]
        at += 1
        if char == "\\" and at < length:
            yield _escape(pattern[at], inside=inside)
            at += 1
        elif inside:
            if char == "-" and pattern.startswith("[", at):
                raise RegexError("class subtraction [..-[..]] is not supported in a regular expression")
            inside = char != "]"
            yield "\\[" if char == "[" else char
        elif char == "[":
            inside = True
            negated = pattern.startswith("^", at)
            at += negated
            yield "[^" if negated else "["
        elif not (spaced and char in _SPACE):
            yield char


def _escape(char: str, *, inside: bool) -> str:
    if char in _CLASSES:
        return _CLASSES[char] if inside else f"[{_CLASSES[char]}]"
    if char in _NEGATED:
        if inside:
            raise RegexError(f"\\{char} inside a character class is not supported in a regular expression")
        return f"[^{_CLASSES[_NEGATED[char]]}]"
    return "\\" + char


def matches(regex: Regex, text: str, spend: Spend) -> bool:
    """fn:matches: does it occur anywhere in the text?"""
    spend(costs.of_regex(regex.compiled, regex.weight, text))
    try:
        return regex.program.search(text) is not None
    except UnicodeEncodeError:
        raise ExpressionError("a text with half a surrogate pair") from None


def replace(regex: Regex, text: str, pieces: Sequence[str | int], *, limit: int, spend: Spend) -> str:
    """fn:replace: every occurrence by the `pieces`, from left to right. Raises `ExpressionError` where the pattern
    matches the empty string, and where the result is longer than `limit` characters."""
    spend(costs.of_regex(regex.compiled, regex.weight, text))
    steps = costs.of_replacement(len(pieces))
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
    `$1` is a group and `\\$` a dollar sign. Raises `ExpressionError` where it is malformed."""
    return [replacement] if literal else list(_pieces(replacement, groups))


def _pieces(replacement: str, groups: int) -> Iterator[str | int]:
    """Text and group numbers. `$12` is group 12 where there are so many, else group 1 and a 2."""
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

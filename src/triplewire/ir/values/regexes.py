r"""XPath regular expressions on RE2, which takes time linear in the text whatever the pattern.

Standard: XPath functions 3.1, section 5.6 (on XML Schema 1.1 part 2, appendix G). `\d \w \s \i \c` get XML
Schema's meaning: \w is any letter, mark, digit or symbol, not the underscore. What RE2 cannot take is refused:
back-references, class subtraction `[a-z-[aeiou]]`, Unicode blocks `\p{IsGreek}`, repetition beyond 1,000.

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
from triplewire.model.terms import BlankNode, Term, text_of

# --- shapes: the work that RE2 may have with each character that it reads, estimated from the pattern -----------------

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
            least, most = token["least"], token["most"]
            if least is None:
                bounds = int(token["times"] == "+"), 1 if token["times"] == "?" else None
            elif token["more"] is None:
                bounds = int(least), int(least)
            else:
                bounds = int(least), int(most) if most else None
            last, is_group = last.times(*bounds, is_group=is_group), True
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


# --- texts that no match is without: an index looks for them before RE2 is asked --------------------------------------

PLAIN = re.compile(r"(\^?)([\w ,:;/'\"-]+)(\$?)")
"""A pattern that only asks for a text: whether it is anchored at the start, the text, and whether at the end."""

_LEAST = 2  # characters of a text that is worth looking for
_MOST = 16  # alternatives
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_CLASS_ESCAPES = frozenset("dDwWsSiIcC")
_GROUP = re.compile(r"\((?:\?(?::|P?<\w+>))?")  # others may change the flags
_FOLDED = re.compile(r"[A-Za-z0-9 ]")  # what of a pattern that ignores case is looked for

Texts: TypeAlias = tuple[str, ...]
"""Texts of which a match has at least one; empty where nothing is known."""


class _Level(NamedTuple):
    """An open group: its alternatives so far, and what the one that is read needs."""

    alternatives: tuple[Texts, ...]
    needed: Texts


def needed_texts(pattern: str, flags: str) -> Texts:
    """Texts of which every text that an XPath pattern matches has one; with the flag `i` in any case, and of ASCII
    letters, digits and spaces. Empty where there may be a match without them, and where the pattern has parts that
    only RE2 knows."""
    if "q" in flags or "x" in flags:
        return ()
    outer: list[_Level] = []
    level, run = _Level((), ()), ""
    last: Texts = ()  # what the group needs that was closed last
    for token in TOKEN.finditer(pattern):
        text = token[0]
        literal = _literal_text(token)
        if literal is None:
            return ()
        if token["times"]:
            is_needed = text[0] == "+" or int(token["least"] or 0) > 0
            run, last = (run, last) if is_needed else (run[:-1], ())
            level = level._replace(needed=_better(level.needed, _better(_worth(run), last)))
            run, last = "", ()
            continue
        level, last = level._replace(needed=_better(level.needed, last)), ()
        if literal and ("i" not in flags or _FOLDED.fullmatch(literal)):
            run += literal
            continue
        level, run = level._replace(needed=_better(level.needed, _worth(run))), ""
        if token["either"]:
            level = _Level((*level.alternatives, level.needed), ())
        elif token["open"]:
            outer.append(level)
            level = _Level((), ())
        elif token["close"]:
            if not outer:
                return ()
            last, level = _any_of(level), outer.pop()
    return _any_of(level._replace(needed=_better(level.needed, _better(_worth(run), last))))


def _literal_text(token: re.Match[str]) -> str | None:
    """The character that a part stands for; "" for other parts, None for those that only RE2 knows."""
    text = token[0]
    if token["open"]:
        return "" if _GROUP.fullmatch(text) else None
    if token["set"]:
        return None if text in ("[]", "[^]") else ""  # the bracket is the first member of a longer one
    if token["times"] or token["close"] or token["either"] or text in (".", "^", "$"):
        return ""
    if text[0] != "\\":
        return text
    if text[1:] in _CLASS_ESCAPES or (len(text) > 2 and text[1] in "pP"):
        return ""
    if len(text) != 2:
        return None
    return _CONTROLS.get(text[1], None if text[1].isalnum() else text[1])


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
        text = pattern if "q" in flags else "".join(_translated(pattern, spaced="x" in flags))
        if "m" in flags and "q" not in flags:
            text = f"(?m:{text})"
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
    # RE2 takes time linear in the text and, at worst, in the branches of the program that may be open at a time
    shape, weight = shape_of(pattern, flags), _ANY_PROGRAM + size // 2 + _GROUP_STEPS * groups
    weight += 0 if shape.is_plain else _BRANCH * (_ANY_PROGRAM + shape.width)
    return Regex(program, groups, 1 + size // _COMPILED, weight, memory)


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

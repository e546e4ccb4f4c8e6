"""Finds, in the text of a regular expression, texts that no match is without: an index looks for them before RE2 is
asked.

RE2's own `FilteredRE2` and Lucene Monitor look for several texts of each alternative; here it is the longest one.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from triplewire.ir.values.regex_shapes import TOKEN

PLAIN = re.compile(r"(\^?)([\w ,:;/'\"-]+)(\$?)")
"""A pattern that only asks for a text: whether it is anchored at the start, the text, and whether at the end."""

_LEAST = 2  # characters of a text that is worth looking for
_MOST = 16  # alternatives
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_CLASSES = frozenset("dDwWsSiIcC")
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
        literal = _literal(token)
        if literal is None:
            return ()
        if token["times"]:
            is_needed = text[0] == "+" or int(token["least"] or 0) > 0
            run, last = (run, last) if is_needed else (run[:-1], ())
            level = level._replace(needed=_better(level.needed, _better(_texts(run), last)))
            run, last = "", ()
            continue
        level, last = level._replace(needed=_better(level.needed, last)), ()
        if literal and ("i" not in flags or _FOLDED.fullmatch(literal)):
            run += literal
            continue
        level, run = level._replace(needed=_better(level.needed, _texts(run))), ""
        if token["either"]:
            level = _Level((*level.alternatives, level.needed), ())
        elif token["open"]:
            outer.append(level)
            level = _Level((), ())
        elif token["close"]:
            if not outer:
                return ()
            last, level = _any_of(level), outer.pop()
    return _any_of(level._replace(needed=_better(level.needed, _better(_texts(run), last))))


def _literal(token: re.Match[str]) -> str | None:
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
    if len(text) > 2 and text[1] in "pP":
        return ""
    if len(text) != 2:
        return None
    if text[1] in _CLASSES:
        return ""
    return _CONTROLS.get(text[1], None if text[1].isalnum() else text[1])


def _texts(run: str) -> Texts:
    return (run,) if len(run) >= _LEAST else ()


def _better(first: Texts, second: Texts) -> Texts:
    """Which of both finds less: that with the longer shortest text, of these the shorter list."""
    return max(first, second, key=lambda texts: (min(map(len, texts), default=0), -len(texts)))


def _any_of(level: _Level) -> Texts:
    """What a whole group needs."""
    every = (*level.alternatives, level.needed)
    texts = tuple(dict.fromkeys(text for alternative in every for text in alternative))
    return texts if all(every) and len(texts) <= _MOST else ()

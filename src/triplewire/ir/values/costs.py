"""What work on texts costs in steps (`Settings.max_steps`): functions cost what they read and write.

A step is some microseconds: the time in which the reference looks at a candidate triple. The numbers here are measured
on texts that are as bad as may be (docs/decisions/008), so no function takes much longer than its steps say.
"""

from __future__ import annotations

from triplewire.ir.fulltext.nodes import Analyzer
from triplewire.ir.values.regex_shapes import Shape
from triplewire.model.terms import BlankNode, Literal, Term

CHARACTERS = 128
"""That are read or written in the time of a step."""

TYPED = 4
"""Reading a number, date or boolean takes so many times as long; long integers take longest."""

ENCODED = 8
"""ENCODE_FOR_URI takes so many times as long."""

ARGUMENTS = 8
"""Arguments of a function that are computed in the time of a step, beside what their own expressions take."""

PER_MATCH = 2
"""Steps for each occurrence that REPLACE replaces."""

_PIECES = 8  # of a replacement that are put together in the time of a step
_PROGRAM = 5_120  # characters of a text, times the size of a regular expression, that are read in the time of a step
_ANY_PROGRAM = 64  # added to the size of each
_GROUP = 32  # added for each group, which is noted for each way to read the text
_BRANCH = 10  # added for each branch of an expression whose automaton may be too large to be kept
_COMPILED = 64  # instructions of a regular expression that are compiled in the time of a step
_WORDS = {"default": 16, "unicode": 2}  # characters that are cut into words in the time of a step, by tokenizer


def length(term: Term) -> int:
    """The characters of a term; a blank node has none."""
    if isinstance(term, Literal):
        return len(term.lexical)
    return 0 if isinstance(term, BlankNode) else len(term.value)


def of_reading(*terms: Term, times: int = 1) -> int:
    """Steps for reading these terms `times` times."""
    return times * sum(map(length, terms)) // CHARACTERS


def of_compiled(size: int) -> int:
    """Steps for compiling a regular expression to a program of this size, or for taking a cached one."""
    return 1 + size // _COMPILED


def of_character(size: int, groups: int, shape: Shape) -> int:
    """The weight of a regular expression in `of_regex`. RE2 takes time linear in the text and, at worst, in the
    branches of the program that may be open at a time."""
    weight = _ANY_PROGRAM + size // 2 + _GROUP * groups
    return weight if shape.is_plain else weight + _BRANCH * (_ANY_PROGRAM + shape.width)


def of_regex(compiled: int, weight: int, text: str) -> int:
    """Steps for one search of a regular expression through a text, from end to end."""
    return compiled + len(text) * weight // _PROGRAM


def of_replacement(pieces: int) -> int:
    """Steps for replacing one occurrence by so many pieces of text."""
    return PER_MATCH + pieces // _PIECES


def of_pieces(replacement: str) -> int:
    """Steps for reading the replacement text of REPLACE."""
    return len(replacement) // _PIECES


def of_words(text: str, analyzer: Analyzer) -> int:
    """Steps for cutting a text into words."""
    return len(text) // _WORDS[analyzer.tokenizer]

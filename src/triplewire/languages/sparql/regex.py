"""Constant regular expressions are compiled while the query is read, so that an error stands at the pattern's place.

What a pattern means: `triplewire.ir.values.regexes`. The other languages' patterns: `triplewire.ir.checks`, which looks
at all once more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triplewire.errors import LimitError, UnsupportedQuery
from triplewire.ir.nodes import Expression
from triplewire.ir.values.regexes import RegexError, compile_regex
from triplewire.languages.grammar.tokens import Token, Tokens
from triplewire.model.terms import XSD_STRING, Literal

_ARGUMENTS = {"REGEX": (1, 2), "REPLACE": (1, 3)}  # where pattern and flags stand
_LACKING = re.compile(r"\\[1-9]|\(\?(?:[=!>]|<[=!])|-\[")  # back-references, look-around, class subtraction


def check_regex(tokens: Tokens, function: str, arguments: Sequence[tuple[Token, Expression]]) -> None:
    """Refuse a pattern, or flags, that is a plain literal and cannot be compiled; `arguments` stand at their tokens."""
    if function not in _ARGUMENTS:
        return
    pattern, flags = (_constant(arguments, at) for at in _ARGUMENTS[function])
    if flags is not None:
        _compile(tokens, flags[0], "", flags[1])
    if pattern is not None and (flags is not None or len(arguments) <= _ARGUMENTS[function][1]):
        _compile(tokens, *pattern, flags[1] if flags else "")


def _compile(tokens: Tokens, token: Token, pattern: str, flags: str) -> None:
    limit = tokens.context.settings.max_regex_bytes
    line, column = tokens.place(token.offset)
    source = tokens.context.source
    if len(pattern.encode("utf-8", "surrogatepass")) > limit:
        what, remedy = f"a regular expression of more than {limit} bytes", "raise max_regex_bytes, or shorten it"
        raise LimitError(what, source=source, line=line, column=column, remedy=remedy)
    try:
        compile_regex(pattern, flags, limit)
    except RegexError as error:
        lacking = _LACKING.search(pattern) is not None
        remedy = "write it without back-references, look-around and class subtraction" if lacking else ""
        raise UnsupportedQuery(str(error), source=source, line=line, column=column, remedy=remedy) from None


def _constant(arguments: Sequence[tuple[Token, Expression]], at: int) -> tuple[Token, str] | None:
    """The argument's place and text, if it is given as a plain literal."""
    if len(arguments) <= at:
        return None
    token, argument = arguments[at]
    if not isinstance(argument, Literal) or argument.datatype != XSD_STRING:
        return None
    return token, argument.lexical

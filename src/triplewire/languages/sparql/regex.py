"""Constant regular expressions are compiled while the query is read, so that an error stands at the pattern's place.

What a pattern means: `triplewire.ir.regexes`. The other languages' patterns: `triplewire.ir.normalize`, which looks at
all once more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from triplewire.errors import LimitError, UnsupportedQuery
from triplewire.ir.nodes import Expression
from triplewire.ir.regexes import RegexError, compile_regex
from triplewire.languages.tokens import Token, Tokens
from triplewire.model.terms import XSD_STRING, Literal

_ARGUMENTS = {"REGEX": (1, 2), "REPLACE": (1, 3)}  # where pattern and flags stand
_LACKING = re.compile(r"\\[1-9]|\(\?(?:[=!>]|<[=!])")


def check_regex(tokens: Tokens, function: str, arguments: Sequence[tuple[Token, Expression]]) -> None:
    """Refuse a pattern, or flags, that is a plain literal and cannot be compiled; `arguments` stand at their tokens."""
    if function not in _ARGUMENTS:
        return
    pattern, flags = (_constant(arguments, at) for at in _ARGUMENTS[function])
    limit = tokens.context.settings.max_regex_bytes
    if flags is not None:
        try:
            compile_regex("", flags[1], limit)
        except RegexError as error:
            tokens.fail(flags[0], str(error))
    if pattern is None or (flags is None and len(arguments) > _ARGUMENTS[function][1]):
        return  # what it means depends on a solution
    token, text = pattern
    line, column = tokens.place(token.offset)
    if len(text.encode("utf-8", "surrogatepass")) > limit:
        raise LimitError(
            f"a regular expression of more than {limit} bytes",
            source=tokens.context.source,
            line=line,
            column=column,
            remedy="raise max_regex_bytes, or shorten it",
        )
    try:
        compile_regex(text, flags[1] if flags else "", limit)
    except RegexError as error:
        if not _LACKING.search(text) and "not supported" not in str(error):
            tokens.fail(token, str(error))
        remedy = "write it without what RE2 lacks (back-references, look-around, class subtraction)"
        raise UnsupportedQuery(
            str(error), source=tokens.context.source, line=line, column=column, remedy=remedy
        ) from None


def _constant(arguments: Sequence[tuple[Token, Expression]], at: int) -> tuple[Token, str] | None:
    """The argument's place and text, if it is given as a plain literal."""
    if len(arguments) <= at:
        return None
    token, argument = arguments[at]
    is_plain = isinstance(argument, Literal) and argument.datatype == XSD_STRING
    return (token, argument.lexical) if is_plain and isinstance(argument, Literal) else None

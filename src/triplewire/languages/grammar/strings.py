"""The value of a quoted string of a query text: quotes off, escapes resolved. Shared by the languages.

Strings are quoted as in Turtle: by one or three quotation marks or apostrophes, with Turtle's escapes.
"""

from __future__ import annotations

import re

from triplewire.languages.grammar.tokens import Token, Tokens
from triplewire.model.terms import unescape

_SURROGATE = re.compile("[\ud800-\udfff]")


def string_value(tokens: Tokens, token: Token) -> str:
    """The characters that the string token stands for. Refuses an escape that is none, and lone surrogates."""
    width = 3 if len(token.text) >= 6 and token.text[:3] in ('"""', "'''") else 1
    try:
        text = unescape(token.text[width:-width])
    except ValueError as error:
        what = str(error) if str(error).startswith("\\") else "an escape names no character"
        tokens.fail(
            token, f"in the string: {what}", "escapes are \\t \\b \\n \\r \\f \\\" \\' \\\\ \\uXXXX \\UXXXXXXXX"
        )
    if _SURROGATE.search(text):
        tokens.fail(token, "in the string: a lone surrogate is no character")
    return text

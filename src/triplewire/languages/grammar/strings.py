"""The literals of a query text: strings with quotes off and escapes resolved, and numbers. Shared by the languages.

Strings are quoted as in Turtle: by one or three quotation marks or apostrophes, with Turtle's escapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from triplewire.languages.grammar.tokens import Token, Tokens
from triplewire.model.terms import IRI, XSD, Literal, unescape

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


def string_literal(tokens: Tokens, token: Token, iri_of: Callable[[Token], IRI]) -> Literal:
    """The exact RDF term of a string token, just taken, with the language tag or datatype behind it."""
    text = string_value(tokens, token)
    if tag := tokens.accept_kind("tag"):
        return Literal.tagged(text, tag.text[1:])
    if not tokens.accept("^^"):
        return Literal(text)
    datatype = tokens.accept_kind("iri", "name")
    if datatype is None:
        tokens.unexpected("a datatype IRI")
    return Literal(text, iri_of(datatype).value)


def number(text: str) -> Literal:
    """A number as written, with the datatype that SPARQL gives it."""
    if "e" in text or "E" in text:
        return Literal(text, XSD + "double")
    return Literal(text, XSD + ("decimal" if "." in text else "integer"))

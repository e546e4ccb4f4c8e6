"""SPARQL's functions on strings (SPARQL 1.1, 17.4.3), on terms. Regular expressions: `triplewire.ir.values.regexes`."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from triplewire.ir.values.compare import value_of
from triplewire.ir.values.numbers import INTEGER, ExpressionError, Number, brief
from triplewire.model.terms import LANG_STRING, XSD_STRING, Literal, Term


def string_of(term: Term) -> Literal:
    """The term, which must be a string literal: simple, xsd:string or language-tagged."""
    if isinstance(term, Literal) and (term.datatype == XSD_STRING or term.language):
        return term
    raise ExpressionError(f"{brief(term)} is no string")


def simple(term: Term) -> str:
    """The text of the term, which must be a string without a language tag."""
    if isinstance(term, Literal) and term.datatype == XSD_STRING:
        return term.lexical
    raise ExpressionError(f"{brief(term)} is no string without a language tag")


def like(text: str, model: Literal) -> Literal:
    """A string with the language tag of `model`, if it has one."""
    return Literal(text, LANG_STRING, model.language) if model.language else Literal(text)


def compatible(first: Term, second: Term) -> tuple[Literal, str]:
    """The first argument and the text of the second, where the two may be used together (17.4.3.1.2)."""
    a, b = string_of(first), string_of(second)
    if b.language and b.language != a.language:
        raise ExpressionError("the two strings have different language tags")
    return a, b.lexical


def concat(arguments: Sequence[Term], limit: int) -> Literal:
    """CONCAT: all in one; with a language tag where all have the same."""
    strings = [string_of(argument) for argument in arguments]
    if sum(len(string.lexical) for string in strings) > limit:
        raise ExpressionError(f"CONCAT makes a text of more than {limit} characters")
    text = "".join(string.lexical for string in strings)
    languages = {string.language for string in strings}
    return like(text, strings[0]) if len(languages) == 1 else Literal(text)


def before(first: Term, second: Term) -> Literal:
    """STRBEFORE: what stands before the first occurrence, a plain empty string where there is none."""
    string, sought = compatible(first, second)
    at = string.lexical.find(sought)
    return like(string.lexical[:at], string) if at >= 0 else Literal("")


def after(first: Term, second: Term) -> Literal:
    """STRAFTER: what stands after the first occurrence, a plain empty string where there is none."""
    string, sought = compatible(first, second)
    at = string.lexical.find(sought)
    return like(string.lexical[at + len(sought) :], string) if at >= 0 else Literal("")


def substring(first: Term, start: Term, length: Term | None) -> Literal:
    """SUBSTR: characters count from 1; positions outside the string hold nothing."""
    string = string_of(first)
    begin = _integer(start) - 1
    end = len(string.lexical) if length is None else begin + _integer(length)
    return like(string.lexical[max(begin, 0) : max(end, 0)], string)


def _integer(term: Term) -> int:
    number = value_of(term)
    if isinstance(number, Number) and number.kind == INTEGER:
        return int(number.value)
    raise ExpressionError(f"{brief(term)} is no integer")


def encode_for_uri(term: Term) -> Literal:
    """ENCODE_FOR_URI: all but the unreserved characters of RFC 3986 become percent codes."""
    return Literal(quote(string_of(term).lexical, safe="-_.~", errors="replace"))


def language_matches(tag: str, wanted: str) -> bool:
    """LANGMATCHES: basic filtering of RFC 4647, section 3.3.1."""
    tag, wanted = tag.lower(), wanted.lower()
    if wanted == "*":
        return tag != ""
    return tag == wanted or tag.startswith(wanted + "-")

"""The operator `language(code)`: is a literal, or the publication by its dc:language, in this language?"""

from __future__ import annotations

import re

from triplewire.model.operator import Argument
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal
from triplewire.operators.function import function_operator, text_of

_RANGE = re.compile(r"\*|[a-z]{1,8}(-[a-z0-9]{1,8})*")  # RFC 4647, section 2.1
STATED = (IRI("http://purl.org/dc/elements/1.1/language"), IRI("http://purl.org/dc/terms/language"))


def in_language(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """Does a literal's tag, or a dc:language or dcterms:language literal, equal the code or refine it (en-GB is en)?

    Basic filtering of RFC 4647, section 3.3.1; `*` is any language. Raises `ValueError` where the code is no language
    range.
    """
    code = language_range(arguments[0])
    for triple in publication.graph.triples:
        value = triple.object
        if not isinstance(value, Literal):
            continue
        tags = [value.language, value.lexical] if triple.predicate in STATED else [value.language]
        if any(matches_range(tag, code) for tag in map(tag_of, tags) if tag):
            return True
    return False


def check_code(arguments: tuple[Argument, ...]) -> tuple[str, ...]:
    """No warnings. Raises `ValueError` where a constant code is no language range."""
    if arguments[0] is not None:
        language_range(arguments[0])
    return ()


def language_range(argument: Argument) -> str:
    """A language range in lower case. Raises `ValueError` where the argument is none."""
    code = tag_of(text_of(argument, "code"))
    if not _RANGE.fullmatch(code):
        raise ValueError(f"code is {code!r}, which is no language range such as en or pt-BR")
    return code


def tag_of(text: str) -> str:
    """A tag in the form that is compared. Feeds also write en_US."""
    return text.strip().lower().replace("_", "-")


def matches_range(tag: str, code: str) -> bool:
    """Does the tag equal the language range or begin with it (RFC 4647, section 3.3.1)?"""
    return code == "*" or tag == code or tag.startswith(code + "-")


LANGUAGE = function_operator("language", ["code"], in_language, check_code)

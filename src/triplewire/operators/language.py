"""`language(code)`: is some literal, or the publication by its dc:language, in this language?"""

from __future__ import annotations

from triplewire.model.operator import Argument
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal
from triplewire.operators.function import function_operator, text_of

STATED = (IRI("http://purl.org/dc/elements/1.1/language"), IRI("http://purl.org/dc/terms/language"))


def in_language(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """Does a literal's tag, or a dc:language or dcterms:language literal, equal the code or refine it (en-GB is en)?

    Basic filtering of RFC 4647, section 3.3.1. Raises `ValueError` where the code is missing.
    """
    code = text_of(arguments[0], "code").strip().lower().replace("_", "-")
    for triple in publication.graph.triples:
        value = triple.object
        if not isinstance(value, Literal):
            continue
        tags = [value.language, value.lexical] if triple.predicate in STATED else [value.language]
        if any(_matches(tag.strip().lower().replace("_", "-"), code) for tag in tags if tag):
            return True
    return False


def _matches(tag: str, code: str) -> bool:
    return code == "*" or tag == code or tag.startswith(code + "-")


LANGUAGE = function_operator("language", ["code"], in_language)

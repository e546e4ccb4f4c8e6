"""The operators that need no library.

`locIn(south, west, north, east)`: has a resource a geo:lat and geo:long inside the box? `locIn(place)` is `inPlace` of
`triplewire.operators.families.spatial`, which needs libraries. `language(code)`: is a literal, or the publication by
its dc:language, in this language? The third, `fromSource(source)`, is in `triplewire.model.origins`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from triplewire.ir.values.numbers import lenient_number
from triplewire.model.operator import Argument, Parameter
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Node
from triplewire.operators import function_operator, text_of
from triplewire.operators.families.library import LibraryOperator, checked

GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"
LATITUDE, LONGITUDE = IRI(GEO + "lat"), IRI(GEO + "long")
EDGES = ("south", "west", "north", "east")
POLE = 90  # degrees
_FORM = f"write locIn({', '.join(EDGES)})"


def loc_in(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """Is a resource inside the box? The edges are degrees and belong to it. A box with west > east crosses the date
    line. With one argument: is a place of the publication in the named one?

    A coordinate is any literal that reads as a number, whatever its datatype; others are ignored. Raises `ValueError`
    where an argument is no number.
    """
    if len(arguments) == 1:
        return bool(_in_place().evaluate(publication, arguments))
    south, west, north, east = (_degrees(a, edge) for a, edge in zip(arguments, EDGES, strict=True))
    return any(
        any(south <= latitude <= north for latitude in _numbers(publication, subject, LATITUDE))
        and any(
            west <= longitude <= east if west <= east else longitude >= west or longitude <= east
            for longitude in _numbers(publication, subject, LONGITUDE)
        )
        for subject in dict.fromkeys(triple.subject for triple in publication.graph.find(None, LATITUDE, None))
    )


def _degrees(argument: Argument, edge: str) -> Decimal:
    """An argument as a number. Raises `ValueError`."""
    text = text_of(argument, edge)
    number = lenient_number(text.strip())
    if number is None:
        raise ValueError(f"{edge} is {text!r}, which is no number of degrees")
    return number


def _numbers(publication: Publication, subject: Node, predicate: IRI) -> list[Decimal]:
    """The coordinates of a resource under a predicate."""
    literals = [term for term in publication.graph.objects(subject, predicate) if isinstance(term, Literal)]
    return [number for number in (lenient_number(literal.lexical) for literal in literals) if number is not None]


def check_box(arguments: tuple[Argument, ...]) -> Iterator[str]:
    """Warnings about a box of constants in which no place lies. Raises `ValueError` for an edge that is no number, and
    for a place that is not known."""
    if len(arguments) == 1:
        yield from _in_place().check_constants(arguments)
        return
    edges = {edge: _degrees(a, edge) for a, edge in zip(arguments, EDGES, strict=True) if a is not None}
    south, north = edges.get("south"), edges.get("north")
    if south is not None and north is not None and south > north:
        yield f"no place lies in this box: its south, {south}, is above its north, {north}; {_FORM}"
    elif (south is not None and south > POLE) or (north is not None and north < -POLE):
        yield f"no place lies in this box: latitudes go from -{POLE} to {POLE}; {_FORM}"


def _in_place() -> LibraryOperator:
    from triplewire.operators.families.spatial import IN_PLACE  # libraries, which a box does without

    return IN_PLACE


LOC_IN = function_operator("locIn", [Parameter(e) for e in EDGES], loc_in, check_box, ((Parameter("place"),),))


# --- language --------------------------------------------------------------------------------------------------------

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


LANGUAGE = function_operator("language", ["code"], in_language, checked(language_range))

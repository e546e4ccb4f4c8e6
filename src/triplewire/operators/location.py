"""The operator `locIn(south, west, north, east)`: has a resource a geo:lat and geo:long inside the box?"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from triplewire.ir.values.numbers import lenient_number
from triplewire.model.operator import Argument, Parameter
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Node
from triplewire.operators.function import function_operator, text_of

GEO = "http://www.w3.org/2003/01/geo/wgs84_pos#"
LATITUDE, LONGITUDE = IRI(GEO + "lat"), IRI(GEO + "long")
EDGES = ("south", "west", "north", "east")
POLE = 90  # degrees
_FORM = f"write locIn({', '.join(EDGES)})"


def loc_in(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """Is a resource inside the box? The edges are degrees and belong to it. A box with west > east crosses the date
    line.

    A coordinate is any literal that reads as a number, whatever its datatype; others are ignored. Raises `ValueError`
    where an argument is no number.
    """
    south, west, north, east = (_degrees(a, edge) for a, edge in zip(arguments, EDGES, strict=True))
    for subject in dict.fromkeys(triple.subject for triple in publication.graph.find(None, LATITUDE, None)):
        if any(south <= latitude <= north for latitude in _numbers(publication, subject, LATITUDE)) and any(
            west <= longitude <= east if west <= east else longitude >= west or longitude <= east
            for longitude in _numbers(publication, subject, LONGITUDE)
        ):
            return True
    return False


def _degrees(argument: Argument, edge: str) -> Decimal:
    """An argument as a number. Raises `ValueError`."""
    text = text_of(argument, edge)
    number = lenient_number(text)
    if number is None:
        raise ValueError(f"{edge} is {text!r}, which is no number of degrees")
    return number


def _numbers(publication: Publication, subject: Node, predicate: IRI) -> list[Decimal]:
    """The coordinates of a resource under a predicate."""
    literals = [term for term in publication.graph.objects(subject, predicate) if isinstance(term, Literal)]
    return [number for number in (lenient_number(literal.lexical) for literal in literals) if number is not None]


def check_box(arguments: tuple[Argument, ...]) -> Iterator[str]:
    """Warnings about a box of constants in which no place lies. Raises `ValueError` for an edge that is no number."""
    edges = {edge: _degrees(a, edge) for a, edge in zip(arguments, EDGES, strict=True) if a is not None}
    south, north = edges.get("south"), edges.get("north")
    if south is not None and north is not None and south > north:
        yield f"no place lies in this box: its south, {south}, is above its north, {north}; {_FORM}"
    elif (south is not None and south > POLE) or (north is not None and north < -POLE):
        yield f"no place lies in this box: latitudes go from -{POLE} to {POLE}; {_FORM}"


LOC_IN = function_operator("locIn", [Parameter(edge) for edge in EDGES], loc_in, check_box)

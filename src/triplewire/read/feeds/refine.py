"""What the texts of a feed mean, once all its syntaxes are triples: instants, numbers, places.

A literal gets a type where the vocabulary fixes one and its text is valid; else it stays as written. With `as_written`
nothing here is done. One pass over the triples of an item, whatever its syntax, so that the same item gives the same
graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from triplewire.model.terms import IRI, XSD, XSD_STRING, Literal, Node, Term, Triple
from triplewire.read.feeds import vocabulary as v
from triplewire.read.feeds.instants import date_time, parse_instant
from triplewire.read.feeds.places import places

DATE_TIME = XSD + "dateTime"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+")
_LONGEST = 40  # characters; a longer text is no number or date

_MEDIA, _ITUNES, _SLASH, _SYNDICATION, _THREAD = (
    v.WELL_KNOWN[prefix] for prefix in ("media", "itunes", "slash", "sy", "thr")
)
_EVENT = "http://purl.org/rss/1.0/modules/event/"
_SEARCH = "http://a9.com/-/spec/opensearch/1.1/"

INSTANTS = frozenset({v.DATE})
"""Their texts are normalised to an xsd:dateTime in UTC, whatever format they are in."""
_DAYS = ("available", "created", "date", "dateAccepted", "dateCopyrighted", "dateSubmitted")
DATES = frozenset(
    {IRI(v.DCTERMS + name) for name in _DAYS}
    | {v.ISSUED, v.MODIFIED, v.VALID, IRI(_SYNDICATION + "updateBase"), IRI(_THREAD + "when"), IRI(_THREAD + "updated")}
    | {IRI(_EVENT + "startdate"), IRI(_EVENT + "enddate")}
)
"""Their texts are normalised to an xsd:dateTime in UTC, or, if they are a day, to an xsd:date."""
_SIZES = (
    "average", "bitrate", "channels", "duration", "favorites", "fileSize", "framerate", "height", "max", "min",
    "samplingrate", "views", "width",
)  # fmt: skip
NUMBERS = frozenset(
    {IRI(v.GEO + name) for name in ("lat", "long", "alt")}
    | {IRI(v.GEORSS + name) for name in ("elev", "floor", "radius")}
    | {v.ENCLOSURE_LENGTH, IRI(_SLASH + "comments"), IRI(_SYNDICATION + "updateFrequency")}
    | {IRI(_THREAD + name) for name in ("count", "total")}
    | {IRI(_ITUNES + name) for name in ("episode", "season", "order")}
    | {IRI(_SEARCH + name) for name in ("totalResults", "startIndex", "itemsPerPage")}
    | {IRI(_MEDIA + name) for name in _SIZES}
)
"""Their texts, if they are numbers, become xsd:integer, xsd:decimal or xsd:double; coordinates are never integers."""
_COORDINATES = frozenset(IRI(v.GEO + name) for name in ("lat", "long", "alt"))


def refined(item: Node, triples: Iterable[Triple]) -> Iterator[Triple]:
    """The triples with types; and for the item: a title, a description and a date from the properties that stand in
    for them, and its place."""
    own: dict[IRI, list[Literal]] = {}
    for subject, predicate, value in triples:
        typed = _typed(predicate, value)
        yield Triple(subject, predicate, typed)
        if subject == item and isinstance(typed, Literal):
            own.setdefault(predicate, []).append(typed)
    for predicate, others in _STAND_IN.items():
        if predicate not in own:
            other = next((values[0] for name in others if (values := own.get(name))), None)
            if other is not None:
                yield Triple(item, predicate, _typed(predicate, other))
    for predicate, literal in places(own):
        yield Triple(item, predicate, literal)


_STAND_IN = {
    v.CREATOR: (IRI(v.DC + "author"), IRI(_ITUNES + "author")),
    v.TITLE: (v.DC_TITLE,),
    v.DESCRIPTION: (v.DC_DESCRIPTION,),
    v.DATE: (v.ISSUED, v.MODIFIED, v.CREATED),
}


def _typed(predicate: IRI, value: Term) -> Term:
    """A literal with the type that the vocabulary fixes, if its text is valid."""
    if not isinstance(value, Literal) or value.language or len(value.lexical) > _LONGEST:
        return value
    if predicate in INSTANTS:
        return _instant(value)
    if value.datatype != XSD_STRING:
        return value
    if predicate in DATES:
        text = value.lexical.strip()
        return Literal(text, XSD + "date") if _DAY.fullmatch(text) and parse_instant(text) else _instant(value)
    if predicate in NUMBERS:
        return _number(value, is_coordinate=predicate in _COORDINATES)
    return value


def _instant(value: Literal) -> Literal:
    if value.datatype not in (XSD_STRING, DATE_TIME, XSD + "date"):
        return value
    instant = parse_instant(value.lexical)
    return value if instant is None else Literal(date_time(instant), DATE_TIME)


def _number(value: Literal, *, is_coordinate: bool) -> Literal:
    text = value.lexical.strip()
    if _INTEGER.fullmatch(text) and not is_coordinate:
        return Literal(text, XSD + "integer")
    if _DECIMAL.fullmatch(text):
        return Literal(text, XSD + "decimal")
    return Literal(text, XSD + "double") if _DOUBLE.fullmatch(text) else value

"""GeoRSS: points, lines, boxes and polygons as geo:lat, geo:long and well-known text (WKT).

GeoRSS writes latitude before longitude, WKT longitude before latitude. A line, box or polygon has the middle of its
bounding box as its geo:lat and geo:long.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from triplewire.model.terms import IRI, XSD, Literal
from triplewire.read.feeds import vocabulary as v

LATITUDE, LONGITUDE = IRI(v.GEO + "lat"), IRI(v.GEO + "long")
GEOSPARQL = "http://www.opengis.net/ont/geosparql#"
AS_WKT, WKT_LITERAL = IRI(GEOSPARQL + "asWKT"), GEOSPARQL + "wktLiteral"
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})")
_MOST = 65_536  # characters of a shape; a longer one stays text
_SHAPES = {"point": (1, 1), "line": (2, _MOST), "box": (2, 2), "polygon": (4, _MOST)}
"""The shapes, and how many pairs of coordinates each has, at least and at most."""
_NAMES = {IRI(v.GEORSS + shape): shape for shape in _SHAPES} | {
    IRI(v.GML + "pos"): "point",
    IRI("http://www.opengis.net/gmlpos"): "point",
}

Pair = tuple[Decimal, Decimal]


def places(own: Mapping[IRI, Sequence[Literal]]) -> Iterator[tuple[IRI, Literal]]:
    """The place that an item's own literals give, by predicate: geo:lat and geo:long, unless it has them, and WKT."""
    has_point = LATITUDE in own and LONGITUDE in own
    for predicate, shape in _NAMES.items():
        for literal in own.get(predicate, ()):
            pairs = _pairs(literal.lexical)
            least, most = _SHAPES[shape]
            if not least <= len(pairs) <= most:
                continue
            yield AS_WKT, Literal(_wkt(shape, pairs), WKT_LITERAL)
            if not has_point:
                has_point = True
                for coordinate, values in zip((LATITUDE, LONGITUDE), zip(*pairs, strict=True), strict=True):
                    yield coordinate, Literal(_written((min(values) + max(values)) / 2), XSD + "decimal")


def _pairs(text: str) -> list[Pair]:
    """Pairs of latitude and longitude; none where the text is something else."""
    words = text.replace(",", " ").split() if len(text) <= _MOST else []
    if len(words) % 2 or not all(_NUMBER.fullmatch(word) for word in words):
        return []
    numbers = list(map(Decimal, words))
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    return pairs if all(abs(latitude) <= 90 and abs(longitude) <= 360 for latitude, longitude in pairs) else []


def _wkt(shape: str, pairs: Sequence[Pair]) -> str:
    if shape == "point":
        return f"POINT({_point(pairs[0])})"
    if shape == "line":
        return f"LINESTRING({', '.join(map(_point, pairs))})"
    if shape == "box":
        (south, west), (north, east) = pairs
        pairs = [(south, west), (south, east), (north, east), (north, west), (south, west)]
    elif pairs[0] != pairs[-1]:
        pairs = [*pairs, pairs[0]]
    return f"POLYGON(({', '.join(map(_point, pairs))}))"


def _point(pair: Pair) -> str:
    return f"{_written(pair[1])} {_written(pair[0])}"


def _written(number: Decimal) -> str:
    """Without exponent and idle zeros behind the point."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text

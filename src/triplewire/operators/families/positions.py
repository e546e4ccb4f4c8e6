"""Where a publication says that things are: pairs of coordinates, and shapes as WKT, GeoJSON or GeoRSS texts.

Coordinates are degrees on WGS 84. Values that read as no place are passed over, as `locIn` does. shapely is imported
when there is a shape to read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from triplewire.ir.values.numbers import lenient_number
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.publication import Graph, Publication
from triplewire.model.terms import IRI, Literal, Node

GEOSPARQL = "http://www.opengis.net/ont/geosparql#"
_GEORSS = "http://www.georss.org/georss/"
_GEO, _SCHEMA, _SCHEMAS = (PREDECLARED[prefix] for prefix in ("geo", "schema", "schemas"))
_PAIRS = (
    (IRI(_GEO + "lat"), IRI(_GEO + "long")),
    (IRI(_SCHEMA + "latitude"), IRI(_SCHEMA + "longitude")),
    (IRI(_SCHEMAS + "latitude"), IRI(_SCHEMAS + "longitude")),
)
_WKT, _GEOJSON = GEOSPARQL + "wktLiteral", GEOSPARQL + "geoJSONLiteral"
_SHAPES = {IRI(_GEORSS + shape): shape for shape in ("point", "line", "box", "polygon")} | {
    IRI(_GEO + "lat_long"): "point",
    **{IRI(base + shape): shape for base in (_SCHEMA, _SCHEMAS) for shape in ("line", "box", "polygon")},
}
"""Predicates of texts of latitudes and longitudes in turn (GeoRSS-Simple; schema:GeoShape)."""
_AXES = {  # coordinate reference systems of GeoSPARQL 1.1, section 8.5.1.1, and whether latitude is first
    "http://www.opengis.net/def/crs/OGC/1.3/CRS84": False,
    "http://www.opengis.net/def/crs/EPSG/0/4326": True,
}
_CRS = re.compile(r"\s*<([^<>\s]*)>\s*")
MOST_CHARACTERS = 65_536  # of one shape
MOST_PLACES = 10_000  # of one publication
_MOST_NESTED = 16  # collections within collections, brackets of GeoJSON
_FAR = 540  # degrees: a shape that crosses the date line may go on past 180
POLE = 90

Point = tuple[float, float]
"""Latitude and longitude, in degrees."""


def places(publication: Publication) -> tuple[list[Point], list[Any]]:
    """The distinct points, in the order in which they stand, and the valid shapes (of shapely, x is the longitude).

    Raises `ValueError` past `MOST_PLACES`.
    """
    graph = publication.graph
    points = dict.fromkeys(_bounded(_coordinates(graph)))
    shapes = []
    for shape in _bounded(_shapes(graph)):
        if shape.geom_type == "Point":
            points.setdefault((shape.y, shape.x))
        else:
            shapes.append(shape)
    return list(points), shapes


def _bounded(things: Iterator[Any]) -> Iterator[Any]:
    for number, thing in enumerate(things):
        if number >= MOST_PLACES:
            raise ValueError(f"the publication has more than {MOST_PLACES} places")
        yield thing


def _coordinates(graph: Graph) -> Iterator[Point]:
    for lat, long in _PAIRS:
        for subject in dict.fromkeys(triple.subject for triple in graph.find(None, lat, None)):
            longitudes = [x for x in _numbers(graph, subject, long) if abs(x) <= 2 * 180]
            for y in _numbers(graph, subject, lat):
                if abs(y) <= POLE:
                    yield from ((y, x) for x in longitudes)


def _numbers(graph: Graph, subject: Node, predicate: IRI) -> list[float]:
    literals = (term for term in graph.objects(subject, predicate) if isinstance(term, Literal))
    numbers = (lenient_number(literal.lexical) for literal in literals if len(literal.lexical) <= 40)
    return [float(number) for number in numbers if number is not None]


def _shapes(graph: Graph) -> Iterator[Any]:
    for triple in graph.triples:
        value = triple.object
        if not isinstance(value, Literal) or len(value.lexical) > MOST_CHARACTERS:
            continue
        try:
            if value.datatype == _WKT:
                yield of_wkt(value.lexical)
            elif value.datatype == _GEOJSON:
                yield of_geojson(value.lexical)
            elif triple.predicate in _SHAPES:
                yield _of_pairs(_SHAPES[triple.predicate], value.lexical)
        except ValueError:
            continue


# --- texts -----------------------------------------------------------------------------------------------------------


def of_text(text: str) -> Any:
    """A shape of WKT or GeoJSON. Raises `ValueError`, which says what is wrong."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it has more than {MOST_CHARACTERS} characters")
    return of_geojson(text) if text.lstrip().startswith("{") else of_wkt(text)


def of_wkt(text: str) -> Any:
    """A shape of WKT, which a CRS may precede (GeoSPARQL 1.1, section 8.5.1). Raises `ValueError`."""
    import shapely

    crs = _CRS.match(text)
    if crs and crs[1] not in _AXES:
        raise ValueError(f"its coordinates are in {crs[1]}; known: {', '.join(_AXES)}")
    body = text[crs.end() :] if crs else text
    if _depth(body) > _MOST_NESTED:
        raise ValueError(f"it is nested more than {_MOST_NESTED} times")
    try:
        shape = shapely.from_wkt(body.strip())
    except shapely.errors.ShapelyError as error:
        raise ValueError(f"it is no WKT: {error}") from None
    if crs and _AXES[crs[1]]:
        shape = shapely.transform(shape, lambda pairs: pairs[:, ::-1])
    return _valid(shape)


def of_geojson(text: str) -> Any:
    """A shape of a GeoJSON geometry, feature, or collection of features (RFC 7946). Raises `ValueError`."""
    if _depth(text) > _MOST_NESTED:
        raise ValueError(f"it is nested more than {_MOST_NESTED} times")
    try:
        return geometry_of(json.loads(text))
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON: {error}") from None


def geometry_of(value: Any) -> Any:
    """A shape of an object of GeoJSON. Raises `ValueError`."""
    import shapely
    from shapely.geometry import shape as shape_of

    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "Feature":
        return geometry_of(value.get("geometry"))
    if kind == "FeatureCollection":
        features = value.get("features")
        if not isinstance(features, list) or not features:
            raise ValueError("its collection has no features")
        return _valid(shapely.union_all([geometry_of(feature) for feature in features]))
    try:
        return _valid(shapely.force_2d(shape_of(value)))
    except (shapely.errors.ShapelyError, AttributeError, KeyError, TypeError, IndexError, ValueError) as error:
        raise ValueError(f"it is no GeoJSON geometry: {error}") from None


def _of_pairs(kind: str, text: str) -> Any:
    """A shape of latitudes and longitudes. Raises `ValueError`."""
    import shapely

    numbers = list(map(float, text.replace(",", " ").split()))
    pairs = list(zip(numbers[1::2], numbers[::2], strict=False))
    if len(numbers) % 2 or not pairs:
        raise ValueError("it has no pairs of numbers")
    if kind == "point" and len(pairs) == 1:
        return _valid(shapely.Point(pairs[0]))
    if kind == "line" and len(pairs) > 1:
        return _valid(shapely.LineString(pairs))
    if kind == "box" and len(pairs) == 2:
        return _valid(shapely.box(*pairs[0], *pairs[1]))
    if kind == "polygon" and len(pairs) > 2:
        return _valid(shapely.Polygon(pairs))
    raise ValueError(f"it is no {kind}")


def _depth(text: str) -> int:
    deepest = depth = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth -= 1
    return deepest


def _valid(shape: Any) -> Any:
    """The shape. Raises `ValueError` where it is empty, crosses itself, or lies outside of all coordinates."""
    import shapely

    if shape is None or shape.is_empty:
        raise ValueError("it is empty")
    west, south, east, north = shape.bounds
    if not (-POLE <= south <= north <= POLE and -_FAR <= west <= east <= _FAR):
        raise ValueError("its coordinates are no degrees: longitude comes first, and a latitude is at most 90")
    if not shape.is_valid:
        raise ValueError(f"it is not valid: {shapely.is_valid_reason(shape)}")
    return shape

"""`locWithin`, `distanceFrom`, `within(region)`, and `inPlace(place)`, which is `locIn(place)`, too.

They are on shapely and geographiclib (extra `spatial`). A distance is the length of the geodesic on the ellipsoid of
WGS 84 (C. Karney, Algorithms for geodesics, 2013), right across the date line and at the poles. A region is flat in
longitude and latitude (RFC 7946, section 3.1.1): one that crosses the date line is cut there, or goes on past 180.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

from triplewire.bounded_cache import BoundedCache
from triplewire.ir.values.numbers import lenient_number
from triplewire.model.namespaces import PREDECLARED
from triplewire.model.operator import Argument, Parameter
from triplewire.model.publication import Graph, Publication
from triplewire.model.terms import IRI, XSD, Literal, Node, Term
from triplewire.operators import text_of
from triplewire.operators.families.library import (
    LibraryOperator,
    checked,
    each_constant,
    number_of,
    rows,
    state_of_file,
)

# --- where a publication says that things are: pairs of coordinates, and shapes as texts ------------------------------

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


# --- distances -------------------------------------------------------------------------------------------------------

LIBRARIES = (("shapely", "shapely"), ("geographiclib", "geographiclib"))
VARIABLE = "TRIPLEWIRE_PLACES"
HALF = 20_003_932  # m from pole to pole, rounded up: no distance is longer
_RADIUS, _FLATTENING = 6_371_008.8, 0.006  # m; how much, of 1, a great circle may differ from the geodesic
_TURN = 360
_EDGE = 0.25  # degrees: edges of shapes are cut into pieces of this length before they are measured
_MOST_PIECES = 20_000
_MOST_CORNERS = 1_000  # of two shapes whose distance is asked


# readers of arguments: degrees to the north and to the east, metres
latitude_of = partial(number_of, name="latitude", least=-POLE, most=POLE)
longitude_of = partial(number_of, name="longitude", least=-_TURN, most=_TURN)
metres_of = partial(number_of, name="distance", least=0, most=math.inf)


def loc_within(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """Is a place of the publication at most so many metres from the point, or the named place? A shape is as far as its
    nearest point."""
    if len(arguments) == 2:
        most = metres_of(arguments[1])
        return any(metres <= most for metres in _from_place(publication, arguments[0]))
    here = latitude_of(arguments[0]), longitude_of(arguments[1])
    most = metres_of(arguments[2])
    points, shapes = places(publication)
    near = (there for there in points if _great_circle(here, there) * (1 - _FLATTENING) <= most + 1)
    if any(_geodesic(here, there) <= most for there in near):
        return True
    return any(metres <= most for metres in _to_shapes(here, shapes))


def distance_from(publication: Publication, arguments: tuple[Argument, ...]) -> Iterable[tuple[Term, ...]]:
    """A row for each place: its distance from the point, or the named place, in metres, to the millimetre, as
    xsd:decimal."""
    if len(arguments) == 2:
        named = arguments[0]
        assert named is not None  # the place has been looked up
        return rows(arguments, ((named, _metres(metres)) for metres in _from_place(publication, named)))
    here = latitude_of(arguments[0]), longitude_of(arguments[1])
    points, shapes = places(publication)
    distances = [_geodesic(here, there) for there in points] + list(_to_shapes(here, shapes))
    latitude, longitude, _ = arguments
    assert latitude is not None  # they have been read as numbers
    assert longitude is not None
    return rows(arguments, ((latitude, longitude, _metres(metres)) for metres in distances))


def _metres(metres: float) -> Literal:
    return Literal(f"{metres:.3f}", XSD + "decimal")


def check_distance(arguments: tuple[Argument, ...]) -> Iterator[str]:
    """A warning about a distance that is given. Raises `ValueError` for constants out of range, and for a place that is
    not known."""
    check_within(arguments)
    if arguments[-1] is not None:
        yield "only a place at exactly this distance matches; locWithin asks for nearer ones"


def check_within(arguments: tuple[Argument, ...]) -> Iterable[str]:
    """Nothing to warn of. Raises `ValueError` for constants out of range, and for a place that is not known."""
    of_point = checked(latitude_of, longitude_of, metres_of)
    return of_point(arguments) if len(arguments) == 3 else checked(_PLACES.place_of, metres_of)(arguments)


def _from_place(publication: Publication, name: Argument) -> Iterator[float]:
    """Metres from the named place to each place of the publication, 0 inside. Raises `ValueError`."""
    named = _PLACES.place_of(name)
    points, shapes = places(publication)
    if named.geom_type == "Point":
        here = named.y, named.x
        yield from (_geodesic(here, there) for there in points)
        yield from _to_shapes(here, shapes)
        return
    for there in points:
        yield from _to_shapes(there, [named])
    for shape in shapes:
        yield _between(named, shape)


def _between(named: Any, other: Any) -> float:
    """Metres between two lines or polygons: at least one of them is nearest at a vertex. Raises `ValueError` for shapes
    of very many pieces."""
    import shapely

    if shapely.intersects(named, other):
        return 0.0
    corners = [[(y, x) for x, y in shapely.get_coordinates(shape).tolist()] for shape in (named, other)]
    if sum(map(len, corners)) > _MOST_CORNERS:
        raise ValueError(f"the shapes have more than {_MOST_CORNERS} corners")
    return min(metres for shape, ends in ((other, corners[0]), (named, corners[1])) for end in ends
               for metres in _to_shapes(end, [shape]))  # fmt: skip


def _geodesic(here: Point, there: Point) -> float:
    """Metres on the ellipsoid, to the micrometre: what is smaller is noise of the computation."""
    geodesic = _geodesics()
    return round(float(geodesic.WGS84.Inverse(*here, *there, geodesic.DISTANCE)["s12"]), 6)


@cache
def _geodesics() -> Any:
    from geographiclib.geodesic import Geodesic

    return Geodesic


def _great_circle(here: Point, there: Point) -> float:
    """Metres on a sphere (haversine): quick, and within 0.6 % of the geodesic."""
    south, north = math.radians(here[0]), math.radians(there[0])
    east = math.radians(there[1] - here[1])
    half = math.sin((north - south) / 2) ** 2 + math.cos(south) * math.cos(north) * math.sin(east / 2) ** 2
    return 2 * _RADIUS * math.asin(min(1.0, math.sqrt(half)))


def _to_shapes(here: Point, shapes: Iterable[Any]) -> Iterator[float]:
    """Metres to the nearest point of each line or polygon, 0 inside. Its vertices, and points between them, are laid
    out around the point by direction and distance (azimuthal equidistant), where distances from the middle are true.
    Raises `ValueError` for shapes of very many pieces."""
    import numpy as np
    import shapely

    def around(pairs: Any) -> Any:
        geodesics = [_geodesics().WGS84.Inverse(*here, y, x) for x, y in pairs.tolist()]
        directions = np.radians([each["azi1"] for each in geodesics])
        return np.array([each["s12"] for each in geodesics])[:, None] * np.column_stack(
            (np.sin(directions), np.cos(directions))
        )

    pieces = 0
    for shape in shapes:
        if covers(shape, here):
            yield 0.0
            continue
        fine = shapely.segmentize(shape.boundary if shape.geom_type.endswith("Polygon") else shape, _EDGE)
        pieces += shapely.get_num_coordinates(fine)
        if pieces > _MOST_PIECES:
            raise ValueError(f"its shapes have edges of more than {_MOST_PIECES * _EDGE:g} degrees in all")
        yield float(shapely.distance(shapely.transform(fine, around), shapely.Point(0, 0)))


def covers(region: Any, point: Point) -> bool:
    """Is the point in the region or on its border? A pole is at all longitudes."""
    import shapely

    latitude, longitude = point
    if abs(latitude) == POLE:
        return bool(shapely.intersects(region, shapely.LineString([(-180, latitude), (180, latitude)])))
    longitude = (longitude + 180) % _TURN - 180
    return any(shapely.intersects_xy(region, longitude + turn, latitude) for turn in (0, _TURN, -_TURN))


def holds(region: Any, publication: Publication) -> bool:
    """Is a point in the region or on its border, or a shape wholly inside?"""
    import shapely
    from shapely.affinity import translate

    points, shapes = places(publication)
    if any(covers(region, point) for point in points):
        return True
    return any(shapely.covers(region, translate(shape, turn)) for shape in shapes for turn in (0, _TURN, -_TURN))


_regions: BoundedCache[str, Any] = BoundedCache()
_MOST_TEXT = 64 << 20  # characters of all regions that are kept, each of which takes one to five bytes


def _region(text: str) -> Any:
    import shapely

    try:
        region = of_text(text)
    except ValueError as error:
        raise ValueError(f"region is {text[:40]!r}: {error}") from None
    shapely.prepare(region)
    return region


def region_of(argument: Argument) -> Any:
    """A region of WKT or GeoJSON. Raises `ValueError`."""
    text = text_of(argument, "region")
    return _regions.get_or_make(text, lambda: _region(text), len(text), _MOST_TEXT)


def within(publication: Publication, arguments: tuple[Argument, ...]) -> bool:
    """Is a place of the publication in the region?"""
    return holds(region_of(arguments[0]), publication)


def check_region(arguments: tuple[Argument, ...]) -> Iterator[str]:
    """Warnings about a region that has no area, or an edge round half the Earth. Raises `ValueError` for no region."""
    import shapely

    for region in each_constant(arguments, region_of):
        if not region.area:
            yield "the region has no area: only places on its points and lines match"
        for part in shapely.get_parts(region):
            longitudes = shapely.get_coordinates(part)[:, 0]
            widest = max(abs(longitudes[1:] - longitudes[:-1]), default=0)
            if _TURN / 2 < widest < _TURN:  # 360: the whole Earth is meant
                yield "an edge goes round more than half the Earth; past the date line, write 190 for -170"
                break


@dataclass(frozen=True)
class Gazetteer:
    """The places of a file: a GeoJSON collection of features, named by `id` and by the properties `name` and `iri`.
    Without a `path`, it is the file that the variable TRIPLEWIRE_PLACES names when it is needed."""

    path: str | Path | None

    def __call__(self, publication: Publication, arguments: tuple[Argument, ...]) -> bool:
        """Is a place of the publication in the named one?"""
        return holds(self.place_of(arguments[0]), publication)

    def place_of(self, argument: Argument) -> Any:
        """The shape of a name. Raises `ValueError` where there is no such place, or no file."""
        name = text_of(argument, "place")
        path = self.path or os.environ.get(VARIABLE)
        if not path:
            raise ValueError(f"place is {name[:80]!r}, but there is no file of places; name one in {VARIABLE}")
        known = _places_of(str(path))
        if name not in known:
            near = get_close_matches(name[:80], list(known), n=1) if len(known) <= 2_000 else []
            meant = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"place is {name[:80]!r}, which {path} does not have{meant}")
        return known[name]


def _places_of(path: str) -> dict[str, Any]:
    """The shapes of a file by their names. Raises `ValueError`."""
    try:
        return _read_places(path, state_of_file(path))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"place cannot be looked up: {path} is no GeoJSON collection of features: {error}") from None


@lru_cache(maxsize=4)
def _read_places(path: str, _state: tuple[int, int]) -> dict[str, Any]:
    import shapely

    shapes: dict[str, Any] = {}
    for feature in json.loads(Path(path).read_text(encoding="utf-8"))["features"]:
        shape = geometry_of(feature)
        shapely.prepare(shape)
        about = feature.get("properties") or {}
        for name in (feature.get("id"), about.get("name"), about.get("iri")):
            if name is not None:
                shapes.setdefault(str(name), shape)
    return shapes


def in_place(path: str | Path | None = None, name: str = "inPlace") -> LibraryOperator:
    """The operator `inPlace(place)` on a file of places; a program may register it as `locIn`."""
    gazetteer, formal = Gazetteer(path), (Parameter("place"),)
    options: dict[str, Any] = {"cost": 2e-4, "cacheable": False}  # the file of places may change
    return LibraryOperator(name, formal, gazetteer, checked(gazetteer.place_of), "spatial", LIBRARIES, **options)


_PLACES = Gazetteer(None)
_NAMED = ((Parameter("place"), Parameter("distance", "m")),)
_FROM_FILE: dict[str, Any] = {"other_forms": _NAMED, "cacheable": False}  # the file of places may change
_POINT = (Parameter("latitude"), Parameter("longitude"), Parameter("distance", "m"))
LOC_WITHIN = LibraryOperator(
    "locWithin", _POINT, loc_within, check_within, "spatial", LIBRARIES, cost=2e-4, **_FROM_FILE
)
DISTANCE_FROM = LibraryOperator(
    "distanceFrom", _POINT, distance_from, check_distance, "spatial", LIBRARIES, cost=3e-4, **_FROM_FILE
)
WITHIN = LibraryOperator("within", (Parameter("region"),), within, check_region, "spatial", LIBRARIES, cost=2e-4)
IN_PLACE = in_place()

"""What the texts of a feed mean, once all its syntaxes are triples: instants, numbers, places.

Instants are RFC 3339, W3C date and time formats, RFC 822, and some that feedparser knows.

A literal gets a type where the vocabulary fixes one and its text is valid; else it stays as written. With `as_written`
nothing here is done. One pass over the triples of an item, whatever its syntax, so that the same item gives the same
graph.
"""

from __future__ import annotations

import calendar
import datetime as dt
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from feedparser.datetimes.asctime import _parse_date_asctime
from feedparser.datetimes.greek import _parse_date_greek
from feedparser.datetimes.hungarian import _parse_date_hungarian
from feedparser.datetimes.korean import _parse_date_nate, _parse_date_onblog
from feedparser.datetimes.rfc822 import _parse_date_rfc822, day_names, months, timezone_names

from triplewire.model.terms import IRI, XSD, XSD_STRING, Literal, Node, Term, Triple
from triplewire.read.feeds import vocabulary as v

_LONGEST = 100  # characters; a longer text is no instant, day or number
_ISO = re.compile(
    r"(?:[A-Za-z]{3},\s+)?([0-9]{4})(?:([-/.])([0-9]{1,2})(?:\2([0-9]{1,2}))?|([0-9]{2})([0-9]{2}))?"
    r"(?:[Tt\s]\s*([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{1,2})(?:[.,]([0-9]+))?)?)?\s*(?:[Zz]|([+-][0-9]{2})(?::?([0-9]{2}))?)?|[Zz])?"
)
_HALF_DAY = re.compile(r"(?<![\w:])([0-9]{1,2})((?::[0-9]{2}){1,2})\s?([ap])\.?m\b\.?", re.IGNORECASE)
_WEEK = re.compile(r"[0-9]{4}-?W[0-9]{2}")
# a letter is the zone of no offset (RFC 5322, section 4.3), not that of RFC 822
_ZONES = {name: hours for name, hours in timezone_names.items() if len(name) > 1} | {
    "z": 0,
    "utc": 0,
    "wet": 0,
    "west": 1,
    "cet": 1,
    "cest": 2,
    "eet": 2,
    "eest": 3,
    "msk": 3,
}
_ZONE = re.compile(r"(?<=:[0-9])([0-9]?(?:[.,][0-9]+)?)\s*([^\W\d_]\S*)")
_NAMED_OFFSET = re.compile(r"(?:gmt|utc)([+-][0-9]{2}:?[0-9]{2})")
# comments (RFC 5322, section 3.2.2), the name of a zone in brackets (RFC 9557), the name of one behind its offset
_COMMENT = re.compile(r"\([^()]*\)|\[[^\[\]]*\]\Z|(?<=[+-][0-9]{4})\s+[A-Za-z]+\s*\Z")
# a year of two or three digits behind a day and a month, in either order (RFC 5322, section 4.3; RFC 850)
_YEAR = re.compile(
    rf"([0-9]{{1,2}}[\s-]+(?:{'|'.join(months)})[a-z]*\.?|\b(?:{'|'.join(months)})[a-z]*\.?\s+[0-9]{{1,2}})"
    r",?(?:\s+|-)([0-9]{2,4})(?=[,\s]|\Z)",
    re.IGNORECASE,
)
_DAY_NAME = re.compile(r"\A[^\W\d_]{2,14}\.?,\s*+(?=[0-9])")  # in any language
_IDLE = re.compile(r"(?<=[0-9])(?:st|nd|rd|th)\b|\bat\b", re.IGNORECASE)  # May 17th, 2024 at 10:00
_OFFSET_AT_ONCE = re.compile(r"(?<=:[0-9]{2})(?=[+-][0-9]{2}:?[0-9]{2}\Z)")
_LEAP = re.compile(r"(:[0-9]{2}:|T[0-9]{4})60(?![0-9])", re.IGNORECASE)
_TOKEN = re.compile(
    rf"(?:{'|'.join(sorted({*months, *day_names}))})[a-z]*[.,]?"
    r"|[0-9]{1,4},?|[0-9]{1,2}(?::[0-9]{1,2}){1,2}|[+-][0-9]{2}:?[0-9]{2}",
    re.IGNORECASE,
)


def parse_instant(text: str) -> dt.datetime | None:
    """The instant in UTC, or None where the text is none. Without a zone it is in UTC; a date means its midnight, a
    month or year the midnight in which it begins."""
    text = text.strip().replace("\N{MINUS SIGN}", "-")  # of an offset (ISO 8601-1, section 3.2.1)
    if not text or len(text) > _LONGEST:
        return None
    try:
        count = 1
        while count:  # comments may lie in each other
            text, count = _COMMENT.subn("", text)
        text = _with_offset(_HALF_DAY.sub(_of_whole_day, text.strip(), count=1))
        text, leaps = _LEAP.subn(r"\g<1>59", text, count=1)
        past = dt.timedelta(seconds=leaps)  # a leap second is the second after :59
        if _WEEK.match(text):
            instant = dt.datetime.fromisoformat(text)
            return instant.astimezone(dt.UTC) if instant.tzinfo else instant.replace(tzinfo=dt.UTC)
        match = _ISO.fullmatch(text)
        if match is not None:
            return _iso(match) + past
        text = _YEAR.sub(_with_century, _IDLE.sub("", text), count=1)
        handlers = [_parse_date_greek, _parse_date_hungarian, _parse_date_nate, _parse_date_onblog]
        nameless = _OFFSET_AT_ONCE.sub(" ", _DAY_NAME.sub("", text))
        if all(map(_TOKEN.fullmatch, nameless.split())):
            text, handlers = nameless, [_parse_day_and_month, _parse_date_asctime]
        parts = next(filter(None, (handler(text) for handler in handlers)), None)
        return dt.datetime.fromtimestamp(calendar.timegm(parts), dt.UTC) + past if parts else None
    except (ValueError, OverflowError, OSError, TypeError, LookupError):
        return None


def _parse_day_and_month(text: str) -> time.struct_time | None:
    """As RFC 822 has it, whatever the day of the week is, which needs a zone to feedparser; commas are passed over."""
    words = text.replace(",", " ").split()
    parsed: time.struct_time | None = _parse_date_rfc822(" ".join(words[words[0][:3].lower() in day_names :]))
    return parsed


def _of_whole_day(match: re.Match[str]) -> str:
    """A time of the clock of twelve hours as one of 24. Raises `ValueError` for an hour that it does not have."""
    hour, is_afternoon = int(match[1]), match[3].lower() == "p"
    if not 1 <= hour <= 12:
        raise ValueError("an hour that half a day does not have")
    return f"{hour % 12 + 12 * is_afternoon:02d}{match[2]}"


def _with_offset(text: str) -> str:
    """The text with the offset of a zone instead of its name. Raises `LookupError` for a name that is no zone."""
    match = _ZONE.search(text)
    if match is None:
        return text
    name = match[2].lower().removeprefix("etc/")
    named = _NAMED_OFFSET.fullmatch(name)
    is_known = named is not None or name in _ZONES
    if not is_known and (name in ("am", "pm") or not name.isalpha() or text[:4].isdecimal()):
        raise LookupError(name)
    offset = named[1] if named else f"{_ZONES.get(name, 0):+03d}:00"
    return f"{text[: match.start()]}{match[1]} {offset}{text[match.end() :]}"


def _with_century(match: re.Match[str]) -> str:
    """A day and a month with their year in full (RFC 5322, section 4.3): 50 to 99 and three digits count from 1900."""
    year, digits = int(match[2]), len(match[2])
    year += 0 if digits == 4 else 1900 if digits == 3 or year >= 50 else 2000
    return f"{match[1].replace('-', ' ')} {year:04d}"


def _iso(match: re.Match[str]) -> dt.datetime:
    """What an ISO 8601 text says. 24:00 is the next day's midnight. Raises `ValueError` for what no calendar or clock
    has."""
    year, month, day = int(match[1]), match[3] or match[5] or "1", match[4] or match[6] or "1"
    hour, minute, second, zone, zone_minute = (int(match[n] or 0) for n in (7, 8, 9, 11, 12))
    if match[7] and not (match[4] or match[6]):
        raise ValueError("a time without a day")
    if zone_minute > 59 or abs(zone) > 23:
        raise ValueError("an offset that no zone has")
    microsecond = int(f"{match[10] or '':0<6}"[:6])
    is_midnight = (hour, minute, second, microsecond) == (24, 0, 0, 0)
    written = dt.datetime(year, int(month), int(day), 0 if is_midnight else hour, minute, second, microsecond, dt.UTC)
    sign = -1 if (match[11] or "").startswith("-") else 1
    return written + dt.timedelta(days=is_midnight) - dt.timedelta(hours=zone, minutes=sign * zone_minute)


def date_time(instant: dt.datetime) -> str:
    """An instant in UTC as the lexical form of an xsd:dateTime."""
    text = instant.strftime("%m-%dT%H:%M:%S")
    fraction = f".{instant.microsecond:06d}".rstrip("0") if instant.microsecond else ""
    return f"{instant.year:04d}-{text}{fraction}Z"


# --- Places: GeoRSS as geo:lat, geo:long and well-known text (WKT) ---------------------------------------------------

LATITUDE, LONGITUDE = IRI(v.GEO + "lat"), IRI(v.GEO + "long")
GEOSPARQL = "http://www.opengis.net/ont/geosparql#"
AS_WKT, WKT_LITERAL = IRI(GEOSPARQL + "asWKT"), GEOSPARQL + "wktLiteral"
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,9}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})")
_MOST = 65_536  # characters of a shape; a longer one stays text
_SHAPES = {
    "point": (1, 1),
    "circle": (1, 1),
    "line": (2, _MOST),
    "box": (2, 2),
    "polygon": (4, _MOST),
    "line or ring": (2, _MOST),
}
"""The shapes, and how many pairs of coordinates each has, at least and at most."""
_GMLS = (v.WELL_KNOWN["gml"], "http://www.opengis.net/gml/3.2")
_NAMES = {IRI(v.GEORSS + shape): shape for shape in ("point", "line", "box", "polygon", "circle")} | {
    IRI(gml + name): shape for gml in _GMLS for name, shape in (("pos", "point"), ("posList", "line or ring"))
}
_CORNERS = tuple((IRI(gml + "lowerCorner"), IRI(gml + "upperCorner")) for gml in _GMLS)  # of a box

Pair = tuple[Decimal, Decimal]


def places(texts: Mapping[IRI, Sequence[Literal]]) -> Iterator[tuple[IRI, Literal]]:
    """The place that an item's own literals give, by predicate: geo:lat and geo:long, unless it has them, and WKT,
    which has no circles."""
    has_point = LATITUDE in texts and LONGITUDE in texts
    shapes = [(shape, literal.lexical) for name, shape in _NAMES.items() for literal in texts.get(name, ())]
    for lower, upper in _CORNERS:
        corners = zip(texts.get(lower, ()), texts.get(upper, ()), strict=False)
        shapes += [("box", f"{south_west.lexical} {north_east.lexical}") for south_west, north_east in corners]
    for shape, text in shapes:
        pairs = _pairs(text, shape)
        least, most = _SHAPES[shape]
        if not least <= len(pairs) <= most:
            continue
        if shape == "line or ring":
            shape = "polygon" if len(pairs) >= _SHAPES["polygon"][0] and pairs[0] == pairs[-1] else "line"
        if shape != "circle":
            yield AS_WKT, Literal(_wkt(shape, pairs), WKT_LITERAL)
        if not has_point:
            has_point = True
            for coordinate, values in zip((LATITUDE, LONGITUDE), zip(*pairs, strict=True), strict=True):
                middle = (min(values) + max(values)) / 2
                yield coordinate, Literal(_written(middle - 360 if middle > 180 else middle), XSD + "decimal")


def _pairs(text: str, shape: str) -> list[Pair]:
    """Pairs of latitude and longitude; none where the text is something else. The east of a box across the 180th
    meridian lies beyond 180. What follows the pair of a point is its height, and of a circle its radius."""
    words = text.replace(",", " ").split() if len(text) <= _MOST else []
    if len(words) == 3 and shape in ("point", "circle") and _NUMBER.fullmatch(words.pop()) is None:
        return []
    if len(words) % 2 or not all(_NUMBER.fullmatch(word) for word in words):
        return []
    numbers = list(map(Decimal, words))
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    if shape == "box" and len(pairs) == 2 and pairs[0][1] > pairs[1][1]:
        pairs[1] = (pairs[1][0], pairs[1][1] + 360)
    return pairs if all(abs(latitude) <= 90 and abs(longitude) <= 360 for latitude, longitude in pairs) else []


def _wkt(shape: str, pairs: Sequence[Pair]) -> str:
    if shape == "box":
        (south, west), (north, east) = pairs
        pairs = [(south, west), (south, east), (north, east), (north, west), (south, west)]
    elif shape == "polygon" and pairs[0] != pairs[-1]:
        pairs = [*pairs, pairs[0]]
    points = ", ".join(f"{_written(longitude)} {_written(latitude)}" for latitude, longitude in pairs)
    return {"point": f"POINT({points})", "line": f"LINESTRING({points})"}.get(shape, f"POLYGON(({points}))")


def _written(number: Decimal) -> str:
    """Without exponent and idle zeros behind the point."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


# --- Types -----------------------------------------------------------------------------------------------------------

DATE_TIME = XSD + "dateTime"
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][+-]?[0-9]+")

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
_OF_ONE_LINE = frozenset({v.TITLE, v.CHANNEL_TITLE, v.CREATOR, v.CONTRIBUTOR, v.NAME, v.SUBJECT, v.LABEL})
"""White space in their texts is a blank, as readers show it (RFC 4287, section 3.1.1.1)."""
_WHITE_SPACE = re.compile(r"[ \t\n\r\f]{2,}|[\t\n\r\f]")
_COORDINATES = frozenset(IRI(v.GEO + name) for name in ("lat", "long", "alt"))


def refined(item: Node, triples: Iterable[Triple]) -> Iterator[Triple]:
    """The triples with types; and for the item: a title, a description and a date from the properties that stand in
    for them, and its place."""
    texts: dict[IRI, list[Literal]] = {}
    for subject, predicate, value in triples:
        typed = _typed(predicate, value)
        yield Triple(subject, predicate, typed)
        if isinstance(typed, Literal) and (subject == item or predicate.value.startswith(_GMLS)):
            texts.setdefault(predicate, []).append(typed)
    for predicate, others in _STAND_IN.items():
        if predicate not in texts:
            other = next((values[0] for name in others if (values := texts.get(name))), None)
            if other is not None:
                yield Triple(item, predicate, _typed(predicate, other))
    for predicate, literal in places(texts):
        yield Triple(item, predicate, literal)


_STAND_IN = {
    v.CREATOR: (IRI(v.DC + "author"), IRI(_ITUNES + "author")),
    v.TITLE: (v.DC_TITLE,),
    v.DESCRIPTION: (v.DC_DESCRIPTION,),
    v.DATE: (v.ISSUED, v.MODIFIED, v.CREATED),
}


def _typed(predicate: IRI, value: Term) -> Term:
    """A literal with the type that the vocabulary fixes, if its text is valid. Titles, names and categories are one
    line."""
    if isinstance(value, Literal) and predicate in _OF_ONE_LINE and value.has_text:
        return replace(value, lexical=_WHITE_SPACE.sub(" ", value.lexical))
    if not isinstance(value, Literal) or len(value.lexical) > _LONGEST:
        return value
    if value.language:  # that of the texts around it
        said = Literal(value.lexical)
        return value if (typed := _typed(predicate, said)) == said else typed
    if predicate in INSTANTS:
        return _instant(value)
    if value.datatype != XSD_STRING:
        return value
    if predicate in DATES:
        text = value.lexical.strip()
        return Literal(text, XSD + "date") if _DAY.fullmatch(text) and parse_instant(text) else _instant(value)
    if predicate in NUMBERS:
        text = value.lexical.strip()
        patterns = {"integer": _INTEGER, "decimal": _DECIMAL, "double": _DOUBLE}
        kind = next((kind for kind, pattern in patterns.items() if pattern.fullmatch(text)), None)
        if kind is not None:
            return Literal(text, XSD + ("decimal" if kind == "integer" and predicate in _COORDINATES else kind))
    return value


def _instant(value: Literal) -> Literal:
    if value.datatype not in (XSD_STRING, DATE_TIME, XSD + "date"):
        return value
    instant = parse_instant(value.lexical)
    return value if instant is None else Literal(date_time(instant), DATE_TIME)

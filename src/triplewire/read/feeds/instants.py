"""Parses instants as feeds write them: RFC 3339, W3C date and time formats, RFC 822, and some that feedparser knows.

What a text says depends on nothing but the text. Of feedparser's formats those are left out that take the rest from the
clock or the zone of the machine, or read the beginning of a text alone. A day that no month has makes a text no
instant. So does a zone whose offset is not known, but in dates of RFC 822, where it is UTC (RFC 5322, section 4.3).
"""

from __future__ import annotations

import calendar
import datetime as dt
import re

from feedparser.datetimes.asctime import _parse_date_asctime
from feedparser.datetimes.greek import _parse_date_greek
from feedparser.datetimes.hungarian import _parse_date_hungarian
from feedparser.datetimes.korean import _parse_date_nate, _parse_date_onblog
from feedparser.datetimes.rfc822 import _parse_date_rfc822, day_names, months, timezone_names

_LONGEST = 100  # characters; a longer text is no instant
_ISO = re.compile(
    r"(?:[A-Za-z]{3},\s+)?([0-9]{4})(?:([-/])([0-9]{1,2})(?:\2([0-9]{1,2}))?|([0-9]{2})([0-9]{2}))?"
    r"(?:[Tt\s]\s*([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{1,2})(?:[.,]([0-9]+))?)?)?\s*(?:[Zz]|([+-][0-9]{2})(?::?([0-9]{2}))?)?|[Zz])?"
)
_WEEK = re.compile(r"[0-9]{4}-?W[0-9]{2}")
_ZONES = timezone_names | {"utc": 0, "wet": 0, "west": 1, "cet": 1, "cest": 2, "eet": 2, "eest": 3, "msk": 3}
_ZONE = re.compile(r"(?<=:[0-9])([0-9]?(?:[.,][0-9]+)?)\s*([^\W\d_]\S*)")
_NAMED_OFFSET = re.compile(r"(?:gmt|utc)([+-][0-9]{2}:?[0-9]{2})")
_COMMENT = re.compile(r"\([^()]*\)|\[[^\[\]]*\]\Z|(?<=[+-][0-9]{4})\s+[A-Za-z]+\s*\Z")
_TOKEN = re.compile(
    rf"(?:{'|'.join(sorted({*months, *day_names}))})[a-z]*[.,]?"
    r"|[0-9]{1,4},?|[0-9]{1,2}(?::[0-9]{1,2}){1,2}|[+-][0-9]{2}:?[0-9]{2}",
    re.IGNORECASE,
)


def parse_instant(text: str) -> dt.datetime | None:
    """The instant in UTC, or None where the text is none. Without a zone it is in UTC; a date means its midnight, a
    month or year the midnight in which it begins."""
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    try:
        text = _with_offset(_without_comments(text))
        if _WEEK.match(text):
            instant = dt.datetime.fromisoformat(text)
            return instant.astimezone(dt.UTC) if instant.tzinfo else instant.replace(tzinfo=dt.UTC)
        match = _ISO.fullmatch(text)
        if match is not None:
            return _iso(match)
        handlers = [_parse_date_greek, _parse_date_hungarian, _parse_date_nate, _parse_date_onblog]
        if all(map(_TOKEN.fullmatch, text.split())):
            handlers = [_parse_date_rfc822, _parse_date_asctime]
        parts = next(filter(None, (handler(text) for handler in handlers)), None)
        return dt.datetime.fromtimestamp(calendar.timegm(parts), dt.UTC) if parts else None
    except (ValueError, OverflowError, OSError, TypeError, LookupError):
        return None


def _without_comments(text: str) -> str:
    """The text without comments, which may lie in each other (RFC 5322, section 3.2.2), the name of a zone in brackets
    (RFC 9557), and the name of one behind its offset."""
    count = 1
    while count:
        text, count = _COMMENT.subn("", text)
    return text.strip()


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


def _iso(match: re.Match[str]) -> dt.datetime:
    """What an ISO 8601 text says. 24:00 is the next day's midnight, and a leap second the second after it.

    Raises `ValueError` for what no calendar or clock has.
    """
    year, month, day = int(match[1]), match[3] or match[5] or "1", match[4] or match[6] or "1"
    hour, minute, second, zone, zone_minute = (int(match[n] or 0) for n in (7, 8, 9, 11, 12))
    if match[7] and not (match[4] or match[6]):
        raise ValueError("a time without a day")
    if zone_minute > 59 or abs(zone) > 23:
        raise ValueError("an offset that no zone has")
    microsecond = int(f"{match[10] or '':0<6}"[:6])
    is_midnight = (hour, minute, second, microsecond) == (24, 0, 0, 0)
    written = dt.datetime(
        year, int(month), int(day), 0 if is_midnight else hour, minute, min(second, 59), microsecond, dt.UTC
    )
    if second > 60:
        raise ValueError("more seconds than a minute has")
    past = dt.timedelta(days=is_midnight, seconds=second == 60)
    sign = -1 if (match[11] or "").startswith("-") else 1
    return written + past - dt.timedelta(hours=zone, minutes=sign * zone_minute)


def date_time(instant: dt.datetime) -> str:
    """An instant in UTC as the lexical form of an xsd:dateTime."""
    text = instant.strftime("%m-%dT%H:%M:%S")
    fraction = f".{instant.microsecond:06d}".rstrip("0") if instant.microsecond else ""
    return f"{instant.year:04d}-{text}{fraction}Z"

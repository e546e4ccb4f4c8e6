"""Parses instants as feeds write them: RFC 3339, W3C date and time formats, RFC 822, and what feedparser knows."""

from __future__ import annotations

import calendar
import datetime as dt

from feedparser.datetimes import _parse_date

_LONGEST = 100  # characters; a longer text is no instant


def parse_instant(text: str) -> dt.datetime | None:
    """The instant in UTC, or None where the text is none. Without a zone it is in UTC; a date means its midnight.

    RFC 3339 is parsed here, since feedparser drops fractions of a second.
    """
    text = text.strip()
    if not text or len(text) > _LONGEST:
        return None
    try:
        instant = dt.datetime.fromisoformat(text)
        return instant.replace(tzinfo=dt.UTC) if instant.tzinfo is None else instant.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        pass
    try:
        parts = _parse_date(text)
        return dt.datetime.fromtimestamp(calendar.timegm(parts), dt.UTC) if parts else None
    except (ValueError, OverflowError, OSError, TypeError, IndexError):
        return None


def date_time(instant: dt.datetime) -> str:
    """An instant in UTC as the lexical form of an xsd:dateTime."""
    text = instant.strftime("%m-%dT%H:%M:%S")
    fraction = f".{instant.microsecond:06d}".rstrip("0") if instant.microsecond else ""
    return f"{instant.year:04d}-{text}{fraction}Z"

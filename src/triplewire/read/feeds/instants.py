"""Parses instants as feeds write them (RFC 3339, W3C date and time formats). feedparser parses those of RFC 822."""

from __future__ import annotations

import datetime as dt


def parse_instant(text: str) -> dt.datetime | None:
    """The instant in UTC, or None where the text is none. Without a zone it is in UTC; a date means its midnight."""
    try:
        instant = dt.datetime.fromisoformat(text.strip())
        return instant.replace(tzinfo=dt.UTC) if instant.tzinfo is None else instant.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None

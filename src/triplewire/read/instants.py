"""Instants as feeds write them (RFC 3339, W3C date and time formats), in UTC. RFC 822 is left to feedparser."""

from __future__ import annotations

import datetime as dt


def parse_instant(text: str) -> dt.datetime | None:
    """The instant in UTC, or None where the text is none. No zone means UTC, a date its midnight."""
    try:
        found = dt.datetime.fromisoformat(text.strip())
        return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None

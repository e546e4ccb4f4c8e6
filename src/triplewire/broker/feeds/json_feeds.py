"""Feeds in JSON: JSON Feed 1.1, and a JSON object a line."""

from __future__ import annotations

import json
from typing import Any

from triplewire.broker.events.event_log import MATCHED
from triplewire.broker.feeds.cleaning import clean
from triplewire.broker.feeds.entries import Entry, Feed, written
from triplewire.broker.publications.kept_contents import ORIGINS_IN_JSON


def json_feed(feed: Feed) -> str:
    """The feed in JSON Feed 1.1. What the broker knows beside it of an item is `_triplewire` in it."""
    said: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "description": feed.subtitle,
        "home_page_url": feed.address("html"),
        "feed_url": feed.address("json"),
    }
    if feed.older is not None:
        said["next_url"] = feed.address("json", before=feed.older)
    if feed.hub:
        said["hubs"] = [{"type": "WebSub", "url": feed.hub}]
    if feed.has_ended:
        said["expired"] = True
    said["items"] = [_item(entry) for entry in feed.entries]
    return clean(json.dumps(said, ensure_ascii=False, indent=1)) + "\n"


def _item(entry: Entry) -> dict[str, Any]:
    return {
        "id": entry.id,
        **({"url": entry.link} if entry.link else {}),
        "title": entry.title,
        "content_html": entry.markup,
        "date_published": written(entry.published),
        "date_modified": written(entry.updated),
        **({"tags": [entry.type]} if entry.type != MATCHED else {}),
        "_triplewire": dict(entry.more),
        ORIGINS_IN_JSON: " ".join(entry.origins),
    }


def ndjson(feed: Feed) -> str:
    """The entries of the page, the newest first, as the lines of `/events`, each with its id in feeds and with other
    reports of its story."""
    lines = []
    for entry in feed.entries:
        line = {**entry.more, "entry": entry.id, "others": list(entry.others)}
        lines.append(clean(json.dumps(line, ensure_ascii=False)) + "\n")
    return "".join(lines)

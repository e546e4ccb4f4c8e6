"""Subscriptions and sources as outlines (OPML 2.0): written, and read again.

An outline of a subscription has, in a namespace of ours, what it is registered with; other programs read it as a feed,
and keep those attributes. An outline without them is a feed of somebody else: a source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Row

from triplewire.broker.broker import Wanted
from triplewire.broker.feeds.cleaning import element, one_line
from triplewire.broker.feeds.entries import Address, Feed
from triplewire.broker.subscriptions.followed import PAUSED
from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.sources.lists import address_of, outlines

NAMESPACE = "urn:triplewire:opml:"
_OURS = NAMESPACE + " "  # as names of attributes begin where they are read


@dataclass(frozen=True)
class Outline:
    """An outline of a list: a feed (`url`), or a subscription (`wanted`). `line`: where it is in the document."""

    line: int
    title: str
    url: str
    wanted: Wanted | None = None
    is_paused: bool = False


def of_feed(feed: Feed) -> str:
    """A list of one feed, without its query: the address of a feed gives the right to read it, and no other."""
    return _document(feed.title, [_outline(feed.title, feed.address)])


def of_owner(subscriptions: Iterable[tuple[Row[Any], Address]], sources: Iterable[Row[Any]]) -> str:
    """A list of an owner's subscriptions, with all they are registered with, and of sources that are polled."""
    lines = [
        _outline(
            row.title or row.id,
            address,
            tw_id=row.id,
            tw_language=row.language,
            tw_query=row.query,
            **({"tw_title": row.title} if row.title else {}),
            **({"tw_prefixes": row.prefixes} if row.prefixes else {}),
            **({"tw_oncePerStory": "true"} if row.once_per_story else {}),
            **({"tw_state": PAUSED} if row.state == PAUSED else {}),
        )
        for row, address in subscriptions
    ]
    for row in sources:
        title = one_line(row.title or row.url)
        lines.append(element("outline", type="rss", text=title, title=title, xmlUrl=row.url))
    return _document("Subscriptions of Triplewire", lines)


def _outline(title: str, address: Address, **more: str) -> str:
    title = one_line(title)
    named = {"text": title, "title": title, "xmlUrl": address("atom"), "htmlUrl": address("html")}
    return element("outline", type="rss", **named, **more)


def _document(title: str, lines: Iterable[str]) -> str:
    head = f'<?xml version="1.0" encoding="utf-8"?>\n<opml version="2.0" xmlns:tw="{NAMESPACE}">'
    return "\n".join([head, f"<head>{element('title', title)}</head>", "<body>", *lines, "</body>", "</opml>\n"])


def read_outlines(data: bytes, settings: Settings, seconds: float) -> Iterator[Outline | ReadError]:
    """The outlines of a list that have a feed or a subscription; in place of each that cannot be read, why.
    `seconds`: how long subscriptions are to be valid. Raises `ReadError` where it is no list."""
    for line, attributes in outlines(data, settings):
        query, url = attributes.get(_OURS + "query"), address_of(attributes)
        title = attributes.get("title") or attributes.get("text") or ""
        if query is None:
            if url:
                yield Outline(line, title, url)
            continue
        try:
            wanted = _wanted(query, attributes, seconds)
        except ReadError as error:
            error.line = line
            yield error
        else:
            yield Outline(line, title, url, wanted, attributes.get(_OURS + "state") == PAUSED)


def _wanted(query: str, attributes: Mapping[str, str], seconds: float) -> Wanted:
    text = attributes.get(_OURS + "prefixes", "{}")
    try:
        prefixes = json.loads(text)
    except (ValueError, RecursionError):
        prefixes = None
    if not isinstance(prefixes, dict) or not all(isinstance(value, str) for value in prefixes.values()):
        raise ReadError("its prefixes are no JSON object of texts", remedy='write {"ex": "http://example.org/"}')
    return Wanted(
        query,
        attributes.get(_OURS + "language", "sparql"),
        id=attributes.get(_OURS + "id", ""),
        seconds=seconds,
        prefixes=prefixes or None,
        title=attributes.get(_OURS + "title", ""),
        once_per_story=attributes.get(_OURS + "oncePerStory") == "true",
    )

"""Reads JSON Feed 1 and 1.1 (jsonfeed.org/version/1.1). How items become triples: `triplewire.read.feeds.items`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urljoin

from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.read import guard
from triplewire.read.feeds.instants import parse_instant
from triplewire.read.feeds.items import Channel, Feed, Item, publications
from triplewire.read.feeds.limits import check_limits
from triplewire.read.feeds.markup import text_of_html
from triplewire.read.process.frames import Request


def read_json_feed(request: Request) -> list[Publication]:
    """The publications of a JSON Feed. Raises `ReadError` where it has no list of items."""
    _, value = guard.check_json(request.data, "JSON Feed", request.settings)
    items = value.get("items", []) if isinstance(value, dict) else None
    if not isinstance(items, list):
        raise ReadError("a JSON Feed is an object with a list of items")
    address = _text(value, "feed_url")
    base = request.base or address
    notes = tuple(
        f"item {n} is no object and is left out" for n, item in enumerate(items, 1) if not isinstance(item, dict)
    )
    feed = Feed(
        Channel(address, _text(value, "title"), _text(value, "home_page_url"), _text(value, "description")),
        [_item(item, value, base) for item in items if isinstance(item, dict)],
        notes,
    )
    result = publications(feed, request.document, request.source, request.split, request.settings)
    check_limits(result, request.settings)
    return result


def _text(value: Any, key: str) -> str:
    """A string member, or a number as text (an item's id may be one); "" for anything else."""
    member = value.get(key) if isinstance(value, dict) else None
    if isinstance(member, int | float) and not isinstance(member, bool):
        return str(member)
    return member.strip() if isinstance(member, str) else ""


def _list(value: Any, key: str) -> list[Any]:
    """A member that is a list; an empty one for anything else."""
    member = value.get(key) if isinstance(value, dict) else None
    return member if isinstance(member, list) else []


def _item(item: dict[str, Any], feed: dict[str, Any], base: str) -> Item:
    markup, text, summary = _text(item, "content_html"), _text(item, "content_text"), _text(item, "summary")
    link = _text(item, "url") or _text(item, "external_url")
    authors = _list(item, "authors") or [item.get("author")]
    if not any(_text(author, "name") for author in authors):
        authors = _list(feed, "authors") or [feed.get("author")]
    return Item(
        id=_text(item, "id"),
        link=_absolute(base, link) if link else "",
        title=_text(item, "title"),
        description=summary or text or text_of_html(markup).strip(),
        contents=[markup] if markup else [text] if text and summary else [],
        creators=[_text(author, "name") for author in authors if _text(author, "name")],
        instant=parse_instant(_text(item, "date_published")) or parse_instant(_text(item, "date_modified")),
        subjects=[("", tag.strip()) for tag in _list(item, "tags") if isinstance(tag, str) and tag.strip()],
        language=_text(item, "language") or _text(feed, "language"),
        enclosures=[_absolute(base, _text(a, "url")) for a in _list(item, "attachments") if _text(a, "url")],
    )


def _absolute(base: str, address: str) -> str:
    """The address, resolved against the base."""
    try:
        return urljoin(base, address)
    except ValueError:  # a malformed host, as in `http://[`
        return address

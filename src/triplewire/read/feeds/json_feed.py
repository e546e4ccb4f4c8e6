"""Reads JSON Feed 1 and 1.1 (jsonfeed.org/version/1.1). How items become triples: `triplewire.read.feeds.items`.

The table of members is in `docs/feeds.md`. A member without a row, or of another type than its row takes, becomes a
property below `vocabulary.JSON_FEED`, with the type that JSON gives its value.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from triplewire.errors import ReadError
from triplewire.model.terms import IRI, RDF, XSD, Literal
from triplewire.read import charsets, guard
from triplewire.read.decoded import Decoded, Problem, warning
from triplewire.read.feeds import vocabulary as v
from triplewire.read.feeds.items import Channel, Draft, Feed, Item, absolute, publications, resource
from triplewire.read.feeds.markup import text_of_html
from triplewire.read.names import legal
from triplewire.read.process.frames import Request
from triplewire.read.rdf.split import NOTE, replaced

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _is_text(member: Any) -> bool:
    """Is it a string, or a number, as an item's id may be?"""
    return isinstance(member, str | int | float) and not isinstance(member, bool)


def _all(is_part: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """What tells whether a member is a list of such parts, or one of them where a list is meant. `null` stands for
    none."""
    return lambda member: all(part is None or is_part(part) for part in _parts(member))


def _is_object(member: Any) -> bool:
    return isinstance(member, dict)


def _is_person(member: Any) -> bool:
    """Is it a person, or the name of one?"""
    return _is_object(member) or _is_text(member)


_Rows = Mapping[str, Callable[[Any], bool]]
"""The members that have a row in the table, each with what tells whether it is of the type that the row takes."""

_PEOPLE: _Rows = {"author": _is_person, "authors": _all(_is_person)}
_CHANNEL_ROWS: _Rows = {
    **dict.fromkeys(("version", "title", "home_page_url", "feed_url", "description", "language"), _is_text),
    "items": lambda member: isinstance(member, list),
    **_PEOPLE,
}
_ITEM_ROWS: _Rows = {
    **dict.fromkeys(("url", "external_url", "title", "content_html", "content_text", "summary"), _is_text),
    **dict.fromkeys(("date_published", "date_modified", "language"), _is_text),
    **_PEOPLE,
    "id": lambda member: True,
    "tags": _all(_is_text),
    "attachments": _all(lambda part: bool(_text(part, "url"))),
}
_PERSON_ROWS: _Rows = dict.fromkeys(("name", "url"), _is_text)
_ATTACHMENT_ROWS: _Rows = dict.fromkeys(("url", "mime_type", "size_in_bytes", "title"), _is_text)
_NOT_FINITE = {math.inf: "INF", -math.inf: "-INF"}  # of JSON numbers that no double is as large as


def read_json_feed(request: Request) -> Decoded:
    """The publications of a JSON Feed. Raises `ReadError` where it has no list of items."""
    decoded = charsets.decoded(request.data)
    problems = decoded.problems
    data, value = guard.check_json(decoded.text.encode("utf-8", "replace"), "JSON Feed", request.settings)
    if _SURROGATE.search(data):
        written, value = json.dumps(value), replaced(value)
        if json.dumps(value) != written:
            problems.append(warning(NOTE))
    items = value.get("items") if isinstance(value, dict) else None
    if not isinstance(items, list):
        what = "a JSON Feed is an object with a list of items, and this one has none"
        raise ReadError(what, line=1, column=1, remedy='an empty feed has "items": []')
    reading = _Reading(value, request)
    for number, item in enumerate(items, 1):
        if not isinstance(item, dict):
            said = json.dumps(item, ensure_ascii=False)[:60]
            error = ReadError(f"item {number} is no object, but {said}", remedy="make it an object with an id")
            problems.append(Problem(error, f"{request.document}#{number}"))
    read = [reading.item(item, number) for number, item in enumerate(items, 1) if isinstance(item, dict)]
    feed = Feed(reading.channel(), read)
    return publications(feed, request, problems)


def _text(value: Any, key: str) -> str:
    """A string member, or a number as text; "" for anything else."""
    member = value.get(key) if isinstance(value, dict) else None
    return str(member).strip() if _is_text(member) else ""


def _parts(member: Any) -> list[Any]:
    """The parts of a list; where a list is meant, anything else is one part. `null` is none."""
    return [part for part in (member if isinstance(member, list) else [member]) if part is not None]


def _id(item: dict[str, Any]) -> str:
    """The id of an item, which is a string, whatever type it has (version 1.1, "id")."""
    member = item.get("id")
    return _text(item, "id") if member is None or _is_text(member) else json.dumps(member, ensure_ascii=False)


class _Reading:
    """The reading of one JSON Feed."""

    def __init__(self, value: dict[str, Any], request: Request) -> None:
        self._value = value
        self._as_written = request.as_written
        base = request.base or _text(value, "feed_url")
        self._absolute = partial(absolute, base if base.startswith(("http://", "https://")) else "")

    def channel(self) -> Channel:
        """The feed as a whole."""
        value, about = self._value, Draft()
        about.text(v.CHANNEL_DESCRIPTION, _text(value, "description"))
        about.text(v.LANGUAGE, _text(value, "language"))
        self._people(about, value)
        self._others(about, value, _CHANNEL_ROWS)
        return Channel(_text(value, "feed_url"), _text(value, "title"), _text(value, "home_page_url"), about)

    def item(self, item: dict[str, Any], number: int) -> Item:
        """The item of that number."""
        about = Draft()
        link = self._absolute(_text(item, "url") or _text(item, "external_url"))
        about.text(v.TITLE, _text(item, "title"))
        about.text(v.LINK, link)
        if _text(item, "url") and _text(item, "external_url"):
            about.say(IRI(v.RELATION + "related"), resource(self._absolute(_text(item, "external_url"))))
        markup, text, summary = (_text(item, key) for key in ("content_html", "content_text", "summary"))
        plain = markup if self._as_written else text_of_html(markup).strip()
        about.text(v.DESCRIPTION, summary or text or plain)
        about.text(v.ENCODED, markup)
        if text and (summary or markup) and text != summary:
            about.text(v.ENCODED, text)
        self._people(about, item)
        if not about.first(v.CREATOR):
            self._people(about, self._value)
        about.text(v.DATE, _text(item, "date_published"))
        about.text(v.MODIFIED, _text(item, "date_modified"))
        for tag in filter(_is_text, _parts(item.get("tags"))):
            about.text(v.SUBJECT, str(tag).strip())
        about.text(v.LANGUAGE, _text(item, "language") or _text(self._value, "language"))
        for attachment in _parts(item.get("attachments")):
            self._attachment(about, attachment)
        self._others(about, item, _ITEM_ROWS)
        return Item(_id(item), link, about, number)

    def _people(self, about: Draft, value: dict[str, Any]) -> None:
        for author in _parts(value.get("authors")) or _parts(value.get("author")):
            name = str(author).strip() if _is_text(author) else _text(author, "name")
            page = _text(author, "url")
            others = Draft()
            self._others(others, author, _PERSON_ROWS)
            about.text(v.CREATOR, name or page)
            if page or others.said:
                others.text(v.NAME, name)
                if page:
                    others.say(v.HOMEPAGE, resource(self._absolute(page)))
                about.say(v.AGENT, others)

    def _attachment(self, about: Draft, attachment: Any) -> None:
        address = self._absolute(_text(attachment, "url"))
        if not address:
            return
        node = Draft()
        node.text(v.ENCLOSURE_LENGTH, _text(attachment, "size_in_bytes"))
        node.text(v.ENCLOSURE_TYPE, _text(attachment, "mime_type"))
        node.text(v.CHANNEL_TITLE, _text(attachment, "title"))
        self._others(node, attachment, _ATTACHMENT_ROWS)
        about.link(v.ENCLOSURE, address, node)

    def _others(self, about: Draft, value: Any, rows: _Rows) -> None:
        """The members without a row of their own, and those of another type than theirs takes."""
        for key, member in value.items() if isinstance(value, dict) else ():
            has_row = key in rows and rows[key](member)
            if not has_row and member is not None and member != "":
                about.say(IRI(legal(v.JSON_FEED + key)), self._literal(member))

    def _literal(self, member: Any) -> Literal:
        """A value with its type: JSON says what a number, a truth value and a string are."""
        if isinstance(member, str):
            return Literal(member.strip())
        text = _NOT_FINITE.get(member) if isinstance(member, float) else None
        text = text or json.dumps(member, ensure_ascii=False)
        if self._as_written:
            return Literal(text)
        kind = {bool: XSD + "boolean", int: XSD + "integer", float: XSD + "double"}.get(type(member), RDF + "JSON")
        return Literal(text, kind)

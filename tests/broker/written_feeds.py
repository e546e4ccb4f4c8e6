"""Feeds of the broker that tests make, and what programs find in them when they read them again."""

from __future__ import annotations

import json
import re
import time
from calendar import timegm
from collections.abc import Sequence
from html import unescape
from html.parser import HTMLParser
from typing import NamedTuple

import feedparser
import nh3

from triplewire.broker.feeds.entries import Entry, Feed
from triplewire.broker.feeds.formats import FORMATS

SAFE = nh3.ALLOWED_TAGS - {"img", "map", "area"} | {"main"}
"""Elements that run nothing, ask no server and take nothing in."""


def feed(entries: Sequence[Entry], title: str = "A feed") -> Feed:
    """A feed of these entries."""

    def address(form: str, before: int | None = None) -> str:
        return f"http://broker.example/s/1-key.{form}" + (f"?before={before}" if before else "")

    return Feed("urn:uuid:0", title, "All there is.", 0.0, address, entries, "http://broker.example/hub")


class Read(NamedTuple):
    """What a program reads of an entry; `published` and `updated` in whole seconds."""

    id: str
    title: str
    published: int
    updated: int
    markup: str


def with_feedparser(text: str) -> list[Read]:
    """The entries of a feed in XML, as feedparser has them; of a title that it takes as HTML, what that shows."""
    found = feedparser.parse(text.encode(), sanitize_html=False)
    assert not found.bozo, found.bozo_exception
    return [
        Read(
            entry.id,
            unescape(entry.title) if entry.title_detail.type == "text/html" else entry.title,
            timegm(entry.published_parsed),
            timegm(entry.updated_parsed),
            entry.content[0].value if "content" in entry else entry.get("summary", ""),
        )
        for entry in found.entries
    ]


def with_json(text: str) -> list[Read]:
    """The entries of a JSON Feed."""
    return [
        Read(
            item["id"],
            item["title"],
            *(_seconds(item[name]) for name in ("date_published", "date_modified")),
            item["content_html"],
        )
        for item in json.loads(text)["items"]
    ]


def _seconds(text: str) -> int:
    return timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ"))


class _Elements(HTMLParser):
    """The elements of a text that is taken as HTML, and the headings in it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[str] = []
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.found.append((tag, dict(attrs)))
        if tag == "h2":
            self.headings.append("")
            self._depth = 1

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if tag == "h2":
            self._depth = 0

    def handle_data(self, data: str) -> None:
        """Text."""
        if self._depth:
            self.headings[-1] += data


def elements(text: str) -> _Elements:
    """A text as HTML."""
    parser = _Elements()
    parser.feed(text)
    parser.close()
    return parser


def dangers(text: str) -> list[str]:
    """What a text would do where it is taken as HTML, beside showing text, tables and links to the web."""
    found: list[str] = []
    for tag, attributes in elements(text).found:
        if tag not in SAFE:
            found.append(tag)
        for name, value in attributes.items():
            address = re.sub(r"[\x00-\x20]", "", value or "").lower()
            if name.startswith("on") or name in ("style", "src", "srcset", "action", "background"):
                found.append(f"{tag} {name}")
            elif name == "href" and not address.startswith(("http://", "https://", "mailto:")):
                found.append(f"{tag} {value}")
    return found


def dangers_of_page(text: str) -> list[str]:
    """The same of a page, which may have no more elements of other kinds than a page without entries."""
    own, found = (
        [tag for tag, _ in elements(page).found if tag not in SAFE] for page in (FORMATS["html"].write(feed([])), text)
    )
    return [danger for danger in dangers(text) if danger not in own] + ([] if own == found else [f"{found}"])

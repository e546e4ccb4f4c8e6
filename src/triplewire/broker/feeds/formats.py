"""The formats of a feed, by the end of its address.

They are Atom (RFC 4287), RSS 2.0 and RSS 1.0, with the pages of RFC 5005; JSON Feed 1.1; a plain page, which needs no
script; OPML; and a JSON object a line. What is markup is in `templates`.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from email.utils import format_datetime
from functools import partial
from typing import Any, NamedTuple

from triplewire.broker.events.event_log import MATCHED
from triplewire.broker.feeds import outlines
from triplewire.broker.feeds.cleaning import TEMPLATES, clean, rendered
from triplewire.broker.feeds.entries import Entry, Feed, instant, written
from triplewire.broker.feeds.rdf_nodes import nodes
from triplewire.broker.publications.kept_contents import ORIGINS_IN_JSON, TERMS

TEMPLATES.filters |= {"written": written, "triples": nodes, "rfc_822": lambda at: format_datetime(instant(at))}

_STYLE = rendered("page.css")
_HASH = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
CONTENT_SECURITY = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of the plain page: no script, no picture, this style alone."""


class Format(NamedTuple):
    """What people call a format, the media type, and what writes it."""

    name: str
    media_type: str
    write: Callable[[Feed], str]


def links(feed: Feed, form: str) -> Iterator[tuple[str, str, str]]:
    """Where a page of a feed in a format leads to: relation, address, media type ("" for none)."""
    kind = FORMATS[form].media_type
    yield "self", feed.address(form, before=feed.before), kind
    if feed.hub:
        yield "hub", feed.hub, ""
    if form != "html":
        yield "alternate", feed.address("html", before=feed.before), FORMATS["html"].media_type
    if feed.before is not None:
        yield "current", feed.address(form), kind
    if feed.older is not None:
        yield "prev-archive", feed.address(form, before=feed.older), kind
        yield "next", feed.address(form, before=feed.older), kind


def _of_template(feed: Feed, form: str, template: str) -> str:
    attributes = [
        {"rel": relation, "href": address, "type": kind.partition(";")[0] or None}
        for relation, address, kind in links(feed, form)
    ]
    media_types = {name: of.media_type.partition(";")[0] for name, of in FORMATS.items()}
    return rendered(template, feed=feed, links=attributes, terms=TERMS, style=_STYLE, media_types=media_types)


def _json_feed(feed: Feed) -> str:
    """What the broker knows beside JSON Feed of an item is `_triplewire` in it."""
    said: dict[str, Any] = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": feed.title,
        "description": feed.subtitle,
        "home_page_url": feed.address("html"),
        "feed_url": feed.address("json"),
        **({"next_url": feed.address("json", before=feed.older)} if feed.older is not None else {}),
        **({"hubs": [{"type": "WebSub", "url": feed.hub}]} if feed.hub else {}),
        **({"expired": True} if feed.has_ended else {}),
        "items": [_item(entry) for entry in feed.entries],
    }
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


def _lines(feed: Feed) -> str:
    """The entries of the page, the newest first, as the lines of `/events`, each with its id in feeds and with other
    reports of its story."""
    lines = ({**entry.more, "entry": entry.id, "others": list(entry.others)} for entry in feed.entries)
    return "".join(clean(json.dumps(line, ensure_ascii=False)) + "\n" for line in lines)


def _markup(form: str, template: str, name: str, media_type: str) -> Format:
    return Format(name, f"{media_type}; charset=utf-8", partial(_of_template, form=form, template=template))


FORMATS: Mapping[str, Format] = {
    "atom": _markup("atom", "atom.xml", "Atom", "application/atom+xml"),
    "rss": _markup("rss", "rss.xml", "RSS 2.0", "application/rss+xml"),
    "rdf": _markup("rdf", "rdf.xml", "RSS 1.0", "application/rdf+xml"),
    "json": Format("JSON Feed", "application/feed+json", _json_feed),
    "html": _markup("html", "page.html", "HTML", "text/html"),
    "opml": Format("OPML", "text/x-opml; charset=utf-8", outlines.of_feed),
    "ndjson": Format("JSON lines", "application/x-ndjson", _lines),
}

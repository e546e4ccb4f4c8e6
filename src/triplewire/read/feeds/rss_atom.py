"""Reads RSS and Atom with feedparser, which gets a stream of bytes and no address, so it fetches nothing.

Items of RSS 1.0 are RDF already and keep their own triples. Where their XML is ill-formed, or items share a subject,
they are read by feedparser as well, and a note says so. Everything here runs in the parsing process.
"""

from __future__ import annotations

import calendar
import dataclasses
import datetime as dt
import io
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import feedparser
from feedparser.encodings import convert_to_utf8
from feedparser.sanitizer import replace_doctype

from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.model.references import is_absolute
from triplewire.model.terms import IRI, RDF_TYPE, Literal, Node, Triple
from triplewire.read import guard
from triplewire.read.feeds.elements import Elements, is_unknown, item_elements, person
from triplewire.read.feeds.instants import parse_instant
from triplewire.read.feeds.items import DATE, ITEM, LINK, Channel, Feed, Item, publications
from triplewire.read.feeds.limits import check_limits
from triplewire.read.feeds.markup import text_of_html
from triplewire.read.guard.xml_encoding import to_utf8
from triplewire.read.process.frames import Request
from triplewire.read.rdf.attributes import qualified
from triplewire.read.rdf.parse import parse
from triplewire.read.rdf.split import by_subject, closure
from triplewire.read.rdf.surrogates import NOTE, replaced_in_xml
from triplewire.read.sniff import ascii_view

_DECLARATION = b"<?xml version='1.0' encoding='utf-8'?>\n"
_HTML = {"text/html", "application/xhtml+xml"}


def read_feed(request: Request, *notes: str) -> list[Publication]:
    """The publications of an RSS 0.9x, RSS 2.0 or Atom feed. Raises `ReadError` if it is none."""
    data, parsed, ill, repaired = _parse(request)
    if not (parsed["version"] or parsed["entries"] or parsed["feed"]):
        raise ReadError(
            "the XML is neither RDF nor a feed" + (f": {ill}" if ill else ""), remedy="give RSS, Atom or RDF/XML"
        )
    entries = parsed["entries"]
    elements = item_elements(data) if not ill else None
    if elements is None or len(elements) != len(entries):
        elements = [Elements(_other_keys(entry, parsed.get("namespaces", {}))) for entry in entries]
    feed = Feed(
        _channel(parsed["feed"], request.document),
        [_item(entry, parsed["feed"], own) for entry, own in zip(entries, elements, strict=True)],
        notes + ((f"ill-formed feed: {ill}",) if ill else ()) + repaired,
    )
    result = publications(feed, request.document, request.source, request.split, request.settings)
    check_limits(result, request.settings)
    return result


def read_rss_1(request: Request) -> list[Publication]:
    """The publications of an RSS 1.0 feed: each item with its own triples, closed over blank nodes."""
    try:
        triples, notes = _rss_1_triples(request)
    except ReadError as error:
        if error.remedy.startswith("raise "):
            raise
        return read_feed(request, f"not RDF/XML, so read as a plain feed: {error}")
    if request.split == "subject":
        result = by_subject(triples, request.document, request.source, request.settings)
        return [dataclasses.replace(publication, notes=notes) for publication in result]
    if request.split == "document":
        result = [Publication(request.document, tuple(dict.fromkeys(triples)), request.source, notes=notes)]
        check_limits(result, request.settings)
        return result
    items = list(dict.fromkeys(t.subject for t in triples if t.predicate == RDF_TYPE and t.object == ITEM))
    parsed = _parse(request).feed
    if len(items) != len(parsed["entries"]):
        return read_feed(request, "the items are not told apart by rdf:about, so read as a plain feed")
    about: dict[Node, list[Triple]] = defaultdict(list)
    for triple in dict.fromkeys(triples):
        about[triple.subject].append(triple)
    result = [
        Publication(
            _rss_1_id(item, about, f"{request.document}#{number}"),
            closure(item, about),
            request.source,
            _rss_1_instant(item, about) or _instant(entry),
            notes=notes,
        )
        for number, (item, entry) in enumerate(zip(items, parsed["entries"], strict=True), start=1)
    ]
    check_limits(result, request.settings)
    return result


def _rss_1_triples(request: Request) -> tuple[list[Triple], tuple[str, ...]]:
    """The triples of the feed, and notes on what was repaired. Early RSS 1.0 writes `resource` for `rdf:resource`;
    RDF/XML, 6.1.4 allows to read it so."""
    written = to_utf8(request.data)
    repaired = replaced_in_xml(written)
    data = qualified(guard.check_rdf_xml(repaired, request.settings))
    base = request.base or request.document
    triples = [triple for _, triple in parse(data, request.syntax, base, request.settings)]
    return triples, (NOTE,) if repaired != written else ()


def _rss_1_id(item: Node, about: Mapping[Node, list[Triple]], otherwise: str) -> str:
    """The id of an item: its IRI, the text of its rss:link, or `otherwise`."""
    if isinstance(item, IRI):
        return item.value
    links = [t.object.lexical for t in about[item] if t.predicate == LINK and isinstance(t.object, Literal)]
    return links[0].strip() if links and links[0].strip() else otherwise


def _rss_1_instant(item: Node, about: Mapping[Node, list[Triple]]) -> dt.datetime | None:
    """The instant in dc:date. (feedparser would prefer dcterms:modified.)"""
    dates = [t.object.lexical for t in about[item] if t.predicate == DATE and isinstance(t.object, Literal)]
    return parse_instant(dates[0]) if dates else None


class _Parsed(NamedTuple):
    """A feed as feedparser reads it."""

    data: bytes  # the guarded feed in UTF-8
    feed: Any  # the result of feedparser
    ill: str  # why it is ill-formed, "" if it is not
    repaired: tuple[str, ...]  # notes on repairs before feedparser saw it


def _parse(request: Request) -> _Parsed:
    """Transcode, guard and parse a feed. Raises `ReadError`."""
    result: dict[str, Any] = {}
    data = convert_to_utf8({}, request.data, result)
    if data.startswith(_DECLARATION) and not ascii_view(request.data).startswith(b"<?xml"):
        data = data.removeprefix(_DECLARATION)  # a line that feedparser adds, which would shift all positions
    written, data = data, replaced_in_xml(data)  # feedparser fails as a whole on a reference to a surrogate
    guard.check_feed(data, replace_doctype(data)[1], request.settings)
    known = bool(result.get("encoding"))
    headers = {"content-type": "application/xml; charset=utf-8"} if known else {}
    base = request.base or request.document
    if known and base.startswith(("http://", "https://")):
        headers["content-location"] = base
    parsed = feedparser.parse(
        io.BytesIO(data), response_headers=headers, sanitize_html=False, resolve_relative_uris=False
    )
    ill = result.get("bozo_exception") or (parsed.get("bozo_exception") if parsed.get("bozo") else None)
    # the position that an XML error begins with is one in feedparser's copy, not in the document
    reason = re.sub(r"^<unknown>:\d+:\d+: ", "", " ".join(str(ill).split())) if ill else ""
    return _Parsed(data, parsed, reason, (NOTE,) if data != written else ())


def _text(entry: dict[str, Any], key: str) -> str:
    """A text of feedparser, "" if absent. `dict.get`, because FeedParserDict's own `get` substitutes other keys."""
    value = dict.get(entry, key)
    return value.strip() if isinstance(value, str) else ""


def _list(entry: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = dict.get(entry, key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _plain(entry: dict[str, Any], key: str) -> tuple[str, str]:
    """A text construct: as written, and without its markup where it is HTML."""
    raw = _text(entry, key)
    detail = dict.get(entry, key + "_detail")
    kind = detail.get("type", "") if isinstance(detail, dict) else "text/html"
    return raw, text_of_html(raw).strip() if kind in _HTML else raw


def _channel(feed: dict[str, Any], document: str) -> Channel:
    own = [_text(link, "href") for link in _list(feed, "links") if _text(link, "rel") == "self"]
    candidates = [_text(feed, "id"), *own, document]
    return Channel(
        next(c for c in candidates if is_absolute(c)),
        _plain(feed, "title")[1],
        _text(feed, "link"),
        _plain(feed, "subtitle")[1],
    )


def _item(entry: dict[str, Any], feed: dict[str, Any], elements: Elements) -> Item:
    raw, description = _plain(entry, "summary")
    contents = [
        _text(content, "value")
        for content in _list(entry, "content")
        if content.get("type") != "text/plain" or _text(content, "value") != description
    ]
    if raw not in (description, *contents):
        contents.append(raw)  # the markup of the summary, which rss:description lacks
    title = dict.get(entry, "title_detail")
    said = title.get("language") if isinstance(title, dict) else None
    return Item(
        id=_text(entry, "id"),
        link=_link(entry),
        title=_plain(entry, "title")[1],
        description=description,
        contents=[content for content in contents if content],
        creators=elements.authors or _creators(entry),
        instant=_instant(entry),
        subjects=[(_text(tag, "scheme"), _text(tag, "term")) for tag in _list(entry, "tags") if _text(tag, "term")],
        language=_text(entry, "language") or (said if isinstance(said, str) else "") or _text(feed, "language"),
        enclosures=[
            _text(link, "href")
            for link in _list(entry, "links")
            if _text(link, "rel") == "enclosure" and _text(link, "href")
        ],
        others=elements.unknown,
    )


def _link(entry: dict[str, Any]) -> str:
    """The item's link. feedparser gives the guid instead of a missing link, even if it is no address."""
    link = _text(entry, "link")
    return "" if link == _text(entry, "id") and not link.startswith(("http:", "https:", "ftp:")) else link


def _creators(entry: dict[str, Any]) -> list[str]:
    names = [_text(author, "name") or _text(author, "email") for author in _list(entry, "authors")]
    return [person(name) for name in names or [_text(entry, "author")] if name]


def _instant(entry: dict[str, Any]) -> dt.datetime | None:
    """When the item was published, else updated, else created.

    Published comes first because RSS states nothing else, and an item must be the same in every feed syntax. RFC 3339
    is parsed here, since feedparser drops fractions of a second. Other formats are parsed by feedparser, in UTC.
    """
    for key in ("published", "updated", "created"):
        instant = parse_instant(_text(entry, key))
        if instant is not None:
            return instant
        value = dict.get(entry, key + "_parsed")
        if value:
            try:
                return dt.datetime.fromtimestamp(calendar.timegm(value), dt.UTC)
            except (ValueError, OverflowError, OSError, TypeError):
                continue
    return None


def _other_keys(entry: dict[str, Any], namespaces: Mapping[str, str]) -> list[tuple[str, str]]:
    """The unknown elements of an ill-formed feed, which feedparser keeps under `prefix_localname` keys."""
    elements = []
    for key, value in dict.items(entry):
        prefix, _, local = key.partition("_")
        namespace = namespaces.get(prefix)
        if local and namespace and isinstance(value, str) and value.strip() and is_unknown(namespace, local):
            elements.append((namespace + local, value.strip()))
    return elements

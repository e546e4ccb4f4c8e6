"""Feeds in XML: Atom (RFC 4287), RSS 2.0 and RSS 1.0, with the pages of RFC 5005."""

from __future__ import annotations

from collections.abc import Iterator
from email.utils import format_datetime

from triplewire.broker.events.event_log import MATCHED
from triplewire.broker.feeds.cleaning import element, for_rss, quoted
from triplewire.broker.feeds.entries import Entry, Feed, instant, written
from triplewire.broker.feeds.rdf_nodes import nodes
from triplewire.broker.publications.kept_contents import TERMS
from triplewire.model.namespaces import PREDECLARED, RSS

_HEAD = '<?xml version="1.0" encoding="utf-8"?>'
_OURS = f'xmlns:tw="{TERMS}"'
_ATOM = f'xmlns{{}}="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0" {_OURS}'
_PREFIXES = " ".join(f'xmlns:{prefix}="{PREDECLARED[prefix]}"' for prefix in ("rdf", "dc", "dcterms", "content"))
_RDF = f'xmlns="{RSS}" {_PREFIXES} {_OURS}'


def atom(feed: Feed) -> str:
    """The feed in Atom."""
    lines = [
        f"{_HEAD}\n<feed {_ATOM.format('')}>",
        element("id", feed.id),
        element("title", feed.title),
        element("subtitle", feed.subtitle),
        element("updated", written(feed.updated)),
        "<author><name>Triplewire</name></author>",
        *_links(feed, "atom", "link"),
    ]
    for entry in feed.entries:
        lines += ["<entry>", element("id", entry.id), element("title", entry.title, type="text")]
        if entry.link:
            lines.append(element("link", rel="alternate", href=entry.link))
        lines += [element("published", written(entry.published)), element("updated", written(entry.updated))]
        if entry.type != MATCHED:
            lines.append(element("category", term=entry.type))
        lines += [element("content", entry.markup, type="html"), *_origins(entry), "</entry>"]
    return "\n".join([*lines, "</feed>\n"])


def rss(feed: Feed) -> str:
    """The feed in RSS 2.0."""
    lines = [
        f'{_HEAD}\n<rss version="2.0" {_ATOM.format(":atom")}>\n<channel>',
        element("title", for_rss(feed.title)),
        element("link", feed.address("html")),
        element("description", for_rss(feed.subtitle)),
        element("lastBuildDate", format_datetime(instant(feed.updated))),
        *_links(feed, "rss", "atom:link"),
    ]
    for entry in feed.entries:
        lines += ["<item>", element("guid", entry.id, isPermaLink="false"), element("title", for_rss(entry.title))]
        if entry.link:
            lines.append(element("link", entry.link))
        lines.append(element("pubDate", format_datetime(instant(entry.published))))
        lines.append(element("atom:updated", written(entry.updated)))
        if entry.type != MATCHED:
            lines.append(element("category", entry.type))
        lines += [element("description", entry.markup), *_origins(entry), "</item>"]
    return "\n".join([*lines, "</channel>\n</rss>\n"])


def rdf(feed: Feed) -> str:
    """The feed in RSS 1.0, which is RDF, with the query of its subscription, and behind the items what has matched.
    Links to itself and its hub are in the header of the answer alone, since RDF has no place for attributes such as
    `rel`."""
    about = feed.address("rdf", before=feed.before)
    lines = [
        f"{_HEAD}\n<rdf:RDF {_RDF}>\n<channel rdf:about={quoted(about)}>",
        element("title", for_rss(feed.title)),
        element("link", feed.address("html")),
        element("description", for_rss(feed.subtitle)),
        element("dc:date", written(feed.updated)),
        *(element(f"tw:{name}", text) for name, text in feed.about.items()),
        "<items><rdf:Seq>",
        *(element("rdf:li", rdf_resource=entry.id) for entry in feed.entries),
        "</rdf:Seq></items>\n</channel>",
    ]
    for entry in feed.entries:
        lines += _rdf_item(entry, feed)
    for number, entry in enumerate(feed.entries):
        lines += nodes(entry.content, f"b{number}.") if entry.content is not None else ()
    return "\n".join([*lines, "</rdf:RDF>\n"])


def _rdf_item(entry: Entry, feed: Feed) -> Iterator[str]:
    yield f"<item rdf:about={quoted(entry.id)}>"
    yield element("title", for_rss(entry.title))
    yield element("link", entry.link or feed.address("html"))
    yield element("dcterms:issued", written(entry.published))
    yield element("dc:date", written(entry.updated))
    if entry.type != MATCHED:
        yield element("dc:subject", entry.type)
    yield element("content:encoded", entry.markup)
    yield from _origins(entry)
    if entry.publication:
        yield element("tw:publication", entry.publication)
    if entry.content is not None and "sequence" in entry.more:
        yield element("tw:triples", feed.address(f"{entry.more['sequence']}.nt"))
    yield from (element("tw:why", line) for line in entry.why)
    yield "</item>"


def _origins(entry: Entry) -> Iterator[str]:
    """The services that have told it, by which they know it again (`triplewire.broker.publications.kept_contents`)."""
    return (element("tw:origin", origin) for origin in entry.origins)


def _links(feed: Feed, form: str, name: str) -> Iterator[str]:
    for relation, address, kind in feed.links(form):
        yield element(name, rel=relation, href=address, **({"type": kind.partition(";")[0]} if kind else {}))
    if feed.before is not None:
        yield "<fh:archive/>"

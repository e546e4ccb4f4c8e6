"""Turns a feed and its items into publications: the RSS 1.0 vocabulary plus Dublin Core (semantics, section 1).

`triplewire.read.feeds.rss_atom` and `triplewire.read.feeds.json_feed` read feeds into `Channel` and `Item`; here these
become triples. The items of RSS 1.0 are RDF already and do not come here.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from triplewire.config import Settings
from triplewire.model.publication import Publication
from triplewire.model.references import is_absolute
from triplewire.model.terms import IRI, RDF_TYPE, XSD, Literal, Term, Triple
from triplewire.read.names import id_iri, legal
from triplewire.read.rdf.split import by_subject
from triplewire.read.rdf.surrogates import NOTE, replaced

RSS = "http://purl.org/rss/1.0/"
DC = "http://purl.org/dc/elements/1.1/"
DCTERMS = "http://purl.org/dc/terms/"
CONTENT = "http://purl.org/rss/1.0/modules/content/"
ENCLOSURE = IRI("http://purl.oclc.org/net/rss_2.0/enc#enclosure")
ITEM = IRI(RSS + "item")
CHANNEL = IRI(RSS + "channel")
TITLE, LINK, DESCRIPTION = IRI(RSS + "title"), IRI(RSS + "link"), IRI(RSS + "description")
ENCODED = IRI(CONTENT + "encoded")
CREATOR, DATE, SUBJECT, LANGUAGE = (IRI(DC + name) for name in ("creator", "date", "subject", "language"))
IS_PART_OF = IRI(DCTERMS + "isPartOf")
DATE_TIME = XSD + "dateTime"


@dataclass(frozen=True, slots=True)
class Channel:
    """What is said of the feed as a whole. `id` is its IRI, or "" where it states none."""

    id: str = ""
    title: str = ""
    link: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """One item, its texts ready to be literals. `id` may be any string, or "" where the item states none.

    `subjects` are (scheme, term) pairs, `others` (predicate IRI, text) pairs from unknown namespaces.
    """

    id: str = ""
    link: str = ""
    title: str = ""
    description: str = ""
    contents: Sequence[str] = ()
    creators: Sequence[str] = ()
    instant: dt.datetime | None = None
    subjects: Sequence[tuple[str, str]] = ()
    language: str = ""
    enclosures: Sequence[str] = ()
    others: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed that was read. `notes` say what was repaired."""

    channel: Channel
    items: Sequence[Item]
    notes: tuple[str, ...] = field(default=())


def publications(feed: Feed, document: str, source: str, split: str, settings: Settings) -> list[Publication]:
    """One publication for each item; with split "document" a single one, with "subject" one for each subject."""
    repaired: Feed = replaced(feed)
    if repaired != feed:
        feed = replace(repaired, notes=tuple(dict.fromkeys([*repaired.notes, NOTE])))
    parts = list(_parts(feed, document, source))
    if split == "item":
        return parts
    channel = IRI(id_iri(feed.channel.id or document))
    whole = dict.fromkeys([Triple(channel, RDF_TYPE, CHANNEL), *_channel(feed.channel, channel)])
    if feed.channel.description:
        whole[Triple(channel, DESCRIPTION, Literal(feed.channel.description))] = None
    for part in parts:
        whole.update(dict.fromkeys(part.triples))
    if split == "subject":
        return [replace(part, notes=feed.notes) for part in by_subject(whole, document, source, settings)]
    return [Publication(document, tuple(whole), source, notes=feed.notes)]


def _parts(feed: Feed, document: str, source: str) -> Iterator[Publication]:
    """A publication for each item. A repeated id gets `#2`, `#3` ..., so that no item is lost."""
    channel = IRI(id_iri(feed.channel.id or document))
    taken: set[str] = set()
    for number, item in enumerate(feed.items, start=1):
        wanted = item.id or item.link or f"{document}#{number}"
        identifier, copy = wanted, 1
        while id_iri(identifier) in taken:
            copy += 1
            identifier = f"{wanted}#{copy}"
        taken.add(id_iri(identifier))
        triples = dict.fromkeys(_triples(item, IRI(id_iri(identifier)), channel, feed.channel))
        yield Publication(identifier, tuple(triples), source, item.instant, notes=feed.notes)


def _triples(item: Item, subject: IRI, channel: IRI, shared: Channel) -> Iterator[Triple]:
    """The triples of an item, and those of its channel."""
    yield Triple(subject, RDF_TYPE, ITEM)
    for predicate, text in ((TITLE, item.title), (LINK, item.link), (DESCRIPTION, item.description)):
        if text:
            yield Triple(subject, predicate, Literal(text))
    for content in item.contents:
        yield Triple(subject, ENCODED, Literal(content))
    for creator in item.creators:
        yield Triple(subject, CREATOR, Literal(creator))
    if item.instant is not None:
        yield Triple(subject, DATE, Literal(date_time(item.instant), DATE_TIME))
    for scheme, term in item.subjects:
        yield Triple(subject, SUBJECT, _category(scheme, term))
    if item.language:
        yield Triple(subject, LANGUAGE, Literal(item.language))
    for address in item.enclosures:
        yield Triple(subject, ENCLOSURE, _resource(address))
    for predicate_iri, text in item.others:
        yield Triple(subject, IRI(id_iri(predicate_iri)), Literal(text))
    yield Triple(subject, IS_PART_OF, channel)
    yield from _channel(shared, channel)


def _channel(shared: Channel, channel: IRI) -> Iterator[Triple]:
    """The triples of the channel that each item repeats."""
    for predicate, text in ((TITLE, shared.title), (LINK, shared.link)):
        if text:
            yield Triple(channel, predicate, Literal(text))


def date_time(instant: dt.datetime) -> str:
    """An instant in UTC as the lexical form of an xsd:dateTime."""
    text = instant.strftime("%m-%dT%H:%M:%S")
    fraction = f".{instant.microsecond:06d}".rstrip("0") if instant.microsecond else ""
    return f"{instant.year:04d}-{text}{fraction}Z"


def _category(scheme: str, term: str) -> Term:
    """The IRI scheme+term where there is a scheme that is an IRI, else the term as text."""
    return _resource(scheme + term, Literal(term)) if scheme else Literal(term)


def _resource(address: str, otherwise: Term | None = None) -> Term:
    """The address as an IRI, with illegal characters percent-encoded.

    If it is not absolute: `otherwise`, or a literal.
    """
    encoded = legal(address)
    if is_absolute(encoded):
        return IRI(encoded)
    return otherwise if otherwise is not None else Literal(address)

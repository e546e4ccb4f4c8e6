"""Turns a feed and its items into publications: the RSS 1.0 vocabulary plus Dublin Core (semantics, section 1).

`triplewire.read.feeds.rss` and `triplewire.read.feeds.json_feed` read feeds into drafts, in which items, channels and
what they name have no IRIs yet; here these become triples. The items of RSS 1.0 are RDF already.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from triplewire.config import Settings
from triplewire.errors import ReadError
from triplewire.model.publication import Publication
from triplewire.model.references import id_iri, is_absolute, resolve
from triplewire.model.terms import IRI, RDF_TYPE, BlankNode, Literal, Node, Term, Triple
from triplewire.read.decoded import Decoded, Problem
from triplewire.read.feeds import vocabulary as v
from triplewire.read.feeds.refine import parse_instant, refined
from triplewire.read.names import legal
from triplewire.read.process.frames import Request
from triplewire.read.rdf.parse import check_length
from triplewire.read.rdf.split import by_subject, too_many


@dataclass(slots=True)
class Draft:
    """What is said of one resource: predicates with terms, or with resources that are drafts themselves. `iri` is its
    IRI; "" makes it a blank node (or, for an item, leaves its IRI to its id)."""

    iri: str = ""
    said: list[tuple[IRI, Term | Draft]] = field(default_factory=list)

    def say(self, predicate: IRI, value: Term | Draft) -> None:
        """Add a triple."""
        self.said.append((predicate, value))

    def text(self, predicate: IRI, text: str) -> None:
        """Add a plain literal, unless the text is empty."""
        if text:
            self.said.append((predicate, Literal(text)))

    def link(self, predicate: IRI, address: str, node: Draft) -> None:
        """Add a link to a document, of which `node` says more."""
        target = resource(address)
        if isinstance(target, IRI):
            node.iri = target.value
            self.say(predicate, node)
            return
        self.say(predicate, target)
        if node.said:
            node.text(v.ENCLOSURE_ADDRESS, address)
            self.say(predicate, node)

    def first(self, predicate: IRI) -> str:
        """The first literal of this predicate; "" if there is none."""
        texts = (value.lexical for said, value in self.said if said == predicate and isinstance(value, Literal))
        return next(texts, "")

    def triples(self, node: Node, labels: Iterator[str]) -> Iterator[Triple]:
        """The triples, about `node`; blank nodes take their labels from `labels`."""
        for predicate, value in self.said:
            if isinstance(value, Draft):
                other = IRI(value.iri) if value.iri else BlankNode(next(labels))
                yield Triple(node, predicate, other)
                yield from value.triples(other, labels)
            else:
                yield Triple(node, predicate, value)


@dataclass(slots=True)
class Item:
    """One item. `id` and `link` may be any strings, or "" where it states none. `number`: its place in the document,
    from 1; with 0 it is that among the items that were read."""

    id: str = ""
    link: str = ""
    about: Draft = field(default_factory=Draft)
    number: int = 0


@dataclass(slots=True)
class Channel:
    """The feed as a whole. `id` is its IRI, or "" where it states none; `title` and `link` go along with each item,
    the rest with the whole feed."""

    id: str = ""
    title: str = ""
    link: str = ""
    about: Draft = field(default_factory=Draft)


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed that was read."""

    channel: Channel
    items: Sequence[Item]


def resource(address: str) -> Term:
    """The address as an IRI, with illegal characters percent-encoded; a literal if it is not absolute."""
    encoded = legal(address)
    return IRI(encoded) if is_absolute(encoded) else Literal(address)


def absolute(base: str, address: str) -> str:
    """The address, resolved against the base, where there is one."""
    return resolve(address.strip(), base) if address.strip() else ""


# --- Publications ----------------------------------------------------------------------------------------------------

COPIES = 8
"""The literals of a feed's publications have at most so many times `max_document_bytes` characters: each publication
repeats what the feed says of all."""


def publications(feed: Feed, request: Request, problems: list[Problem]) -> Decoded:
    """One publication for each item; with split "document" a single one, with "subject" one for each subject.
    `problems` are those of the feed so far. Raises `ReadError` where a feed that is not split by item is over a
    limit."""
    parts = list(_parts(feed, request))
    if request.split == "item":
        return decoded(parts, request, problems)
    channel = IRI(id_iri(feed.channel.id or request.document))
    labels = (f"c{number}" for number in itertools.count())
    whole = dict.fromkeys([Triple(channel, RDF_TYPE, v.CHANNEL), *about_channel(feed.channel, channel, request)])
    about = feed.channel.about.triples(channel, labels)
    whole |= dict.fromkeys(about if request.as_written else refined(channel, about))
    for number, part in enumerate(parts):
        whole |= dict.fromkeys(_scoped(part.triples, number))
    return whole_or_by_subject(whole, request, problems)


def whole_or_by_subject(triples: Iterable[Triple], request: Request, problems: list[Problem]) -> Decoded:
    """A feed that is not split by item: one publication, or one for each subject. Raises `ReadError`."""
    if request.split == "subject":
        parts = by_subject(triples, request.document, request.source, request.settings)
    else:
        parts = [Publication(request.document, tuple(dict.fromkeys(triples)), request.source)]
    return decoded(parts, request, problems)


def decoded(parts: Iterable[Publication], request: Request, problems: list[Problem]) -> Decoded:
    """The publications that are within the limits; each other one is a problem. All carry the notes of the feed. Raises
    `ReadError` where they are too large together."""
    notes = tuple(dict.fromkeys(problem.error.what for problem in problems))
    within, most = [], COPIES * request.settings.max_document_bytes
    for publication in parts:
        most -= sum(len(t.object.lexical) for t in publication.triples if isinstance(t.object, Literal))
        if most < 0:
            what = f"its items repeat what they share: they have more than {COPIES} times max_document_bytes together"
            raise ReadError(what, remedy="shorten the title of the channel, or raise max_document_bytes")
        if (error := over_limit(publication, request.settings)) is not None:
            problems = [*problems, Problem(error, publication.id)]
        else:
            within.append(replace(publication, notes=notes) if notes else publication)
    return Decoded(within, problems)


def over_limit(publication: Publication, settings: Settings) -> ReadError | None:
    """The error for a publication with too many triples or too long a term; None for one within the limits."""
    if len(publication.triples) > settings.max_triples:
        return too_many(settings)
    try:
        for triple in publication.triples:
            for term in triple:
                if isinstance(term, Literal):
                    check_length("literal", term.lexical, settings.max_literal_bytes, "max_literal_bytes")
                elif isinstance(term, IRI):
                    check_length("IRI", term.value, settings.max_iri_bytes, "max_iri_bytes")
    except ReadError as error:
        return error
    return None


def about_channel(channel: Channel, node: Node, request: Request) -> Iterable[Triple]:
    """The triples of the channel that go along with each item."""
    draft = Draft()
    draft.text(v.CHANNEL_TITLE, channel.title)
    if channel.link:
        draft.say(v.PAGE, resource(channel.link))
    about = draft.triples(node, iter(()))
    return about if request.as_written else refined(node, about)


def distinct_ids(document: str) -> Callable[[str, int], str]:
    """A function that gives each item an id: what it wants, else its number, with `#2`, `#3` ... where it is taken."""
    taken: set[str] = set()
    copies: Counter[str] = Counter()

    def distinct(wanted: str, number: int) -> str:
        wanted = wanted or f"{document}#{number}"
        identifier = wanted
        while id_iri(identifier) in taken:
            copies[wanted] += 1
            identifier = f"{wanted}#{copies[wanted] + 1}"
        taken.add(id_iri(identifier))
        return identifier

    return distinct


def published(item: Node, triples: Iterable[Triple]) -> dt.datetime | None:
    """When the item was published, else issued, modified, created, as far as it says so."""
    texts = [(t.predicate, t.object.lexical) for t in triples if t.subject == item and isinstance(t.object, Literal)]
    instants = (
        parse_instant(text)
        for property in (v.DATE, v.ISSUED, v.MODIFIED, v.CREATED)
        for predicate, text in texts
        if predicate == property
    )
    return next((instant for instant in instants if instant is not None), None)


def _parts(feed: Feed, request: Request) -> Iterator[Publication]:
    """A publication for each item."""
    channel = IRI(id_iri(feed.channel.id or request.document))
    distinct = distinct_ids(request.document)
    for number, item in enumerate(feed.items, start=1):
        identifier = distinct(item.id or item.link, item.number or number)
        subject = IRI(id_iri(identifier))
        about = item.about.triples(subject, (f"b{label}" for label in itertools.count()))
        triples = [Triple(subject, RDF_TYPE, v.ITEM), *(about if request.as_written else refined(subject, about))]
        triples += [Triple(subject, v.IS_PART_OF, channel), *about_channel(feed.channel, channel, request)]
        distinct_triples = tuple(dict.fromkeys(triples))
        yield Publication(identifier, distinct_triples, request.source, published(subject, distinct_triples))


def _scoped(triples: Iterable[Triple], number: int) -> Iterator[Triple]:
    """The triples of an item with its blank nodes told apart from those of other items."""
    for subject, predicate, value in triples:
        if isinstance(subject, BlankNode):
            subject = BlankNode(f"i{number}{subject.label}")
        if isinstance(value, BlankNode):
            value = BlankNode(f"i{number}{value.label}")
        yield Triple(subject, predicate, value)

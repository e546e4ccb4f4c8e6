"""Items, channels and what they name, before they have IRIs; and how they become triples."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from triplewire.model.references import is_absolute, resolve
from triplewire.model.terms import IRI, BlankNode, Literal, Node, Term, Triple
from triplewire.read.feeds import vocabulary as v
from triplewire.read.names import legal


@dataclass(slots=True)
class Draft:
    """What is said of one resource: predicates with terms, or with resources that are drafts themselves.

    `iri` is its IRI; "" makes it a blank node (or, for an item, leaves its IRI to its id).
    """

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

    def first(self, *predicates: IRI) -> str:
        """The first literal of the first of these predicates that has one; "" if none has."""
        for predicate in predicates:
            for said, value in self.said:
                if said == predicate and isinstance(value, Literal):
                    return value.lexical
        return ""

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

"""What a service has told, and gets again: a feed of its own that it polls, be it through another service or a CMS.

Each entry of each feed carries the identity of its service and what its publication carried. So a publication that
carries the identity of this service is an echo, however often it was told on in between.
"""

from __future__ import annotations

from triplewire.broker.tickets import identity_code
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, BlankNode

TERMS = "urn:triplewire:terms#"
"""The namespace of what feeds say beside the common words."""

JSON_MEMBER = "_triplewire_origin"
"""The member of an item of JSON Feed that carries them, parted by spaces."""

_ORIGIN = {f"{TERMS}origin", f"https://jsonfeed.org/version/1.1#{JSON_MEMBER}"}


def identity(secret: bytes) -> str:
    """The identity of the service that has this secret, which it may tell everybody."""
    return f"urn:triplewire:service:{identity_code(secret)}"


def origins_of(publication: Publication) -> frozenset[str]:
    """The identities of the services that have told a publication on."""
    objects = (triple.object for triple in publication.triples if triple.predicate.value in _ORIGIN)
    return frozenset(
        text
        for term in objects
        if not isinstance(term, BlankNode)
        for text in (term.value if isinstance(term, IRI) else term.lexical).split()
    )

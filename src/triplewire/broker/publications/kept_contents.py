"""Contents of publications: read from what a door was given, as the bytes that the store keeps, and what they say.

Each entry of each feed of a service carries the identity of that service (`triplewire.broker.tickets.identity`) and
those that its publication carried (`origins_of`). So a publication that carries the identity of the service that gets
it is an echo, however often it was told on in between: by another service, or a CMS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from triplewire.config import Settings
from triplewire.errors import ReadError, Refusal
from triplewire.model.namespaces import shorten
from triplewire.model.packed import Packed, pack
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, Literal, Term, made_iri
from triplewire.read import read_document
from triplewire.read.names import document_iri
from triplewire.store.database import now

HANDED = "handed"
"""The state of a publication that the pipeline matches (`triplewire.broker.scale_out.from_pipeline`)."""

TERMS = "urn:triplewire:terms#"
"""The namespace of what feeds say beside the common words."""

ORIGINS_IN_JSON = "_triplewire_origin"
"""The member of an item of JSON Feed that carries identities of services, parted by spaces."""

_ORIGIN = {f"{TERMS}origin", f"https://jsonfeed.org/version/1.1#{ORIGINS_IN_JSON}"}
_TITLES = ("rss:title", "dcterms:title", "dc:title", "schema:name", "schema:headline", "foaf:name", "rdfs:label")
_NAMELESS = document_iri("")
_TEXTS = (
    "content:encoded",
    "rss:description",
    "dcterms:description",
    "dc:description",
    "schema:description",
    "rdfs:comment",
)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]")
_LINKS = ("rss:link", "schema:url", "foaf:page")


class Came(NamedTuple):
    """What was read of a document: its publications, and what of it was refused or repaired."""

    publications: list[Publication]
    refusals: list[Refusal]


def read_body(body: bytes, source: str, settings: Settings) -> Came:
    """The publications of a document in any syntax, which is recognised by its content. `source` is its address, or ""
    for none. Raises `ReadError` where nothing in it can be read."""
    refusals: list[Refusal] = []
    publications = read_document(body, source, settings=settings, on_refusal=refusals.append)
    if not publications and not any(not refusal.is_warning for refusal in refusals):
        raise ReadError("there is no publication in it", remedy="RDF in any syntax, a feed, or a list of them")
    return Came([_named(publication) for publication in publications], refusals)


def _named(publication: Publication) -> Publication:
    """A publication that has an id of its own: by its content, where it has neither name nor address."""
    if not publication.id.startswith(_NAMELESS):
        return publication
    id, packed = f"urn:triplewire:sha256:{publication.content_hash}", publication.packed or pack(publication.triples)
    return Publication.of_packed(id, packed, publication.source, publication.published, publication.notes)


def stored(publication: Publication) -> bytes:
    """The triples of a publication as bytes."""
    packed = publication.packed or pack(publication.triples)
    head = json.dumps([packed.suffixes, packed.terms, packed.literals, len(packed.text)], ensure_ascii=False)
    data = head.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(4, "big") + data + packed.text + packed.numbers


def row_of(publication: Publication, **other: Any) -> dict[str, Any]:
    """What the store keeps of a publication that is accepted, by columns; `other` values stand in place of the usual
    ones."""
    return {
        "id": publication.id,
        "content": publication.content_hash,
        "source": publication.source,
        "published": publication.published.timestamp() if publication.published else None,
        "received": now(),
        "readers": None,
        "title": title_of(publication),
        "link": link_of(publication),
        "body": stored(publication),
        "state": "accepted",
        "tries": 0,
        "reason": "",
    } | other


def restored(body: bytes, id: str, source: str, attachments: Mapping[str, bytes] | None = None) -> Publication:
    """The publication of bytes that `stored` made. Raises `ValueError` for others."""
    begin = 4 + int.from_bytes(body[:4], "big")
    suffixes, terms, literals, length = json.loads(body[4:begin].decode("utf-8", "surrogatepass"))
    packed = Packed(body[begin : begin + length], body[begin + length :], tuple(suffixes), terms, literals)
    packed.check()
    publication = Publication.of_packed(id, packed, source)
    if attachments:
        publication.attachments.update(attachments)  # type: ignore[attr-defined]  # the dictionary is its own
    return publication


def title_of(publication: Publication) -> str:
    """A title for people: of the resource that the publication is about, else of any; its id where there is none.
    Without control characters, which a database may refuse."""
    titles = (_visible(text) for _, text in _stated(publication, _TITLES))
    return next(filter(None, titles), _visible(publication.id))


def link_of(publication: Publication) -> str:
    """The address of the page of a publication: what it states, or its id; "" for none on the web."""
    for text in (*(text for _, text in _stated(publication, _LINKS)), publication.id):
        if text.startswith(("http://", "https://")):
            return _visible(text)
    return ""


def text_of(publication: Publication) -> tuple[str, bool]:
    """The text of a publication, or "", and whether it is HTML."""
    name, text = next(_stated(publication, _TEXTS), ("", ""))
    return text, name == _TEXTS[0]


def origins_of(publication: Publication) -> frozenset[str]:
    """The identities of the services that have told a publication on."""
    objects = (triple.object for triple in publication.triples if triple.predicate.value in _ORIGIN)
    return frozenset(identity for term in objects for identity in _text_of(term).split())


def _text_of(term: Term) -> str:
    return term.lexical if isinstance(term, Literal) else term.value if isinstance(term, IRI) else ""


def _visible(text: str) -> str:
    return _CONTROLS.sub("", text).strip()


def _stated(publication: Publication, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Properties of these names with their texts, those of the publication's own resource first."""
    about = made_iri(publication.id)
    statements = [
        (triple.subject != about, names.index(name), triple.object)
        for triple in publication.triples
        if (name := shorten(triple.predicate.value)) in names
    ]
    for _, place, term in sorted(statements, key=lambda entry: entry[:2]):
        if text := _text_of(term).strip():
            yield names[place], text

"""What a site must offer (docs/cms-protocol.md, "What a site offers")."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

from triplewire.cli.conformance.asked import Points, ask, call, fault_of, must, point
from triplewire.errors import TriplewireError
from triplewire.model.namespaces import RSS
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, RDF_TYPE
from triplewire.read import read_document
from triplewire.read.taxonomy import read_taxonomy

POINTS: Points = []
_point = partial(point, POINTS)
_MEMBERS = ("triplewire", "name", "service", "feed", "taxonomy", "namespace", "notify")
_LOOKED_AT = 5  # pages
_SECONDS = 30  # that a page may take to be at the service


@dataclass
class Site:
    """A site that is checked, what it says of itself, and the token with which its service is asked."""

    word: ClassVar = "site"
    base: str
    service: str
    token: str = ""
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def index(self) -> str:
        """The address at which it says what it offers."""
        return f"{self.base}/triplewire/"

    def look(self) -> None:
        """Ask what it offers; nothing where it does not say."""
        answer = ask(self.index)
        try:
            said = json.loads(answer.body)
        except ValueError:
            return
        self.about = said if answer.status == 200 and isinstance(said, dict) else {}

    def pages(self) -> list[Publication]:
        """The items of its feed. Raises `ServiceError`."""
        answer = ask(self.about.get("feed", ""))
        must(answer.status == 200 and RSS.encode() in answer.body, answer)
        try:
            return list(read_document(answer.body, self.about["feed"]))
        except TriplewireError as error:
            must(False, error)
            return []


def _texts(page: Publication, name: str) -> list[str]:
    return [getattr(term, "lexical", "") for term in page.graph.objects(IRI(page.id), IRI(name))]


@_point("the site says what it offers", "answer JSON at /triplewire/ to anybody, with all members")
def _index(site: Site) -> None:
    must(not (missing := [name for name in _MEMBERS if not site.about.get(name)]), f"missing: {missing}")


@_point("it is a site of this service", "name the service that it publishes to")
def _of_service(site: Site) -> None:
    named, asked = urlsplit(site.about.get("service", "")), urlsplit(site.service)
    must((named.port, named.path.rstrip("/")) == (asked.port, asked.path.rstrip("/")), site.about.get("service"))


@_point("its feed is RSS 1.0, each page with title, link and date", "write rdf:about, title, link and dc:date")
def _feed(site: Site) -> None:
    pages = site.pages()
    must(pages, "the feed has no page")
    for page in pages:
        must(list(page.graph.find(IRI(page.id), RDF_TYPE, IRI(RSS + "item"))), f"{page.id} is no item")
        for name in (RSS + "title", RSS + "link", "http://purl.org/dc/elements/1.1/date"):
            must(_texts(page, name), f"{page.id} has no {name}")


@_point("an unchanged feed is 304", "send an ETag, and compare If-None-Match")
def _known_feed(site: Site) -> None:
    first = ask(site.about.get("feed", ""))
    again = ask(site.about.get("feed", ""), If_None_Match=first.headers.get("etag", ""))
    must(first.headers.get("etag") and again.status == 304, (first.headers.get("etag"), again.status))


@_point("anybody may read the pages of the feed", "leave out drafts and private pages")
def _public(site: Site) -> None:
    for page in site.pages()[:_LOOKED_AT]:
        (link, *_) = _texts(page, RSS + "link")
        must(ask(link).status == 200, f"{link} is answered {ask(link).status}")


@_point("its pages are at the service", "publish each change of a page: outbox, then publish until there is an answer")
def _published(site: Site) -> None:
    end = time.monotonic() + _SECONDS
    for page in site.pages()[:_LOOKED_AT]:
        query = f"SELECT ?t WHERE {{ <{page.id}> <{RSS}title> ?t }}"
        while not (said := call(f"{site.service}/RPC2", "try", {"query": query}, token=site.token))["matched"]:
            must(time.monotonic() < end, f"{page.id} is not there: {said}")
            time.sleep(0.5)


@_point("its taxonomy can be read, and is about its own classes", "begin the IRIs of classes with the namespace")
def _taxonomy(site: Site) -> None:
    answer = ask(site.about.get("taxonomy", ""))
    must(answer.status == 200, answer)
    try:
        taxonomy = read_taxonomy(answer.body, "", with_equivalents=True)
    except TriplewireError as error:
        must(False, error)
        return
    foreign = [cls for cls in taxonomy.superclasses if not cls.startswith((site.about["namespace"], site.index))]
    must(not set(foreign) - taxonomy.equivalents.keys(), foreign)


@_point("the service can take its taxonomy", "export no cycle, and state nothing of the classes of others")
def _taken_taxonomy(site: Site) -> None:
    namespace = site.index if site.about["namespace"].startswith(site.index) else site.about["namespace"]
    address = f"{site.service}/taxonomy?dry_run=1&namespace={quote(namespace, safe='')}"
    answer = ask(address, "PUT", ask(site.about["taxonomy"]).body, token=site.token, kind="text/turtle")
    must(answer.status == 200, answer.body)


@_point("notify takes calls alone", "answer 405 to GET, and a fault to what is no call")
def _calls_alone(site: Site) -> None:
    must(ask(site.about["notify"]).status == 405, ask(site.about["notify"]))
    answer = ask(site.about["notify"], "POST", b"<methodCall")
    must(b"<fault>" in answer.body or answer.status == 400, answer)


@_point("notify is the only method, and there is no multicall", "answer fault -32601")
def _one_method(site: Site) -> None:
    for name in ("list", "system.multicall"):
        fault = fault_of(lambda name=name: call(site.about["notify"], name, {}))  # type: ignore[misc]
        must(fault.faultCode == -32601, fault)


@_point("what the service has not sent is refused", "answer fault 403 to a wrong signature, 404 to an unknown id")
def _forged(site: Site) -> None:
    publication = {"id": "urn:x", "title": "forged", "link": "", "source": "", "content": ""}
    event = {"id": "1", "type": "matched", "subscription": "unknown", "sequence": 1, "publication": publication}
    fault = fault_of(lambda: call(site.about["notify"], "notify", {**event, "bindings": [], "time": ""}))
    must(fault.faultCode in (403, 404), fault)

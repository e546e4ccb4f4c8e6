"""What the conformance program asks of a service and of a site: requests, calls of XML-RPC, and what must hold."""

from __future__ import annotations

import json
import secrets
import urllib.error
import urllib.request
import xmlrpc.client
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any, ClassVar, NamedTuple

from triplewire.cli.client import OPENER
from triplewire.errors import ServiceError

_SECONDS = 60


class Answer(NamedTuple):
    """An answer over HTTP; names of headers in lower case. Status 0: there was none, and the body says why."""

    status: int
    headers: dict[str, str]
    body: bytes


def ask(
    address: str, method: str = "GET", body: Any = None, *, token: str = "", kind: str = "", **headers: str
) -> Answer:
    """One request. `body`: bytes, or an object of JSON. `_` in names of headers is `-`."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    if data is not None:
        sent["Content-Type"] = kind or ("application/json" if not isinstance(body, bytes) else "text/xml")
    if token:
        sent["Authorization"] = f"Bearer {token}"
    try:
        request = urllib.request.Request(address, data, sent, method=method)
        with OPENER.open(request, timeout=_SECONDS) as answer:
            return Answer(answer.status, {n.lower(): v for n, v in answer.headers.items()}, answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, {n.lower(): v for n, v in error.headers.items()}, error.read())
    except (OSError, HTTPException, ValueError) as error:
        return Answer(0, {}, str(getattr(error, "reason", error)).encode())


def call(address: str, name: str, *parameters: Any, token: str = "") -> Any:
    """What a method answers. Raises `Fault`, and `ServiceError` where there is no answer of XML-RPC."""
    body = xmlrpc.client.dumps(parameters, name, allow_none=False).encode("utf-8", "xmlcharrefreplace")
    answer = ask(address, "POST", body, token=token)
    try:
        (result,), _ = xmlrpc.client.loads(answer.body, use_builtin_types=True)
    except xmlrpc.client.Fault:
        raise
    except Exception as error:  # whatever stands in the answer
        text = answer.body.decode("utf-8", "replace")
        raise ServiceError(f"{name} is answered {answer.status} and no XML-RPC ({error}): {text[:200]}") from None
    return result


def must(holds: object, seen: object) -> None:
    """Raises `ServiceError` with what was seen, unless something holds."""
    if not holds:
        raise ServiceError(str(seen)[:400])


def fault_of(do: Callable[[], Any]) -> xmlrpc.client.Fault:
    """The fault that a call is answered with. Raises `ServiceError` where it is none."""
    try:
        result = do()
    except xmlrpc.client.Fault as fault:
        return fault
    raise ServiceError(f"it was no fault, but {result!r}"[:400])


@dataclass(frozen=True)
class Point:
    """One thing that must hold. `remedy`: what to do where it does not."""

    name: str
    remedy: str
    check: Callable[[Any], None]


Points = list[Point]


def point(points: Points, name: str, remedy: str) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Makes a function that raises `ServiceError` the next of some points."""

    def declare(check: Callable[[Any], None]) -> Callable[[Any], None]:
        points.append(Point(name, remedy, check))
        return check

    return declare


@dataclass
class Service:
    """A service that is checked: everything is made for a user whose name nobody has, and removed at the end."""

    word: ClassVar = "service"
    base: str
    token: str
    user: str = field(default_factory=lambda: f"conformance-{secrets.token_hex(6)}")
    pages: list[str] = field(default_factory=list)

    def call(self, name: str, **struct: Any) -> Any:
        """What a method answers to a struct. Raises `Fault`."""
        return call(f"{self.base}/RPC2", name, struct, token=self.token)

    def subscribe(self, query: str, **more: Any) -> dict[str, Any]:
        """A subscription of the user."""
        made: dict[str, Any] = self.call("subscribe", query=query, user=self.user, **more)
        return made

    def page(self, title: str, page: str = "", **more: Any) -> str:
        """Publish a page that only the user may read; returns its IRI."""
        page = page or f"urn:uuid:{secrets.token_hex(4)}-0000-4000-8000-{secrets.token_hex(6)}"
        self.pages.append(page)
        more.setdefault("readers", [f"/{self.user}"])
        self.call("publish", content=item(page, title), page=page, **more)
        return page

    def told(self, made: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
        """Type and publication of the events of a subscription."""
        notes = self.call("notifications", subscription=made["id"], **more)
        return [(note["type"], note["publication"]) for note in notes]

    def clean_up(self) -> None:
        """Remove all that was made."""
        for page in dict.fromkeys(self.pages):
            self.call("publish", page=page, delete=True, wait=False)
        self.call("forget", user=self.user)


@contextmanager
def service_at(base: str, token: str) -> Iterator[Service]:
    """A service that is checked, and what was made there removed at the end."""
    service = Service(base, token)
    try:
        yield service
    finally:
        service.clean_up()


def item(about: str, title: str, description: str = "", more: str = "") -> str:
    """A feed in RSS 1.0 with one item."""
    from xml.sax.saxutils import escape, quoteattr

    return f"""<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="urn:triplewire:conformance"><title>Conformance</title><link>http://conformance.example/</link>
<description>What the conformance program publishes</description>
<items><rdf:Seq><rdf:li rdf:resource={quoteattr(about)}/></rdf:Seq></items></channel>
<item rdf:about={quoteattr(about)}><title>{escape(title)}</title><link>http://conformance.example/</link>
<description>{escape(description)}</description>{more}</item></rdf:RDF>"""

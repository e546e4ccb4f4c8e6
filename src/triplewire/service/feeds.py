"""The doors of feeds: each subscription in each format, and a query over the publications that are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from email.utils import format_datetime, parsedate_to_datetime
from importlib.metadata import version
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from sqlalchemy.engine import Row

from triplewire.broker.broker import Broker
from triplewire.broker.feeds import feed_page, json_feeds, outlines, xml_feeds
from triplewire.broker.feeds.digests import feed_of_digests
from triplewire.broker.feeds.entries import FORMS, Feed, bounds_of, feed_of, feed_of_results, instant
from triplewire.broker.subscriptions import ENDED
from triplewire.broker.targets import DIGESTS
from triplewire.broker.tickets import feed_key
from triplewire.broker.window import asked
from triplewire.service.access import KEY, OWNER, allowed, base_of, broker, owner
from triplewire.service.problems import Problem
from triplewire.store.database import now

router = APIRouter(tags=["feeds"])

_WRITERS: Mapping[str, Callable[[Feed], str]] = {
    "atom": xml_feeds.atom,
    "rss": xml_feeds.rss,
    "rdf": xml_feeds.rdf,
    "json": json_feeds.json_feed,
    "html": feed_page.page,
    "opml": outlines.of_feed,
    "ndjson": json_feeds.ndjson,
}
_SHOWN = ("id", "title", "state", "reason", "created", "expires")
"""What of a subscription its feed shows."""

_HEADERS = {
    "Cache-Control": "private, no-cache",  # to be asked whether it is new; the address gives the right to read
    "Content-Security-Policy": feed_page.CONTENT_SECURITY,
    "X-Robots-Tag": "noindex",
}


def feed_at(of: Broker, row: Row[Any], base: str, before: int | None = None, digest: str = "") -> Feed:
    """A page of the feed of a subscription, or its digests, at a service of this address."""

    def address(form: str, before: int | None = None) -> str:
        asked = {"digest": digest} if digest else {} if before is None else {"before": before}
        return f"{base}/s/{feed_key(row.number, of.secret)}.{form}" + (f"?{urlencode(asked)}" if asked else "")

    with of.database.reading() as connection:
        if digest:
            return feed_of_digests(connection, row, of.secret, address, digest)
        return feed_of(connection, row, of.secret, address, f"{base}/hub", before)


def rendered(of: Broker, row: Row[Any], form: str, base: str) -> tuple[str, bytes]:
    """The newest page of a feed in a format: its media type and its bytes."""
    return FORMS[form], written(feed_at(of, row, base), form)


def written(feed: Feed, form: str) -> bytes:
    """A page of a feed in a format."""
    return _WRITERS[form](feed).encode()


@router.head("/s/{key}.{form}", include_in_schema=False)
@router.get("/s/{key}.{form}")
@allowed(KEY)
def feed(
    request: Request, key: str, form: str, before: Annotated[int | None, Query(ge=1, lt=2**62)] = None, digest: str = ""
) -> Response:
    """The feed of a subscription as `atom`, `rss`, `rdf`, `json`, `html`, `opml` or `ndjson`: its newest entries, or
    those before a sequence; with `digest=hourly` or `daily` an entry for each hour or day (UTC) that is over."""
    of = broker(request)
    row: Any = of.by_feed_key(key)
    if row is None:
        raise Problem(404, "there is no such feed")
    check_form(form)
    if digest and digest not in DIGESTS:
        raise Problem(404, f"there is no digest {digest[:20]!r}", f"known: {', '.join(DIGESTS)}")
    base, period = base_of(request), now() // DIGESTS[digest] if digest else 0
    with of.database.reading() as connection:
        bounds = bounds_of(connection, row.number)
    # nothing else is in a feed that may change: events and contents never do
    tag = _tag(
        version("triplewire"), key, form, base, before, digest, period, bounds, *(getattr(row, name) for name in _SHOWN)
    )
    if tag in _known_tags(request):
        return Response(status_code=304, headers={**_HEADERS, "ETag": tag})
    return answer(request, feed_at(of, row, base, before, digest), form, tag, by_date=row.state != ENDED)


@router.get("/feed")
@allowed(OWNER)
def ask(request: Request, q: str, language: str = "sparql", format: str = "atom") -> Response:
    """What a query matches among the newest publications that are kept, as a feed. Nothing is registered."""
    by, of = owner(request), broker(request)
    check_form(format)

    def address(form: str, before: int | None = None) -> str:
        return f"{base_of(request)}/feed?{urlencode({'q': q, 'language': language, 'format': form})}"

    engine = of.probe(q, language)
    page = feed_of_results(asked(engine, of.window.of(by)), q, of.secret, address)
    return answer(request, page, format, _tag(written(page, format)))


def check_form(form: str) -> None:
    """Raises `Problem` for a format that there is not."""
    if form not in FORMS:
        raise Problem(404, f"there is no format {form[:20]!r}", f"known: {', '.join(FORMS)}")


def answer(request: Request, page: Feed, form: str, tag: str, by_date: bool = True) -> Response:
    """A page of a feed, or that it is as before (RFC 9110, section 13). `by_date`: whether its date alone tells."""
    links = (
        f'<{address}>; rel="{name}"' + (f'; type="{kind}"' if kind else "") for name, address, kind in page.links(form)
    )
    headers = {**_HEADERS, "ETag": tag, "Link": ", ".join(links)}
    if by_date and page.updated < now() - 2:  # else another entry may have the same second
        headers["Last-Modified"] = format_datetime(instant(page.updated), usegmt=True)
    if _is_known(request, headers):
        return Response(status_code=304, headers=headers)
    return Response(written(page, form), media_type=FORMS[form], headers=headers)


def _tag(*parts: object) -> str:
    return f'"{hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:32]}"'


def _known_tags(request: Request) -> set[str]:
    return {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}


def _is_known(request: Request, headers: Mapping[str, str]) -> bool:
    """Has who asks what these headers are of?"""
    if "if-none-match" in request.headers:
        return bool(_known_tags(request) & {headers["ETag"], "*"})
    since, modified = request.headers.get("if-modified-since"), headers.get("Last-Modified")
    if since is None or modified is None:
        return False
    try:
        return parsedate_to_datetime(since) >= parsedate_to_datetime(modified)
    except (ValueError, TypeError):
        return False

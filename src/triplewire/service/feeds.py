"""The doors of feeds: each subscription in each format, and a query over the publications that are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from email.utils import format_datetime
from importlib.metadata import version
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from sqlalchemy.engine import Row
from starlette.datastructures import Headers

from triplewire.broker.broker import Broker
from triplewire.broker.events.event_log import UNMATCHED, publication_of, with_numbers
from triplewire.broker.feeds.entries import Entry, Feed, bounds_of, feed_of, feed_of_digests, feed_of_results, instant
from triplewire.broker.feeds.formats import CONTENT_SECURITY, FORMATS, links
from triplewire.broker.publications.window import asked
from triplewire.broker.subscriptions.followed import ENDED
from triplewire.broker.subscriptions.targets import DIGESTS
from triplewire.broker.tickets import feed_key
from triplewire.service.access import KEY, OWNER, allowed, base_of, broker, owner
from triplewire.service.problems import Problem
from triplewire.service.rates import DRY_RUN
from triplewire.store.database import now

router = APIRouter(tags=["feeds"])

_EXPLAINED = 20  # entries of a feed in RSS 1.0 that say why
_SHOWN = ("id", "title", "state", "reason", "created", "expires", "revision")
"""What of a subscription its feed shows."""

_HEADERS = {
    "Cache-Control": "private, no-cache",  # to be asked whether it is new; the address gives the right to read
    "Content-Security-Policy": CONTENT_SECURITY,
    "X-Robots-Tag": "noindex",
}


def feed_at(
    of: Broker, row: Row[Any], base: str, before: int | None = None, after: int | None = None, digest: str = ""
) -> Feed:
    """A page of the feed of a subscription at a service of this address: the newest, or the one before a sequence, or
    what comes behind one; or its digests."""

    def address(form: str, before: int | None = None) -> str:
        asked = {"digest": digest} if digest else {} if before is None else {"before": before}
        return f"{base}/s/{feed_key(row.number, of.secret)}.{form}" + (f"?{urlencode(asked)}" if asked else "")

    with of.database.reading() as connection:
        if digest:
            return feed_of_digests(connection, row, of.secret, address, digest)
        return feed_of(connection, row, of.secret, address, f"{base}/hub", before, after)


def rendered(of: Broker, row: Row[Any], form: str, base: str) -> tuple[str, bytes]:
    """The newest page of a feed in a format: its media type and its bytes."""
    return FORMATS[form].media_type, written(feed_at(of, row, base), form, of)


def written(feed: Feed, form: str, of: Broker | None = None) -> bytes:
    """A page of a feed in a format; in RSS 1.0 with the reasons of its newest entries, where the broker is given."""
    if form == "rdf" and of is not None:
        feed = replace(feed, entries=[*_explained(of, feed.entries[:_EXPLAINED]), *feed.entries[_EXPLAINED:]])
    return FORMATS[form].write(feed).encode()


def _explained(of: Broker, entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries with the reasons of their matches, where they are events, not digests."""
    numbers = [entry.more["number"] for entry in entries if "number" in entry.more and entry.content is not None]
    with of.database.reading() as connection:
        told = with_numbers(connection, numbers)
    why = of.reasons(told.values())
    return (replace(entry, why=why.get(entry.more.get("number", 0), ())) for entry in entries)


@router.get("/s/{key}.{sequence}.nt")
@allowed(KEY)
def triples(request: Request, key: str, sequence: Annotated[int, Path(ge=1, lt=2**62)]) -> Response:
    """What the event of a sequence tells of, as N-Triples: as it was then."""
    of = broker(request)
    row: Any = of.by_feed_key(key)
    events = of.events_of(row.number, sequence - 1, 1) if row is not None else []
    with of.database.reading() as connection:
        content = publication_of(connection, events[0].publication_number or 0) if events else None
    if content is None or events[0].sequence != sequence or events[0].type == UNMATCHED:
        raise Problem(404, "there is no such publication, or it is not kept any more")
    text = "".join(f"{triple.subject} {triple.predicate} {triple.object} .\n" for triple in content.triples)
    return Response(text.encode("utf-8", "replace"), media_type="application/n-triples", headers=_HEADERS)


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
    if _is_known(request, {"ETag": tag}):
        return Response(status_code=304, headers={**_HEADERS, "ETag": tag})
    shown = feed_at(of, row, base, before, digest=digest)
    return answer(request, shown, form, tag, by_date=row.state != ENDED, of=of)


@router.get("/feed", dependencies=[DRY_RUN])
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
    if form not in FORMATS:
        raise Problem(404, f"there is no format {form[:20]!r}", f"known: {', '.join(FORMATS)}")


def answer(
    request: Request, page: Feed, form: str, tag: str, by_date: bool = True, of: Broker | None = None
) -> Response:
    """A page of a feed, or that it is as before (RFC 9110, section 13). `by_date`: whether its date alone tells."""
    leading = (
        f'<{address}>; rel="{name}"' + (f'; type="{kind}"' if kind else "") for name, address, kind in links(page, form)
    )
    headers = {**_HEADERS, "ETag": tag, "Link": ", ".join(leading)}
    if by_date and page.updated < now() - 2:  # else another entry may have the same second
        headers["Last-Modified"] = format_datetime(instant(page.updated), usegmt=True)
    if _is_known(request, headers):
        return Response(status_code=304, headers=headers)
    return Response(written(page, form, of), media_type=FORMATS[form].media_type, headers=headers)


def _tag(*parts: object) -> str:
    return f'"{hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()[:32]}"'


def _is_known(request: Request, headers: Mapping[str, str]) -> bool:
    """Has who asks what these headers are of?"""
    return StaticFiles().is_not_modified(Headers(headers), request.headers)

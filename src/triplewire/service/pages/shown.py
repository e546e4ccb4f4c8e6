"""The pages: the start, a subscription, the tester, why and why not, sources, dead letters, settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import segno
import sqlalchemy as sa
from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup
from sqlalchemy.engine import Connection, Row

from triplewire.broker import owners
from triplewire.broker.events.event_log import publication_of
from triplewire.broker.feeds.formats import FORMATS
from triplewire.broker.incoming.registered_sources import health
from triplewire.broker.publications.window import Kept, may_see
from triplewire.broker.subscriptions.followed import ENDED, prefixes_of
from triplewire.broker.subscriptions.targets import DIGESTS
from triplewire.broker.tickets import feed_key
from triplewire.errors import TriplewireError
from triplewire.ir.show import show_term
from triplewire.model.namespaces import shorten
from triplewire.model.publication import Publication
from triplewire.model.terms import IRI, LANG_STRING, XSD, Literal, made_iri
from triplewire.plugins import BUILT_IN
from triplewire.service import opml
from triplewire.service.access import PAGE, allowed, broker, settings
from triplewire.service.pages.drawn import cut, drawing
from triplewire.service.pages.rendered import page
from triplewire.service.pages.sessions import Person, person
from triplewire.service.problems import Problem, details_of
from triplewire.service.rates import DRY_RUN
from triplewire.service.subscriptions import feed_address
from triplewire.service.tester import Tried, tried
from triplewire.store.database import DAY
from triplewire.store.tables import events, publications, subscriptions

router = APIRouter(include_in_schema=False)

DURATIONS = ((DAY, "1 day"), (7 * DAY, "7 days"), (30 * DAY, "30 days"))
ROWS = 50  # of a list; what comes behind them has a page of its own
_NEWEST = 20  # events
_ENTRIES = 20
_LISTED = 100  # publications beside the editor
_FIELDS = 12  # of a publication that are offered as conditions
_CHARACTERS = 200  # of a field
_KINDS = {XSD + name: "number" for name in ("integer", "decimal", "double", "float")}
_KINDS |= {XSD + "string": "text", LANG_STRING: "text"}


def own(request: Request, who: Person, number: int) -> Row[Any]:
    """A subscription of who is signed in, or of its users. Raises `Problem` (404) for another's, and where there is
    none."""
    row = broker(request).by_number(number)
    if row is None or not owners.acts_for(who.owner, row.owner):
        raise Problem(404, f"there is no subscription {number}", "go back to the start")
    return row


def name_of(row: Row[Any]) -> str:
    """What a subscription is called."""
    return str(row.title or cut(" ".join(row.query.split()), 80))


@router.get("/")
@allowed(PAGE)
def start(request: Request, before: int = 2**62, word: str = "") -> Response:
    """The subscriptions of who is signed in, their newest events, and how the sources are."""
    who, of = person(request), broker(request)
    with of.database.reading() as connection:
        rows = _subscriptions_of(connection, who.owner, before, word)
        shown, more = rows[:ROWS], len(rows) > ROWS
        counts = _event_counts(connection, [row.number for row in shown])
        newest = _newest_events(connection, who.owner)
    sources = of.sources.of_owner(who.owner)
    prices = {row.number: json.loads(row.price) for row in shown}
    return page(
        request, "start.html", who, rows=shown, counts=counts, prices=prices, newest=newest, name_of=name_of, word=word,
        older=shown[-1].number if more else None, sources=[(row, health(row)) for row in sources],
    )  # fmt: skip


@router.get("/page/newest")
@allowed(PAGE)
def newest(request: Request) -> Response:
    """The newest events, as the start page looks at them again and again."""
    who = person(request)
    with broker(request).database.reading() as connection:
        told = _newest_events(connection, who.owner)
    return page(request, "_newest.html", who, newest=told)


def _subscriptions_of(connection: Connection, owner: str, before: int, word: str) -> Sequence[Row[Any]]:
    """Subscriptions of an owner before a number, the newest first; only those with a word in their title, query or
    id."""
    table = subscriptions
    here = sa.select(table).where(table.c.owner == owner, table.c.number < before, table.c.state != ENDED)
    if word:
        texts = (table.c.title, table.c.query, table.c.id)
        here = here.where(sa.or_(*(text.icontains(word, autoescape=True) for text in texts)))
    return connection.execute(here.order_by(table.c.number.desc()).limit(ROWS + 1)).all()


def _event_counts(connection: Connection, numbers: Sequence[int]) -> dict[int, tuple[int, float]]:
    """For each of these subscriptions that has events: how many, and when the last one was."""
    newest = sa.func.max(events.c.sequence), sa.func.max(events.c.at)
    here = sa.select(events.c.subscription, *newest).where(events.c.subscription.in_(numbers))
    return {row[0]: (row[1], row[2]) for row in connection.execute(here.group_by(events.c.subscription))}


def _newest_events(connection: Connection, owner: str) -> list[list[Row[Any]]]:
    """The newest events of an owner, those of one publication together."""
    here = (
        sa.select(
            *(events.c[name] for name in ("number", "subscription", "type", "at", "publication")),
            *(subscriptions.c[name].label(f"of_{name}") for name in ("title", "query")),
            *(sa.func.coalesce(publications.c[name], "").label(name) for name in ("title", "link", "source")),
        )
        .join(subscriptions, subscriptions.c.number == events.c.subscription)
        .outerjoin(publications, publications.c.number == events.c.publication)
        .where(subscriptions.c.owner == owner)
    )
    rows = connection.execute(here.order_by(events.c.number.desc()).limit(_NEWEST))
    return [list(told) for _, told in groupby(rows, key=lambda row: (row.publication or row.number, row.type))]


# --- the tester ------------------------------------------------------------------------------------------------------

EMPTY = {"query": "", "language": "", "title": "", "webhook": "", "secret": "", "once_per_story": "", "seconds": ""}


@router.get("/page/new", dependencies=[DRY_RUN])
@allowed(PAGE)
def new(request: Request, query: str = "", language: str = "", title: str = "") -> Response:
    """A new subscription: the editor, and the last publications beside it."""
    return editor(request, person(request), {**EMPTY, "query": query, "language": language, "title": title})


@router.get("/page/subscriptions/{number}/edit", dependencies=[DRY_RUN])
@allowed(PAGE)
def edit(request: Request, number: int, query: str = "") -> Response:
    """The same for a subscription that is there."""
    who = person(request)
    row = own(request, who, number)
    once = "1" if row.once_per_story else ""
    given = {"query": query or row.query, "language": row.language, "title": row.title, "once_per_story": once}
    return editor(request, who, {**EMPTY, **given}, row)


def editor(
    request: Request, who: Person, given: Mapping[str, str], row: Row[Any] | None = None,
    error: Mapping[str, Any] | None = None,
) -> Response:  # fmt: skip
    """The editor with what was given, what it matches, and what was wrong with it."""
    window = broker(request).window.of(who.owner)
    known = [name for name in ("keywords", *BUILT_IN["language"]) if name in BUILT_IN["language"]]
    languages = tuple(dict.fromkeys(known))
    given = {**given, "language": given["language"] or languages[0]}
    outcome = Tried()
    if given["query"].strip() and error is None:
        try:
            prefixes = None if row is None else prefixes_of(row)
            outcome = tried(broker(request), window, given["query"], given["language"], prefixes)
        except TriplewireError as wrong:
            error = details_of(wrong)
    matched = set(outcome.matched)
    listed = window[:_LISTED] + [each for each in window[_LISTED:] if each.number in matched][:_LISTED]
    return page(
        request, "editor.html", who, given=given, row=row, error=error, found=outcome, listed=listed, of=len(window),
        fields=fields_of, languages=languages, durations=DURATIONS, matched=matched,
        prefixes=(row.prefixes or "{}") if row is not None else "{}", status=200 if error is None else 400,
    )  # fmt: skip


def fields_of(seen: Kept) -> list[tuple[str, str, str]]:
    """Properties of a publication that a condition can be made of: property, value, and whether the value is "text", a
    "number", another typed "value" as SPARQL writes it, or an "address"; those of its own resource first."""
    about = made_iri(seen.publication.id)
    fields: dict[tuple[str, str, str], bool] = {}
    for triple in sorted(seen.publication.triples, key=lambda triple: triple.subject != about):
        name = shorten(triple.predicate.value) or str(triple.predicate)
        if isinstance(triple.object, Literal):
            kind = _KINDS.get(triple.object.datatype, "value")
            value = show_term(triple.object) if kind == "value" else triple.object.lexical
            fields[name, cut(value, _CHARACTERS), kind] = True
        elif isinstance(triple.object, IRI):
            fields[name, triple.object.value, "address"] = True
        if len(fields) >= _FIELDS:
            break
    return list(fields)


# --- a subscription ---------------------------------------------------------------------------------------------------


@router.get("/page/subscriptions/{number}")
@allowed(PAGE)
def look(request: Request, number: int, before: int = 2**62, said: str = "") -> Response:
    """A subscription: until when it is valid, its addresses, its entries, where they are delivered to, and how."""
    who, of = person(request), broker(request)
    row = own(request, who, number)
    key = feed_key(number, of.secret)
    entries = of.newest_events(number, _ENTRIES + 1, before)
    feeds = [(of_form.name, feed_address(request, key, form)) for form, of_form in FORMATS.items()]
    feeds.append(("Atom, daily", f"{feed_address(request, key)}?digest=daily"))
    code = segno.make(feeds[0][1]).svg_inline(scale=3, light="#fff")
    targets, log = of.targets.of(number), of.delivery_log.of_subscription(number, ROWS)
    return page(
        request, "subscription.html", who, row=row, name=name_of(row), price=json.loads(row.price), said=said,
        feeds=feeds, code=Markup(code), entries=entries[:_ENTRIES], digests=DIGESTS,
        older=entries[_ENTRIES - 1].sequence if len(entries) > _ENTRIES else None, targets=targets,
        deliveries=log, durations=DURATIONS, ended=row.state == ENDED,
        muted=max((target.until for target in targets), default=0.0),
    )  # fmt: skip


@router.get("/page/subscriptions/{number}/deliveries")
@allowed(PAGE)
def deliveries(request: Request, number: int) -> Response:
    """The delivery log of a subscription, as its page looks at it again and again."""
    who = person(request)
    own(request, who, number)
    log = broker(request).delivery_log.of_subscription(number, ROWS)
    return page(request, "_deliveries.html", who, deliveries=log, then=f"/page/subscriptions/{number}")


@router.get("/page/subscriptions/{number}/why")
@allowed(PAGE)
def why_which(request: Request, number: int) -> Response:
    """The last publications, to ask of one why the subscription matches it or not."""
    who = person(request)
    row = own(request, who, number)
    listed = broker(request).window.of(who.owner)[:_LISTED]
    return page(request, "why_which.html", who, row=row, name=name_of(row), listed=listed)


@router.get("/page/subscriptions/{number}/why/{publication}", dependencies=[DRY_RUN])
@allowed(PAGE)
def why(request: Request, number: int, publication: int) -> Response:
    """Why a subscription matches a publication, or not: as a graph, and part by part."""
    who, of = person(request), broker(request)
    row = own(request, who, number)
    about, content = _seen(request, who, publication)
    engine = of.probe(row.query, row.language, prefixes_of(row))
    explanation, subscription = engine.explain("query", content, nearest=True), engine.get("query")
    assert subscription is not None
    triples = [tuple(map(show_term, (t.subject, t.predicate, t.object))) for t in content.triples[:_LISTED]]
    return page(
        request, "why.html", who, row=row, name=name_of(row), about=about, explanation=explanation, cut=cut,
        drawn=drawing(subscription.where, explanation), nearest=getattr(explanation, "nearest", None), triples=triples,
    )  # fmt: skip


def _seen(request: Request, who: Person, number: int) -> tuple[Row[Any], Publication]:
    """A publication that who is signed in may see. Raises `Problem` (404) for another."""
    with broker(request).database.reading() as connection:
        row = connection.execute(publications.select().where(publications.c.number == number)).first()
        content = publication_of(connection, number)
    if row is None or content is None or not may_see(who.owner, row.readers):
        raise Problem(404, f"there is no publication {number}", "it may be too old to be kept")
    return row, content


# --- sources, dead letters, settings ----------------------------------------------------------------------------------


@router.get("/page/sources")
@allowed(PAGE)
def sources(request: Request, said: str = "") -> Response:
    """The sources of who is signed in, and how they are."""
    who = person(request)
    return sources_page(request, who, said=said)


def sources_page(
    request: Request, who: Person, *, said: str = "", ticket: str = "", given: Mapping[str, str] | None = None,
    error: Mapping[str, Any] | None = None, report: Sequence[Mapping[str, Any]] = (),
) -> Response:  # fmt: skip
    """The sources, with the ticket of one that was just made, the report of a list that was taken, or what was given
    and what was wrong with it."""
    rows = [(row, health(row)) for row in broker(request).sources.of_owner(who.owner)]
    given = given or {"url": "", "kind": "poll", "title": ""}
    status = 200 if error is None else 400
    more = {"sources": rows, "said": said, "ticket": ticket, "given": given, "error": error, "report": report}
    return page(request, "sources.html", who, status=status, values=more)


@router.get("/page/subscriptions.opml")
@allowed(PAGE)
def export(request: Request) -> Response:
    """All subscriptions and sources of who is signed in, as a list in OPML."""
    person(request)
    return opml.export(request)


@router.get("/page/dead-letters")
@allowed(PAGE)
def dead_letters(request: Request) -> Response:
    """What could not be delivered, and for the owner of the service what could not be matched."""
    who, log = person(request), broker(request).delivery_log
    dead = log.dead(who.owner, ROWS)
    refused = log.refused(ROWS) if who.owner == settings(request).owner else []
    return page(request, "dead_letters.html", who, deliveries=dead, refused=refused, then="/page/dead-letters")


@router.get("/page/settings")
@allowed(PAGE)
def of_person(request: Request) -> Response:
    """The tokens of who is signed in."""
    return tokens(request, person(request))


def tokens(request: Request, who: Person, made: str = "") -> Response:
    """The tokens of a person, and the one that was just made."""
    return page(request, "settings.html", who, tokens=owners.tokens_of(broker(request).database, who.owner), made=made)

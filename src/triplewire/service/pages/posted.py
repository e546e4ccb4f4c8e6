"""What the forms of pages do. Each sends the browser on to a page, or shows its own again with what was wrong."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import FormData, UploadFile

from triplewire.broker import owners
from triplewire.broker.broker import Wanted
from triplewire.broker.incoming.registered_sources import POLL, PUSH, WantedSource
from triplewire.broker.subscriptions.targets import Target
from triplewire.errors import ArgumentError, TriplewireError
from triplewire.service import deliveries, opml, source_doors
from triplewire.service.access import PAGE, allowed, broker, delivering, told_to_owners
from triplewire.service.pages.sessions import Person, posted
from triplewire.service.pages.shown import EMPTY, editor, own, sources_page, tokens
from triplewire.service.problems import Problem, details_of
from triplewire.service.rates import DRY_RUN
from triplewire.service.subscriptions import check_address
from triplewire.store.database import DAY

router = APIRouter(include_in_schema=False)

Posted = Annotated[tuple[Person, FormData], Depends(posted)]


def _texts(form: FormData) -> dict[str, str]:
    """The fields of a form that are texts, with lines as the queries have them."""
    return {name: value.replace("\r\n", "\n").strip() for name, value in form.items() if isinstance(value, str)}


def _to(number: int, said: str = "") -> Response:
    return RedirectResponse(f"/page/subscriptions/{number}" + (f"?said={said}" if said else ""), 303)


@router.post("/page/new", dependencies=[DRY_RUN])
@allowed(PAGE)
def subscribe(request: Request, sent: Posted) -> Response:
    """Save a new subscription, or without `save` only try its query."""
    who, given = sent[0], {**EMPTY, **_texts(sent[1])}
    if "save" not in given:
        return editor(request, who, given)
    try:
        made = broker(request).subscribe(
            Wanted(
                given["query"],
                given["language"],
                seconds=_seconds(given["seconds"] or str(DAY)),
                title=given["title"],
                once_per_story=bool(given["once_per_story"]),
                targets=_targets(request, given),
            ),
            who.owner,
        )
    except (TriplewireError, Problem) as error:
        return editor(request, who, given, error=details_of(error))
    if given["webhook"]:
        deliveries.ask(request, made.number)
    return _to(made.number, "made")


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(f"{text[:40]!r} is no number of seconds") from None


def _targets(request: Request, given: dict[str, str]) -> list[Target]:
    if not given.get("webhook"):
        return []
    more = {"digest": given["digest"]} if given.get("digest") else {}
    with told_to_owners(request):
        return [delivering(request).channels.target(given["webhook"], given.get("secret", ""), more)]


@router.post("/page/subscriptions/{number}/edit", dependencies=[DRY_RUN])
@allowed(PAGE)
def change(request: Request, number: int, sent: Posted) -> Response:
    """Change the query or the title of a subscription, or without `save` only try the query."""
    who, given = sent[0], {**EMPTY, **_texts(sent[1])}
    row = own(request, who, number)
    if "save" not in given:
        return editor(request, who, given, row)
    values: dict[str, Any] = {"title": given["title"], "once_per_story": bool(given["once_per_story"])}
    if (given["query"], given["language"]) != (row.query, row.language):
        values |= {"query": given["query"], "language": given["language"]}
    try:
        broker(request).change(number, **values)
    except TriplewireError as error:
        return editor(request, who, given, row, details_of(error))
    return _to(number, "changed")


@router.post("/page/subscriptions/{number}/renew")
@allowed(PAGE)
def renew(request: Request, number: int, sent: Posted) -> Response:
    """Have a subscription last for so many seconds from now."""
    who, form = sent
    own(request, who, number)
    broker(request).renew(number, _seconds(str(form.get("seconds", DAY))))
    return _to(number, "renewed")


@router.post("/page/subscriptions/{number}/state")
@allowed(PAGE)
def pause(request: Request, number: int, sent: Posted) -> Response:
    """Pause a subscription, or go on with it."""
    who, form = sent
    own(request, who, number)
    broker(request).change(number, state=str(form.get("state", "")))
    return _to(number)


@router.post("/page/subscriptions/{number}/end")
@allowed(PAGE)
def end(request: Request, number: int, sent: Posted) -> Response:
    """End a subscription for good."""
    own(request, sent[0], number)
    broker(request).unsubscribe(number)
    return RedirectResponse("/", 303)


@router.post("/page/subscriptions/{number}/targets")
@allowed(PAGE)
def add_target(request: Request, number: int, sent: Posted) -> Response:
    """Deliver events to a webhook or mailbox, too; with `remove`, to that target no more; with `test`, send a test."""
    who, given = sent[0], _texts(sent[1])
    row = own(request, who, number)
    if given.get("remove"):
        deliveries.remove_target(request, row, _number(given["remove"]))
    if given.get("test"):
        tested = deliveries.test_target(request, row, _number(given["test"]))
        return _to(number, "tested" if tested["delivered"] else "not-tested")
    for target in _targets(request, given):
        deliveries.ask(request, number, broker(request).add_target(number, target))
    return _to(number)


@router.post("/page/subscriptions/{number}/mute")
@allowed(PAGE)
def mute(request: Request, number: int, sent: Posted) -> Response:
    """Deliver nothing for a day; or with `end`, go on."""
    row = own(request, sent[0], number)
    deliveries.mute(request, row, deliveries.Muting(seconds=0 if sent[1].get("end") else DAY))
    return _to(number)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ArgumentError(f"{text[:40]!r} is no number")
    return int(text)


@router.post("/page/deliveries/{number}")
@allowed(PAGE)
def delivery(request: Request, number: int, sent: Posted) -> Response:
    """Try a delivery again, or give it up."""
    given = _texts(sent[1])
    with suppress(Problem):  # it may have been settled since
        (deliveries.drop if given.get("do") == "drop" else deliveries.resend)(request, 2 * number)
    subscription = given.get("subscription", "")
    return _to(_number(subscription)) if subscription else RedirectResponse("/page/dead-letters", 303)


@router.post("/page/refused/{number}")
@allowed(PAGE)
def refused(request: Request, number: int, sent: Posted) -> Response:
    """Have a publication matched after all that was refused. Only the owner of the service."""
    deliveries.resend(request, 2 * number + 1)
    return RedirectResponse("/page/dead-letters", 303)


@router.post("/page/sources")
@allowed(PAGE)
def add_source(request: Request, sent: Posted) -> Response:
    """Add a source; or with `remove`, take one away."""
    who, given = sent[0], {"url": "", "kind": "poll", "title": "", **_texts(sent[1])}
    if given.get("remove"):
        source_doors.remove_source(request, given["remove"])
        return RedirectResponse("/page/sources", 303)
    if given["kind"] not in (POLL, PUSH):
        raise ArgumentError("the page makes no such source", remedy="POST /sources does")
    may_subscribe = bool(given.get("may_subscribe"))
    try:
        if given["kind"] == POLL:
            check_address(request, given["url"])
        wanted = WantedSource(given["url"], given["kind"], title=given["title"], may_subscribe=may_subscribe)
        ticket = broker(request).sources.add(wanted, who.owner)[1]
    except (TriplewireError, Problem) as error:
        return sources_page(request, who, given=given, error=details_of(error))
    if ticket:
        return sources_page(request, who, ticket=ticket)
    return RedirectResponse("/page/sources?said=made", 303)


@router.post("/page/opml")
@allowed(PAGE)
def take_list(request: Request, sent: Posted) -> Response:
    """Take a list of feeds and subscriptions in OPML; the page tells of each line what became of it."""
    who, form = sent
    file = form.get("list")
    body = file.file.read() if isinstance(file, UploadFile) else b""
    try:
        answer = opml.take_list(request, body)
    except TriplewireError as error:
        return sources_page(request, who, error=details_of(error))
    return sources_page(request, who, report=json.loads(bytes(answer.body)))


@router.post("/page/settings")
@allowed(PAGE)
def change_tokens(request: Request, sent: Posted) -> Response:
    """Make a token of one's own, or revoke one."""
    who, given = sent[0], _texts(sent[1])
    if given.get("revoke"):
        try:
            owners.revoke(broker(request).database, who.owner, bytes.fromhex(given["revoke"]))
        except ValueError:
            raise ArgumentError("no token is called so") from None
        return RedirectResponse("/page/settings", 303)
    return tokens(request, who, broker(request).new_token(who.owner))

"""The doors of deliveries and of dead letters.

They say where events of a subscription go beside its feed, what became of them, and one event. Dead letters are
deliveries that were given up, and publications that could not be matched. The number of a dead letter is even for
deliveries and odd for publications: twice their own number, or one more. Publications belong to nobody, so the owner of
the service sees them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field
from sqlalchemy.engine import Row

from triplewire.broker.subscriptions.targets import PENDING, Target
from triplewire.broker.tickets import grant_key, number_of
from triplewire.deliver.channels import shown_address
from triplewire.deliver.webhooks import rate_of
from triplewire.service.access import (
    KEY,
    OWNER,
    OWNER_OR_TICKET,
    Body,
    Owned,
    allowed,
    base_of,
    broker,
    delivering,
    owner,
    owner_or_none,
    path_of,
    settings,
    told_to_owners,
)
from triplewire.service.problems import Problem
from triplewire.store.database import DAY

router = APIRouter(tags=["deliveries"])

MOST_MUTED = 366 * DAY


class NewTarget(Body):
    """An address that events are delivered to."""

    address: str = Field(description="https://..., xmlrpc:https://..., kafka://..., mailto:... or apprise:...")
    secret: str = Field("", description="What posts are signed with (Standard Webhooks).")
    ordered: bool = Field(False, description="Each event waits until the one before is delivered.")
    digest: str = Field("", description="hourly or daily (UTC): mail or messages that tell all of it together.")


def target_shown(row: Row[Any]) -> dict[str, Any]:
    """A target as the owner of its subscription sees it."""
    as_they_are = ("number", "kind", "state", "expires", "until", "failures", "created")
    said = json.loads(row.settings)
    return {
        **{name: getattr(row, name) for name in as_they_are},
        "address": shown_address(row.kind, row.address),
        "signed": bool(row.secret),
        "ordered": bool(said.get("ordered")),
        "digest": said.get("digest", ""),
    }


@router.get("/subscriptions/{id}/targets")
@allowed(OWNER_OR_TICKET)
def targets(request: Request, row: Owned) -> list[dict[str, Any]]:
    """The targets of a subscription."""
    return [target_shown(target) for target in broker(request).targets.of(row.number)]


@router.post("/subscriptions/{id}/targets", status_code=201)
@allowed(OWNER_OR_TICKET)
def add_target(request: Request, row: Owned, body: NewTarget) -> Response:
    """Deliver events to this address, too, from now on."""
    more = body.model_dump(include={"ordered", "digest"}, exclude_defaults=True)
    with told_to_owners(request):
        target = delivering(request).channels.target(body.address, body.secret, more)
    if owner_or_none(request) is None and target.kind == "webhook":
        target = replace(target, state=PENDING)
    number = broker(request).add_target(row.number, target)
    ask(request, row.number, number)
    made = _target(request, row.number, number)
    return JSONResponse(target_shown(made), 201, {"Location": f"{path_of(row.id)}/targets/{number}"})


def ask(request: Request, subscription: int, number: int | None = None) -> None:
    """Ask the receiver of a target (None: the only one) whether it wants events, if it is a webhook. Who has the API
    token vouches for it, so it gets events whatever it answers; to one that somebody with a ticket has named none is
    sent before it is allowed."""
    of = broker(request)
    row = of.targets.of(subscription)[0] if number is None else _target(request, subscription, number)
    if row.kind != "webhook":
        return
    base = base_of(request)
    callback = f"{base}/webhooks/{grant_key(row.number, of.secret)}"
    target = Target(row.kind, row.address)
    outcome = delivering(request).channels.ask(target, urlsplit(base).hostname or "", callback)
    if outcome.is_delivered:
        of.targets.grant(row.number, outcome.per_minute)


@router.get("/webhooks/{key}")
@router.post("/webhooks/{key}")
@allowed(KEY)
def grant(request: Request, key: str) -> dict[str, Any]:
    """Allow events at an address: who owns it opens this one, which was told to it alone (CloudEvents HTTP webhook,
    section 4.1.2, `WebHook-Request-Callback`). A header `WebHook-Allowed-Rate` says how many a minute."""
    of = broker(request)
    number = number_of(key, of.secret, grant_key)
    if number is None or not of.targets.grant(number, rate_of(request.headers)):
        raise Problem(404, "there is no such target")
    return {"allowed": True}


class Muting(Body):
    """For how long nothing is delivered."""

    seconds: float = Field(DAY, ge=0, le=MOST_MUTED, description="0 ends it.")


@router.post("/subscriptions/{id}/mute")
@allowed(OWNER_OR_TICKET)
def mute(request: Request, row: Owned, body: Muting) -> dict[str, Any]:
    """Deliver nothing to the targets of a subscription for a while: events wait, and its feed has them meanwhile."""
    until = broker(request).targets.mute(row.number, body.seconds)
    delivering(request).wake()
    return {"id": row.id, "until": until}


@router.delete("/subscriptions/{id}/targets/{number}", status_code=204)
@allowed(OWNER_OR_TICKET)
def remove_target(request: Request, row: Owned, number: int) -> Response:
    """Deliver nothing there any more."""
    broker(request).targets.end(_target(request, row.number, number).number)
    return Response(status_code=204)


@router.post("/subscriptions/{id}/targets/{number}/test")
@allowed(OWNER_OR_TICKET)
def test_target(request: Request, row: Owned, number: int) -> dict[str, Any]:
    """Send a notification that says it is a test, and tell what came of it."""
    outcome = delivering(request).try_target(_target(request, row.number, number), row)
    return {"delivered": outcome.is_delivered, "answer": outcome.text}


def _target(request: Request, subscription: int, number: int) -> Row[Any]:
    for row in broker(request).targets.of(subscription):
        if row.number == number:
            return row
    raise Problem(404, f"there is no target {number}")


def delivery_shown(row: Row[Any]) -> dict[str, Any]:
    """A delivery of a log. `due`: when it is tried next, or when it ended."""
    as_they_are = ("number", "state", "tries", "due", "target", "event", "sequence", "type", "title")
    said = {name: getattr(row, name) for name in as_they_are}
    return {**said, "answer": row.status, "address": shown_address(row.kind, row.address)}


@router.get("/subscriptions/{id}/deliveries")
@allowed(OWNER_OR_TICKET)
def log(request: Request, row: Owned, before: int = 2**62) -> list[dict[str, Any]]:
    """The newest deliveries of a subscription, or those before a number."""
    entries = broker(request).delivery_log.of_subscription(row.number, before=min(before, 2**62))
    return list(map(delivery_shown, entries))


@router.get("/s/{key}/events/{sequence}")
@allowed(KEY)
def event(request: Request, key: str, sequence: int) -> dict[str, Any]:
    """One event of a subscription: what a notification that would have been too long has a link to."""
    row = broker(request).by_feed_key(key)
    events = broker(request).events_of(row.number, sequence - 1, 1) if row is not None and 0 < sequence < 2**62 else []
    if not events or events[0].sequence != sequence:
        raise Problem(404, "there is no such event")
    return events[0].to_json()


# --- dead letters ----------------------------------------------------------------------------------------------------


def _whose(request: Request) -> str | None:
    """Whose dead letters are asked for; None for those of all."""
    by = owner(request)
    return None if by == settings(request).owner else by


@router.get("/deadletters")
@allowed(OWNER)
def dead_letters(request: Request) -> list[dict[str, Any]]:
    """All dead letters, the newest first of each kind."""
    whose, log = _whose(request), broker(request).delivery_log
    letters: list[dict[str, Any]] = [
        {**delivery_shown(row), "number": 2 * row.number, "kind": "delivery", "subscription": row.id}
        for row in log.dead(whose)
    ]
    if whose is None:
        letters += (
            {
                "number": 2 * row.number + 1,
                "kind": "publication",
                "publication": row.id,
                "title": row.title,
                "received": row.received,
                "answer": row.reason,
            }
            for row in log.refused()
        )
    return letters


@router.post("/deadletters/{number}/resend", status_code=202)
@allowed(OWNER)
def resend(request: Request, number: int) -> dict[str, Any]:
    """Try a dead letter again, from the beginning."""
    if _settled(request, number, "accepted"):
        broker(request).matching.wake()
    else:
        broker(request).delivery_log.resend(number // 2)
        delivering(request).wake()
    return {"number": number, "state": "pending"}


@router.delete("/deadletters/{number}", status_code=204)
@allowed(OWNER)
def drop(request: Request, number: int) -> Response:
    """Give a dead letter up for good."""
    if not _settled(request, number, "dropped"):
        broker(request).delivery_log.drop(number // 2)
    return Response(status_code=204)


def _settled(request: Request, number: int, state: str) -> bool:
    """Is a dead letter a publication, which then has this state? Raises `Problem` where there is none, or it is
    another's."""
    whose, log = _whose(request), broker(request).delivery_log
    if 0 < number < 2**62:
        if number % 2 and whose is None and log.settle_publication(number // 2, state):
            return True
        if not number % 2 and log.dead(whose, number=number // 2):
            return False
    raise Problem(404, f"there is no dead letter {number}")

"""The doors of deliveries: where events of a subscription go beside its feed, what became of them, one event, and dead
letters: deliveries that were given up, and publications that could not be matched.

The number of a dead letter is even for deliveries and odd for publications: twice their own number, or one more.
Publications belong to nobody, so the owner of the service sees them.
"""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field
from sqlalchemy.engine import Row

from triplewire.deliver.channels import shown_address
from triplewire.service.access import (
    KEY,
    OWNER,
    OWNER_OR_TICKET,
    Body,
    allowed,
    broker,
    delivering,
    owner,
    settings,
    subscription,
)
from triplewire.service.problems import Problem

router = APIRouter(tags=["deliveries"])


class NewTarget(Body):
    """An address that events are delivered to."""

    address: str = Field(description="https://..., xmlrpc:https://..., kafka://..., mailto:... or apprise:...")
    secret: str = Field("", description="What posts are signed with (Standard Webhooks).")
    ordered: bool = Field(False, description="Each event waits until the one before is delivered.")


def target_shown(row: Row[Any]) -> dict[str, Any]:
    """A target as the owner of its subscription sees it."""
    return {
        "number": row.number,
        "kind": row.kind,
        "address": shown_address(row.kind, row.address),
        "signed": bool(row.secret),
        "ordered": bool(json.loads(row.settings).get("ordered")),
        "state": row.state,
        "expires": row.expires,
        "failures": row.failures,
        "created": row.created,
    }


@router.get("/subscriptions/{id}/targets")
@allowed(OWNER_OR_TICKET)
def targets(request: Request, id: str) -> list[dict[str, Any]]:
    """The targets of a subscription."""
    row: Any = subscription(request, id)
    return [target_shown(target) for target in broker(request).targets.of(row.number)]


@router.post("/subscriptions/{id}/targets", status_code=201)
@allowed(OWNER_OR_TICKET)
def add_target(request: Request, id: str, body: NewTarget) -> Response:
    """Deliver events to this address, too, from now on."""
    row: Any = subscription(request, id)
    more = {"ordered": True} if body.ordered else {}
    number = broker(request).add_target(
        row.number, delivering(request).channels.target(body.address, body.secret, more)
    )
    made = _target(request, row.number, number)
    return JSONResponse(target_shown(made), 201, {"Location": f"/subscriptions/{id}/targets/{number}"})


@router.delete("/subscriptions/{id}/targets/{number}", status_code=204)
@allowed(OWNER_OR_TICKET)
def remove_target(request: Request, id: str, number: int) -> Response:
    """Deliver nothing there any more."""
    row: Any = subscription(request, id)
    broker(request).targets.end(_target(request, row.number, number).number)
    return Response(status_code=204)


@router.post("/subscriptions/{id}/targets/{number}/test")
@allowed(OWNER_OR_TICKET)
def test_target(request: Request, id: str, number: int) -> dict[str, Any]:
    """Send a notification that says it is a test, and tell what came of it."""
    row: Any = subscription(request, id)
    outcome = delivering(request).try_target(_target(request, row.number, number), row)
    return {"delivered": outcome.is_delivered, "answer": outcome.text}


def _target(request: Request, subscription: int, number: int) -> Row[Any]:
    for row in broker(request).targets.of(subscription):
        if row.number == number:
            return row
    raise Problem(404, f"there is no target {number}")


def delivery_shown(row: Row[Any]) -> dict[str, Any]:
    """A delivery of a log. `due`: when it is tried next, or when it ended."""
    return {
        "number": row.number,
        "state": row.state,
        "tries": row.tries,
        "due": row.due,
        "answer": row.status,
        "target": row.target,
        "address": shown_address(row.kind, row.address),
        "event": row.event,
        "sequence": row.sequence,
        "type": row.type,
        "title": row.title,
    }


@router.get("/subscriptions/{id}/deliveries")
@allowed(OWNER_OR_TICKET)
def log(request: Request, id: str, before: int = 2**62) -> list[dict[str, Any]]:
    """The newest deliveries of a subscription, or those before a number."""
    row: Any = subscription(request, id)
    return [
        delivery_shown(entry) for entry in broker(request).owed.of_subscription(row.number, before=min(before, 2**62))
    ]


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
    whose, owed = _whose(request), broker(request).owed
    letters: list[dict[str, Any]] = [
        {**delivery_shown(row), "number": 2 * row.number, "kind": "delivery", "subscription": row.id}
        for row in owed.dead(whose)
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
            for row in owed.refused()
        )
    return letters


@router.post("/deadletters/{number}/resend", status_code=202)
@allowed(OWNER)
def resend(request: Request, number: int) -> dict[str, Any]:
    """Try a dead letter again, from the beginning."""
    is_publication, own_number = _checked(request, number)
    of = broker(request)
    if not is_publication:
        of.owed.resend(own_number)
        delivering(request).wake()
    elif of.owed.accept_again(own_number):
        of.matching.wake.set()
    return {"number": number, "state": "pending"}


@router.delete("/deadletters/{number}", status_code=204)
@allowed(OWNER)
def drop(request: Request, number: int) -> Response:
    """Give a dead letter up for good."""
    is_publication, own_number = _checked(request, number)
    owed = broker(request).owed
    if is_publication:
        owed.drop_publication(own_number)
    else:
        owed.drop(own_number)
    return Response(status_code=204)


def _checked(request: Request, number: int) -> tuple[bool, int]:
    """Is a dead letter a publication, and its own number. Raises `Problem` where there is none, or it is another's."""
    whose, owed = _whose(request), broker(request).owed
    is_publication, own_number = number % 2 == 1, number // 2
    is_there = 0 < number < 2**62 and (
        whose is None and owed.is_refused(own_number) if is_publication else owed.is_dead(own_number, whose)
    )
    if not is_there:
        raise Problem(404, f"there is no dead letter {number}")
    return is_publication, own_number

"""The doors of deliveries: where events of a subscription go beside its feed, what became of them, and one event."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field
from sqlalchemy.engine import Row

from triplewire.deliver.channels import shown_address
from triplewire.service.access import KEY, OWNER_OR_TICKET, Body, allowed, broker, delivering, subscription
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

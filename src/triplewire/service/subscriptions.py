"""The door of subscriptions: make, look at, change, renew and end them."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, ValidationError
from sqlalchemy.engine import Row

from triplewire.broker.broker import DAY, Broker, Made, Target, Wanted
from triplewire.broker.subscriptions import prefixes_of
from triplewire.broker.tickets import feed_key
from triplewire.deliver.webhooks import checked_target
from triplewire.errors import TriplewireError
from triplewire.service.access import (
    OWNER,
    OWNER_OR_TICKET,
    Body,
    allowed,
    base_of,
    broker,
    owner,
    settings,
    subscription,
)
from triplewire.service.deliveries import ask
from triplewire.service.problems import Problem, details, details_of

router = APIRouter(tags=["subscriptions"])


class NewSubscription(Body):
    """A subscription as it is asked for."""

    query: str
    language: str = "sparql"
    id: str = ""
    seconds: float = Field(DAY, description="How long it is valid; renew it before.")
    prefixes: dict[str, str] = Field({})
    title: str = ""
    webhook: str = Field("", description="An address that each event is posted to.")
    secret: str = Field("", description="What posts to the webhook are signed with (Standard Webhooks).")
    once_per_story: bool = Field(False, description="Of reports of one story, only the first is an event.")


class Change(Body):
    """What of a subscription is changed."""

    query: str | None = None
    language: str | None = None
    prefixes: dict[str, str] | None = None
    title: str | None = None
    state: str | None = Field(None, description="active or paused")
    once_per_story: bool | None = None


class Renewal(BaseModel):
    """For how long a subscription is renewed."""

    ticket: str = ""
    seconds: float = DAY


def feed_address(request: Request, key: str, form: str = "atom") -> str:
    """The address of the feed of a subscription."""
    return f"{base_of(request)}/s/{key}.{form}"


def told(request: Request, made: Made) -> dict[str, Any]:
    """What is answered to who has subscribed."""
    return {
        "id": made.id,
        "ticket": made.ticket,
        "feed": feed_address(request, made.feed_key),
        "expires": made.expires,
        "warnings": list(made.warnings),
        "price": dict(made.price),
    }


def wanted_of(request: Request, new: NewSubscription) -> Wanted:
    """What is asked for. Raises `Problem` for an address of a webhook that may not be asked."""
    targets: list[Target] = []
    if new.webhook:
        check_address(request, new.webhook)
        targets.append(Target("webhook", new.webhook, new.secret))
    fields = new.model_dump(exclude={"webhook", "secret"})
    return Wanted(**fields, targets=targets)


def check_address(request: Request, url: str) -> None:
    """Raises `Problem` where an address may not be asked."""
    try:
        checked_target(url, settings(request).allow_private_addresses)
    except TriplewireError as error:
        raise Problem(400, error.what) from None


@router.post("/subscriptions", status_code=201)
@allowed(OWNER)
def subscribe(request: Request, body: NewSubscription | list[Any]) -> Response:
    """Make a subscription, or many: then each is answered in its place, and those that are right are made."""
    by, of = owner(request), broker(request)
    if isinstance(body, NewSubscription):
        made = of.subscribe(wanted_of(request, body), by)
        if body.webhook:
            ask(request, made.number)
        address = {"Location": f"/subscriptions/{made.id}"}
        return JSONResponse(told(request, made), 201, address)
    answers: list[Any] = [None] * len(body)
    wanted: list[tuple[int, Wanted]] = []
    for place, entry in enumerate(body):
        try:
            wanted.append((place, wanted_of(request, NewSubscription.model_validate(entry))))
        except ValidationError as error:
            answers[place] = details(422, str(error.errors()[0]["msg"]))
        except Problem as error:
            answers[place] = details_of(error)
    results = of.subscribe_all([each for _, each in wanted], by)
    for (place, _), result in zip(wanted, results, strict=True):
        answers[place] = details_of(result) if isinstance(result, TriplewireError) else told(request, result)
    return JSONResponse(answers, 201)


def shown(request: Request, of: Broker, row: Row[Any]) -> dict[str, Any]:
    """A subscription as its owner sees it."""
    as_they_are = ("id", "title", "language", "query", "state", "reason", "revision", "created", "expires")
    return {
        **{name: getattr(row, name) for name in (*as_they_are, "once_per_story")},
        "prefixes": prefixes_of(row) or {},
        "price": json.loads(row.price),
        "feed": feed_address(request, feed_key(row.number, of.secret)),
    }


@router.get("/subscriptions")
@allowed(OWNER)
def list_subscriptions(request: Request) -> list[dict[str, Any]]:
    """All subscriptions of an owner, the newest first."""
    of = broker(request)
    return [shown(request, of, row) for row in of.subscriptions_of(owner(request))]


@router.get("/subscriptions/{id}")
@allowed(OWNER_OR_TICKET)
def look(request: Request, id: str) -> dict[str, Any]:
    """One subscription."""
    return shown(request, broker(request), subscription(request, id))


@router.patch("/subscriptions/{id}")
@allowed(OWNER_OR_TICKET)
def change(request: Request, id: str, body: Change) -> dict[str, Any]:
    """Change a subscription: what the body names, and nothing else."""
    row: Any = subscription(request, id)
    of = broker(request)
    of.change(row.number, **body.model_dump(exclude_unset=True))
    return shown(request, of, subscription(request, id))


@router.post("/subscriptions/{id}/renew")
@allowed(OWNER_OR_TICKET)
def renew(request: Request, id: str, body: Renewal) -> dict[str, Any]:
    """Have a subscription last for so many seconds from now."""
    row: Any = subscription(request, id, body.ticket)
    return {"id": id, "expires": broker(request).renew(row.number, body.seconds)}


@router.delete("/subscriptions/{id}", status_code=204)
@allowed(OWNER_OR_TICKET)
def unsubscribe(request: Request, id: str) -> Response:
    """End a subscription."""
    row: Any = subscription(request, id)
    broker(request).unsubscribe(row.number)
    return Response(status_code=204)

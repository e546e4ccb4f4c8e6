"""The door of subscriptions: make, look at, change, renew and end them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field, ValidationError
from sqlalchemy.engine import Row

from triplewire.broker.broker import Broker, Made, Target, Wanted
from triplewire.broker.owners import name_of_user
from triplewire.broker.subscriptions.followed import parts, prefixes_of
from triplewire.broker.subscriptions.registration import AT_ONCE
from triplewire.broker.tickets import feed_key
from triplewire.deliver.webhooks import checked_target
from triplewire.errors import TriplewireError
from triplewire.service.access import (
    OWNER,
    OWNER_OR_TICKET,
    Body,
    Owned,
    acting,
    allowed,
    base_of,
    broker,
    owner,
    path_of,
    settings,
    subscription,
    told_to_owners,
)
from triplewire.service.deliveries import ask
from triplewire.service.problems import Problem, ProblemDetails, details, details_of
from triplewire.store.database import DAY

router = APIRouter(tags=["subscriptions"])

_OF_MADE = ("id", "ticket", "expires", "warnings", "price")


class NewSubscription(Body):
    """A subscription as it is asked for."""

    query: str
    language: str = "sparql"
    id: str = ""
    seconds: float = Field(DAY, description="How long it is valid; renew it before.")
    prefixes: dict[str, str] = Field({})
    title: str = ""
    webhook: str = Field("", description="An address that each event is posted to.")
    notify: str = Field("", description="An address of XML-RPC whose method notify is called with each event.")
    secret: str = Field("", description="What posts and calls are signed with (Standard Webhooks).")
    user: str = Field("", description="The user of the owner of whom it is; docs/cms-protocol.md.")
    once_per_story: bool = Field(False, description="Of reports of one story, only the first is an event.")


class Change(Body):
    """What of a subscription is changed."""

    query: str = ""
    language: str = ""
    prefixes: dict[str, str] = Field({})
    title: str = ""
    state: str = Field("", description="active or paused")
    once_per_story: bool = False


class Renewals(Body):
    """Subscriptions that are renewed together, by their ids."""

    subscriptions: list[str]
    seconds: float = DAY


class Renewal(BaseModel):
    """For how long a subscription is renewed."""

    ticket: str = ""
    seconds: float = DAY


class Subscribed(BaseModel):
    """What is answered to who has subscribed. The ticket is told this once."""

    id: str
    user: str = ""
    ticket: str
    feed: str
    expires: float
    warnings: list[str]
    price: dict[str, Any]


class Subscription(BaseModel):
    """A subscription as its owner sees it."""

    id: str
    user: str = ""
    title: str
    language: str
    query: str
    prefixes: dict[str, str]
    state: str
    reason: str
    revision: int
    created: float
    expires: float
    once_per_story: bool
    price: dict[str, Any]
    feed: str


class Renewed(BaseModel):
    """Until when a subscription is valid."""

    id: str
    expires: float


def feed_address(request: Request, key: str, form: str = "atom") -> str:
    """The address of the feed of a subscription."""
    return f"{base_of(request)}/s/{key}.{form}"


def told(request: Request, made: Made, user: str = "") -> dict[str, Any]:
    """What is answered to who has subscribed."""
    feed = feed_address(request, made.feed_key)
    answer = Subscribed(user=user, feed=feed, **{name: getattr(made, name) for name in _OF_MADE})
    return answer.model_dump(exclude_defaults=True)


def wanted_of(request: Request, new: NewSubscription) -> Wanted:
    """What is asked for. Raises `Problem` for an address of a webhook that may not be asked."""
    targets: list[Target] = []
    for kind, address in (("webhook", new.webhook), ("xmlrpc", new.notify)):
        if address:
            check_address(request, address)
            targets.append(Target(kind, address, new.secret))
    fields = new.model_dump(exclude={"webhook", "notify", "secret", "user"})
    return Wanted(**fields, targets=targets)


def check_address(request: Request, url: str) -> None:
    """Raises `Problem` where an address may not be asked."""
    try:
        with told_to_owners(request):
            checked_target(url, settings(request).allow_private_addresses)
    except TriplewireError as error:
        raise Problem(400, error.what) from None


@router.post(
    "/subscriptions", status_code=201, responses={201: {"model": Subscribed | list[Subscribed | ProblemDetails]}}
)
@allowed(OWNER)
def subscribe(request: Request, body: NewSubscription | list[Any]) -> Response:
    """Make a subscription, or many: then each is answered in its place, and those that are right are made."""
    if isinstance(body, NewSubscription):
        made = broker(request).subscribe(wanted_of(request, body), acting(request, body.user))
        if body.webhook:
            ask(request, made.number)
        return JSONResponse(told(request, made, body.user), 201, {"Location": path_of(made.id)})
    owner(request)
    # portion by portion, so that what is made of an entry goes with its portion
    return JSONResponse([told for part in parts(body, AT_ONCE) for told in _answered(request, part)], 201)


def _answered(request: Request, entries: Sequence[Any]) -> list[Any]:
    """Make those of many subscriptions that are right; the answer to each."""
    answers: list[Any] = [None] * len(entries)
    wanted: dict[str, list[tuple[int, Wanted]]] = {}
    for place, entry in enumerate(entries):
        try:
            new = NewSubscription.model_validate(entry)
            acting(request, new.user)
            wanted.setdefault(new.user, []).append((place, wanted_of(request, new)))
        except ValidationError as error:
            answers[place] = details(422, str(error.errors()[0]["msg"]))
        except (Problem, TriplewireError) as error:
            answers[place] = details_of(error)
    for user, of_user in wanted.items():
        results = broker(request).subscribe_all([each for _, each in of_user], acting(request, user))
        for (place, _), result in zip(of_user, results, strict=True):
            answers[place] = details_of(result) if isinstance(result, TriplewireError) else told(request, result, user)
    return answers


def shown(request: Request, of: Broker, row: Row[Any]) -> dict[str, Any]:
    """A subscription as its owner sees it."""
    values = {**row._mapping, "user": name_of_user(row.owner), "prefixes": prefixes_of(row) or {}}
    values |= {"price": json.loads(row.price), "feed": feed_address(request, feed_key(row.number, of.secret))}
    return Subscription(**values).model_dump(exclude_defaults=True)


@router.get("/subscriptions", responses={200: {"model": list[Subscription]}})
@allowed(OWNER)
def list_subscriptions(request: Request, user: str = "", state: str = "") -> list[dict[str, Any]]:
    """All subscriptions of an owner and of its users, or of one user, or in one state, the newest first."""
    of = broker(request)
    rows = of.subscriptions_of(acting(request, user), with_users=True)
    return [shown(request, of, row) for row in rows if state in ("", row.state)]


@router.get("/subscriptions/{id}", responses={200: {"model": Subscription}})
@allowed(OWNER_OR_TICKET)
def look(request: Request, row: Owned) -> dict[str, Any]:
    """One subscription."""
    return shown(request, broker(request), row)


@router.patch("/subscriptions/{id}", responses={200: {"model": Subscription}})
@allowed(OWNER_OR_TICKET)
def change(request: Request, row: Owned, body: Change) -> dict[str, Any]:
    """Change a subscription: what the body names, and nothing else."""
    of = broker(request)
    of.change(row.number, **body.model_dump(exclude_unset=True))
    return shown(request, of, of.by_number(row.number) or row)


@router.post("/subscriptions/renew")
@allowed(OWNER)
def renew_together(request: Request, body: Renewals) -> list[dict[str, Any]]:
    """Have subscriptions of an owner and of its users last for so many seconds from now; each is answered."""
    ends = broker(request).renew_all(owner(request), body.subscriptions, body.seconds)
    return [
        {"id": id, **(details_of(end) if isinstance(end, TriplewireError) else {"expires": end})}
        for id, end in zip(body.subscriptions, ends, strict=True)
    ]


@router.post("/subscriptions/{id}/renew", responses={200: {"model": Renewed}})
@allowed(OWNER_OR_TICKET)
def renew(request: Request, id: str, body: Renewal) -> dict[str, Any]:
    """Have a subscription last for so many seconds from now."""
    row: Any = subscription(request, id, body.ticket)
    return {"id": id, "expires": broker(request).renew(row.number, body.seconds)}


@router.delete("/subscriptions/{id}", status_code=204)
@allowed(OWNER_OR_TICKET)
def unsubscribe(request: Request, row: Owned) -> Response:
    """End a subscription."""
    broker(request).unsubscribe(row.number)
    return Response(status_code=204)

"""The door of sources: feeds that are polled, publishers that push, folders, topics of Kafka."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field
from sqlalchemy.engine import Row

from triplewire.broker.incoming.folder_sources import below
from triplewire.broker.incoming.registered_sources import (
    FOLDER,
    KAFKA,
    KINDS,
    POLL,
    PUSH,
    WantedSource,
    check_name,
    health,
)
from triplewire.broker.owners import acts_for, name_of_user
from triplewire.net.addresses import address
from triplewire.service.access import OWNER, Body, acting, allowed, bearer, broker, owner, owner_or_none, settings
from triplewire.service.problems import Problem
from triplewire.service.subscriptions import check_address

router = APIRouter(tags=["sources"])


class NewSource(Body):
    """A source as it is asked for."""

    url: str = Field(
        "", description="Of a feed; a folder below the allowed one; kafka://HOST:PORT/TOPIC; of push: an IRI for FROM."
    )
    kind: str = Field(POLL, description="poll, push, folder or kafka; the last two are for the owner of the service.")
    id: str = ""
    title: str = ""
    may_subscribe: bool = Field(False, description="Items with the title GQL are subscriptions of the source's owner.")
    full_sync: bool = Field(False, description="Each document names all of them: who is missing is unsubscribed.")
    anonymous: bool = Field(False, description="Anybody may publish to it.")
    user: str = Field("", description="The user of the owner of whom it is; docs/cms-protocol.md.")


class SourceChange(Body):
    """What of a source is changed."""

    url: str = ""
    title: str = ""
    may_subscribe: bool = False
    full_sync: bool = False
    anonymous: bool = False


def _check(request: Request, kind: str, url: str) -> None:
    """Raises `Problem` or `TriplewireError` where a source may not be asked."""
    if kind in (FOLDER, KAFKA) and owner(request) != settings(request).owner:
        raise Problem(403, f"only the owner of the service may have sources of kind {kind}")
    if kind == POLL:
        check_address(request, url)
    elif kind == FOLDER:
        below(settings(request).source_folder, url)
    elif kind == KAFKA and not address(url, allowed=(KAFKA,)).name:
        raise Problem(400, "the address names no topic", "kafka://HOST:PORT/TOPIC")


def _shown(row: Row[Any]) -> dict[str, Any]:
    """A source as its owner sees it."""
    names = ("id", "kind", "url", "title", "may_subscribe", "full_sync", "anonymous", "created")
    user = {"user": name} if (name := name_of_user(row.owner)) else {}
    return {**{name: getattr(row, name) for name in names}, **user, "health": health(row)}


def _own(request: Request, id: str) -> Row[Any]:
    """The source of an id. Raises `Problem` (404) where there is none, or it is another's."""
    row = broker(request).sources.find(id, owner(request))
    if row is None:
        raise Problem(404, f"there is no source {id!r}")
    return row


def publisher(request: Request, id: str) -> tuple[str, Row[Any] | None]:
    """Who publishes: whose API token it is, or the source that it may publish to, and that source; None where `id` is
    only a name. Raises `Problem`: 401 without a token, 404 where the source is another's."""
    of, by, token = broker(request).sources, owner_or_none(request), bearer(request)
    row = of.find(id) if by is not None else of.open_to_anybody(id)
    bearing = of.by_ticket(token) if by is None and token else None
    if by is None and bearing is None and (row is None or token):
        what = "an API token, or the ticket of the source, is needed"
        raise Problem(401, what, "send the header Authorization: Bearer TOKEN")
    if bearing is not None and id in ("", bearing.id):
        return f"source {bearing.id}", bearing
    if row is not None and (row.anonymous or (by is not None and acts_for(by, row.owner))):
        return by or f"source {row.id}", row
    if by is not None and row is None:
        return by, None
    raise Problem(404, f"there is no source {id!r}")


@router.post("/sources", status_code=201)
@allowed(OWNER)
def add_source(request: Request, body: NewSource) -> Response:
    """Have publications come from there, too. A source that is pushed to has a ticket, which is told this once."""
    by = acting(request, body.user)
    if body.kind in KINDS and body.kind != PUSH:
        _check(request, body.kind, body.url)
    row, ticket = broker(request).sources.add(WantedSource(**body.model_dump(exclude={"user"})), by)
    said = {**_shown(row), **({"ticket": ticket} if ticket else {})}
    return JSONResponse(said, 201, {"Location": f"/sources/{row.id}"})


@router.get("/sources")
@allowed(OWNER)
def list_sources(request: Request) -> list[dict[str, Any]]:
    """All sources of an owner, the newest first, with their health."""
    return [_shown(row) for row in broker(request).sources.of_owner(owner(request))]


@router.get("/sources/{id}")
@allowed(OWNER)
def look_at_source(request: Request, id: str) -> dict[str, Any]:
    """One source, with its health."""
    return _shown(_own(request, id))


@router.patch("/sources/{id}")
@allowed(OWNER)
def change_source(request: Request, id: str, body: SourceChange) -> dict[str, Any]:
    """Change a source: what the body names, and nothing else."""
    row = _own(request, id)
    values = body.model_dump(exclude_unset=True)
    if "url" in values:
        if row.kind == PUSH:
            check_name(values["url"])
        _check(request, row.kind, values["url"])
    if values:
        broker(request).sources.change(row.number, **values)
    return _shown(_own(request, id))


@router.post("/sources/{id}/reset")
@allowed(OWNER)
def reset_source(request: Request, id: str) -> dict[str, Any]:
    """Forget how a source failed, and ask it at once."""
    broker(request).sources.reset(_own(request, id).number)
    return _shown(_own(request, id))


@router.delete("/sources/{id}", status_code=204)
@allowed(OWNER)
def remove_source(request: Request, id: str) -> Response:
    """Take a source away; what came from it stays."""
    broker(request).sources.remove(_own(request, id).number)
    return Response(status_code=204)

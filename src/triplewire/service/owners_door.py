"""The door through which all of an owner is removed."""

from __future__ import annotations

from fastapi import APIRouter, Request

from triplewire.broker import owners, users
from triplewire.service.access import OWNER, allowed, broker, owner, settings
from triplewire.service.problems import Problem

router = APIRouter(tags=["owners"])


@router.delete("/owners/{name:path}")
@allowed(OWNER)
def forget(request: Request, name: str) -> dict[str, int]:
    """Remove all that is of an owner and of its users, for good: subscriptions, events, deliveries, sources, tokens.
    An owner may do so with itself and its users, the owner of the service with everybody else."""
    by, of_service = owner(request), settings(request).owner
    if not (users.acts_for(by, name) or by == of_service):
        raise Problem(404, f"there is no owner {name!r} for whom you act")
    if name == of_service:
        raise Problem(403, "the owner of the service stays")
    of = broker(request)
    counts = owners.forget(of.database, name)
    of.followed.follow()
    return counts

"""The doors that say how the service is: for those who start it, balance its load and watch it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from fastapi import APIRouter, Request

from triplewire.service.access import ANYBODY, allowed, broker

router = APIRouter(tags=["health"])


@router.get("/liveness")
@allowed(ANYBODY)
def liveness() -> dict[str, Any]:
    """Is the process there?"""
    return {"alive": True}


@router.get("/readiness")
@allowed(ANYBODY)
def readiness(request: Request) -> dict[str, Any]:
    """Can it take publications? The database answers, and subscriptions are loaded."""
    with broker(request).database.reading() as connection:
        connection.execute(sa.select(1))
    return {"ready": True}

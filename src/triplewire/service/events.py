"""The door of events of all subscriptions of an owner."""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse

from triplewire.broker.events import MOST
from triplewire.service.access import OWNER, allowed, broker, owner

router = APIRouter(tags=["events"])


@router.get("/events")
@allowed(OWNER)
def events(request: Request, after: int = 0, format: str = "ndjson") -> StreamingResponse:
    """The events of all subscriptions of an owner behind a number, one JSON object a line."""
    by, of = owner(request), broker(request)
    # the owner of the service sees the events of all
    whose = None if by == request.app.state.settings.owner else by

    def lines() -> Iterator[str]:
        last = after
        while page := of.events(whose, last):
            last = page[-1].number
            yield "".join(event.line() + "\n" for event in page)
            if len(page) < MOST:
                return

    return StreamingResponse(lines(), media_type="application/x-ndjson")

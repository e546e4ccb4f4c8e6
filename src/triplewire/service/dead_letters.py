"""The doors of dead letters: deliveries that were given up, and publications that could not be matched.

The number of a dead letter is even for deliveries and odd for publications: twice their own number, or one more.
Publications belong to nobody, so the owner of the service sees them.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from triplewire.service.access import OWNER, allowed, broker, delivering, owner, settings
from triplewire.service.deliveries import delivery_shown
from triplewire.service.problems import Problem

router = APIRouter(tags=["dead letters"])


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

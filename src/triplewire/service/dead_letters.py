"""The doors of dead letters: deliveries that were given up, and publications that could not be matched.

A dead letter has an id: `d` and the number of a delivery, or `p` and that of a publication. Publications belong to
nobody, so the owner of the service sees them.
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
        {"id": f"d{row.number}", "kind": "delivery", "subscription": row.id, **delivery_shown(row)}
        for row in owed.dead(whose)
    ]
    if whose is None:
        letters += (
            {
                "id": f"p{row.number}",
                "kind": "publication",
                "publication": row.id,
                "title": row.title,
                "received": row.received,
                "answer": row.reason,
            }
            for row in owed.refused()
        )
    return letters


@router.post("/deadletters/{letter}/resend", status_code=202)
@allowed(OWNER)
def resend(request: Request, letter: str) -> dict[str, Any]:
    """Try a dead letter again, from the beginning."""
    kind, number = _letter(request, letter)
    of = broker(request)
    if kind == "d":
        of.owed.resend(number)
        delivering(request).wake()
    elif of.owed.accept_again(number):
        of.matching.wake.set()
    return {"id": letter, "state": "pending"}


@router.delete("/deadletters/{letter}", status_code=204)
@allowed(OWNER)
def drop(request: Request, letter: str) -> Response:
    """Give a dead letter up for good."""
    kind, number = _letter(request, letter)
    owed = broker(request).owed
    if kind == "d":
        owed.drop(number)
    else:
        owed.drop_publication(number)
    return Response(status_code=204)


def _letter(request: Request, letter: str) -> tuple[str, int]:
    """The kind and the number of a dead letter. Raises `Problem` where there is none, or it is another's."""
    whose, owed = _whose(request), broker(request).owed
    kind, digits = letter[:1], letter[1:]
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 19 else 0
    is_there = (kind == "d" and owed.dead_one(number, whose) is not None) or (
        kind == "p" and whose is None and any(row.number == number for row in owed.refused())
    )
    if not is_there:
        raise Problem(404, f"there is no dead letter {letter!r}")
    return kind, number

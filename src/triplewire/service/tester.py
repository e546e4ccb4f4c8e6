"""The live tester: which of the last publications would a query have matched? Asked while it is being typed."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from fastapi import APIRouter, Request
from pydantic import Field

from triplewire.broker.broker import Broker
from triplewire.broker.publications.window import TOGETHER, Kept, results_within
from triplewire.engine.explain.why import reasons_of
from triplewire.errors import LimitError
from triplewire.ir.show import show
from triplewire.model.match import bindings_to_json
from triplewire.service.access import OWNER, Body, allowed, broker, owner_or_none
from triplewire.service.pages.sessions import CODE_HEADER, check_code, person
from triplewire.service.rates import DRY_RUN
from triplewire.store.database import DAY

router = APIRouter(tags=["publications"], dependencies=[DRY_RUN])

_SECONDS = 3.0  # after which no more are asked: `Tried.of` says how many were
_TOLD = 50  # publications that an answer describes

_at_a_time = threading.Semaphore(2)  # so that typing leaves a processor to matching


@dataclass(frozen=True)
class Tried:
    """What a query matches of the last publications: their numbers, of how many, and how many that is a day. `asks`:
    the query as a graph; `undecided`: pairs that passed a limit."""

    matched: list[int] = field(default_factory=list)
    of: int = 0
    a_day: float = 0.0
    asks: str = ""
    warnings: tuple[str, ...] = ()
    undecided: int = 0

    @property
    def share(self) -> float:
        """The share that it matches."""
        return len(self.matched) / self.of if self.of else 0.0


def tried(of: Broker, window: list[Kept], query: str, language: str, prefixes: dict[str, str] | None = None) -> Tried:
    """Match a query with publications. Raises what is wrong with it: `LanguageError`, with line and column."""
    matched: list[int] = []
    asked = undecided = 0
    engine = of.probe(query, language, prefixes)
    subscription = engine.get("query")
    assert subscription is not None
    numbers = {each.publication.id: each.number for each in window}
    with _at_a_time, suppress(LimitError):
        for result in results_within(engine, [each.publication for each in window], _SECONDS):
            asked = min(asked + TOGETHER, len(window))
            matched += sorted((numbers[match.publication] for match in result), reverse=True)
            undecided += len(result.refusals)
    received = [each.received for each in window[:asked]]
    days = max((received[0] - received[-1]) / DAY, 1 / 24) if received else 1.0
    return Tried(matched, asked, len(matched) / days, show(subscription.where), subscription.warnings, undecided)


class Attempt(Body):
    """A query that is kept nowhere."""

    query: str
    language: str = "sparql"
    prefixes: dict[str, str] = Field({})


def newest_matches(of: Broker, window: list[Kept], body: Attempt, matched: list[int]) -> list[dict[str, Any]]:
    """What is shown of publications of these numbers: what the query binds in them, and why they match."""
    by_number = {each.number: each for each in window}
    told: list[dict[str, Any]] = []
    engine = of.probe(body.query, body.language, body.prefixes or None)
    for number in matched:
        each = by_number[number]
        for match in engine.match([each.publication]):
            shown = {"title": each.title, "link": each.link, "source": each.source}
            why = reasons_of(engine, match, each.publication)
            told.append({"publication": each.publication.id, **shown,
                         "bindings": bindings_to_json(match.bindings), "why": why})  # fmt: skip
    return told


@router.post("/try")
@allowed(OWNER)
def try_query(request: Request, body: Attempt) -> dict[str, Any]:
    """Which of the last publications does a query match? Nothing is seen."""
    by = owner_or_none(request)
    if by is None:  # the page asks with its cookie
        who = person(request)
        check_code(who, request.headers.get(CODE_HEADER, ""))
        by = who.owner
    of = broker(request)
    window = of.window.of(by)
    outcome = tried(of, window, body.query, body.language, body.prefixes or None)
    by_number = {each.number: each for each in window}
    told = [by_number[number] for number in outcome.matched[:_TOLD]]
    places = {each.number: place for place, each in enumerate(window)}
    return {
        **asdict(outcome),
        "places": [places[number] for number in outcome.matched],
        "count": len(outcome.matched),
        "share": outcome.share,
        "publications": [{"number": each.number, "title": each.title, "at": each.received} for each in told],
    }

"""The doors of lists in OPML: all subscriptions of an owner, to be kept or moved, and lists that are taken."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from triplewire.broker.broker import LONGEST, SHORTEST, Made
from triplewire.broker.feeds.formats import FORMATS
from triplewire.broker.feeds.outlines import Outline, of_owner, read_outlines
from triplewire.broker.incoming.registered_sources import POLL
from triplewire.broker.subscriptions.followed import ENDED, PAUSED
from triplewire.broker.tickets import feed_key
from triplewire.errors import ReadError
from triplewire.service.access import OWNER, allowed, base_of, broker, owner
from triplewire.service.problems import Problem, details_of
from triplewire.service.subscriptions import check_address, told
from triplewire.store.database import DAY

router = APIRouter(tags=["lists"])

_SECONDS, _AT_ONCE = 20.0, 16  # in which names of hosts are looked up, and how many at once


@router.get("/subscriptions.opml")
@allowed(OWNER)
def export(request: Request) -> Response:
    """All subscriptions and sources of an owner as OPML 2.0. `POST /opml` takes it again."""
    by, of, base = owner(request), broker(request), base_of(request)
    rows = [row for row in reversed(of.subscriptions_of(by)) if row.state != ENDED]
    feeds = [row for row in reversed(of.sources.of_owner(by)) if (row.owner, row.kind) == (by, POLL)]

    def address(key: str) -> Any:
        return lambda form: f"{base}/s/{key}.{form}"

    text = of_owner([(row, address(feed_key(row.number, of.secret))) for row in rows], feeds)
    return Response(text, media_type=FORMATS["opml"].media_type, headers={"Cache-Control": "private, no-store"})


@router.post("/opml", status_code=201)
@allowed(OWNER)
async def take(request: Request, seconds: Annotated[float, Query(ge=SHORTEST, le=LONGEST)] = DAY) -> Response:
    """Take a list in OPML: outlines with a query become subscriptions, valid for `seconds`, all others with an address
    become sources. Answers line by line; what is wrong stops nothing else, and what is there already stays as it is."""
    owner(request)
    return await run_in_threadpool(take_list, request, await request.body(), seconds)


def take_list(request: Request, body: bytes, seconds: float = DAY) -> Response:
    """Take a list; the answer has a report of each of its lines."""
    by, of = owner(request), broker(request)
    outlines = list(read_outlines(body, of.settings, seconds))
    feeds = {each.url: each.title for each in reversed(outlines) if isinstance(each, Outline) and each.wanted is None}
    sources = _sources(request, feeds, by)
    there = {row.id: row for row in of.subscriptions_of(by) if row.state != ENDED}
    wanted: list[Outline] = []
    answers: list[dict[str, Any]] = []
    for outline in outlines:
        if isinstance(outline, ReadError):
            answers.append({"line": outline.line, **_refused(details_of(outline))})
        elif outline.wanted is None:
            answers.append({"line": outline.line, **sources[outline.url]})
            if "id" in sources[outline.url]:
                sources[outline.url] = {**sources[outline.url], "what": "there already"}
        elif _is_there(there.get(outline.wanted.id), outline):
            answers.append({"line": outline.line, "what": "there already", "id": outline.wanted.id})
        else:
            wanted.append(outline)
    made = of.subscribe_all([outline.wanted for outline in wanted if outline.wanted is not None], by)
    for outline, result in zip(wanted, made, strict=True):
        if isinstance(result, Made):
            if outline.is_paused:
                of.change(result.number, state=PAUSED)
            answers.append({"line": outline.line, "what": "subscribed", **told(request, result)})
        else:
            answers.append({"line": outline.line, **_refused(details_of(result))})
    return JSONResponse(sorted(answers, key=lambda answer: int(answer["line"])), 201)


def _refused(problem: dict[str, Any]) -> dict[str, Any]:
    return {"what": "refused", "problem": problem}


def _is_there(row: Any, outline: Outline) -> bool:
    wanted = outline.wanted
    return row is not None and wanted is not None and (row.query, row.language) == (wanted.query, wanted.language)


def _sources(request: Request, titles: Mapping[str, str], by: str) -> dict[str, dict[str, Any]]:
    """Take feeds as sources, of which these are the titles by their addresses; what became of each. Their names are
    looked up side by side, for so long as a client waits."""
    of, end = broker(request), time.monotonic() + _SECONDS

    def refusal(url: str) -> Problem | None:
        if time.monotonic() > end:
            return Problem(503, "no time was left to look its name up", "send the list again")
        try:
            check_address(request, url)
        except Problem as problem:
            return problem
        return None

    there = {row.url: row.id for row in of.sources.of_owner(by) if row.kind == POLL}
    new = [url for url in titles if url not in there]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        refused = {url: problem for url, problem in zip(new, threads.map(refusal, new), strict=True) if problem}
    ids = of.sources.add_feeds({url: titles[url] for url in new if url not in refused}, by)
    return (
        {url: _refused(details_of(problem)) for url, problem in refused.items()}
        | {url: {"what": "there already", "id": id} for url, id in there.items()}
        | {url: {"what": "source", "id": id} for url, id in ids.items()}
    )

"""The doors of a metadata provider: documents, rules, and what repositories are told.

Writing needs the token; reading global metadata does not (MDV paper, section 2.2).
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.responses import Response, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from triplewire.config import ServiceSettings
from triplewire.metadata.backbone import Writing
from triplewire.metadata.batches import rule_of
from triplewire.metadata.provider import Provider
from triplewire.metadata.remote import GONE, as_object, change_of
from triplewire.service.access import ANYBODY, OWNER, allowed, owner
from triplewire.service.app import application
from triplewire.service.problems import Problem, details
from triplewire.service.streams import PING, RETRY, Streams

router = APIRouter(tags=["metadata"])

Number = Annotated[int, Query(ge=0, lt=2**62)]
Seconds = Annotated[float, Query(ge=0, le=60)]
_NDJSON = "application/x-ndjson"


def metadata_service(writing: Writing, settings: ServiceSettings) -> FastAPI:
    """The application of a provider that is open. Raises `TriplewireError` for a door without a policy."""
    app = application(settings, [router])
    app.state.writing = writing
    writing.provider.listeners.append(app.state.streams.wake)
    return app


def _writing(request: Request) -> Writing:
    writing: Writing = request.app.state.writing
    return writing


def _provider(request: Request) -> Provider:
    return _writing(request).provider


def _lines(lines: list[str]) -> Response:
    return Response("".join(f"{line}\n" for line in lines), media_type=_NDJSON)


@router.get("/health")
@allowed(ANYBODY)
def health(request: Request) -> dict[str, Any]:
    """Does the provider answer, which one is it, and which version have its documents?"""
    provider = _provider(request)
    return {"healthy": True, "provider": provider.identity, "version": provider.version}


# --- documents -------------------------------------------------------------------------------------------------------


class Changes(BaseModel):
    """Documents that are registered, changed and deleted together: each with `content` or `base64`, or neither, which
    deletes it. `seq`: of the last event of a list `source` that is applied in order."""

    model_config = ConfigDict(extra="forbid")

    changes: list[dict[str, str]]
    source: str = ""
    seq: int = Field(0, ge=0, lt=2**62)


@router.post("/changes")
@allowed(OWNER)
def change(request: Request, body: Changes) -> dict[str, Any]:
    """Register, change and delete documents, in one transaction."""
    owner(request)
    try:
        changes = [change_of(each) for each in body.changes]
    except (KeyError, ValueError) as error:
        raise Problem(422, f"a change is wrong: {error}", 'send {"document": IRI, "content": text}') from None
    applied = _writing(request).change(changes, body.source, body.seq)
    return {"version": applied.version, "refused": list(map(asdict, applied.refused))}


@router.get("/changes")
@allowed(ANYBODY)
def applied(request: Request, source: str) -> dict[str, Any]:
    """Up to which event a list was applied, and what names of documents are resolved against."""
    seq, base = _writing(request).applied(source)
    return {"seq": seq, "base": base}


@router.get("/log")
@allowed(ANYBODY)
async def log(request: Request, after: Number = 0, wait: Seconds = 0) -> Response:
    """The documents that changed behind a version, a JSON object each, in the order of versions. With `wait`, the
    answer waits so many seconds for the first."""
    provider = _provider(request)
    if after > (known := await run_in_threadpool(lambda: provider.version)):
        raise Problem(409, f"the log ends at version {known}", "begin with an empty store")
    entries = await request.app.state.streams.awaited("", partial(provider.entries, after), wait)
    return _lines([json.dumps({"version": entry.version, **as_object(entry.change)}) for entry in entries])


@router.get("/results")
@allowed(ANYBODY)
def results(request: Request, repository: str | None = None) -> Response:
    """Each rule, of one repository or of all, with the resources that it registers, a JSON object a line."""
    rows = _provider(request).results(repository)  # not sent as it is read: a slow client would hold up SQLite
    return _lines(
        [json.dumps({"repository": of, "rule": rule, "resources": resources}) for of, rule, resources in rows]
    )


@router.get("/resources")
@allowed(ANYBODY)
def resources(
    request: Request, class_: Annotated[str, Query(alias="class")] = "", resource: str = "", after: str = ""
) -> dict[str, Any]:
    """What there is: the statements of a resource; the instances of a class, 100 behind `after`; or all classes, with
    the number of their instances."""
    registry = _provider(request).registry
    if resource:
        return {iri: told.statements for iri, told in registry.resources([resource]).items()}
    if class_:
        return {"instances": registry.instances(class_, after=after)}
    return {"classes": dict(registry.classes())}


# --- repositories ----------------------------------------------------------------------------------------------------


class Row(BaseModel):
    """A rule as it is registered."""

    model_config = ConfigDict(extra="forbid")

    id: str
    query: str
    prefixes: dict[str, str] = {}
    base: str = ""
    rules: dict[str, Row] | None = None


class Acknowledged(BaseModel):
    """Up to which batch of a stream a repository has all."""

    stream: str
    number: int


@router.get("/repositories/{name}/rules")
@allowed(ANYBODY)
def rules(request: Request, name: str) -> list[dict[str, Any]]:
    """The rules of a repository."""
    return [asdict(rule) for _, rule in _provider(request).registry.rules(name)]


@router.post("/repositories/{name}/rules")
@allowed(OWNER)
def subscribe(request: Request, name: str, body: list[Row]) -> list[dict[str, Any]]:
    """Have a repository subscribe to rules. Each is answered in its place: with its id, or why it is refused."""
    owner(request)
    applied = _provider(request).subscribe(name, [rule_of(row.model_dump()) for row in body])
    refused = {each.subject: each for each in applied.refused if not each.is_warning}
    ids = set(applied.ids)
    return [
        {"id": row.id}
        if row.id in ids
        else details(400, refused[row.id].reason, refused[row.id].remedy, where=refused[row.id].where)
        for row in body
    ]


@router.post("/repositories/{name}/unsubscribe")
@allowed(OWNER)
def unsubscribe(request: Request, name: str, body: list[str]) -> dict[str, Any]:
    """Have a repository give rules up."""
    owner(request)
    _provider(request).unsubscribe(name, body)
    return {"ended": body}


@router.post("/repositories/{name}/forget")
@allowed(OWNER)
def forget(request: Request, name: str) -> dict[str, Any]:
    """A repository follows no longer; its rules go."""
    owner(request)
    _provider(request).forget(name)
    return {"forgotten": name}


@router.post("/repositories/{name}/snapshot")
@allowed(OWNER)
def snapshot(request: Request, name: str, version: Number = 0) -> StreamingResponse:
    """All that the rules of a repository ask for, and the name of the stream that goes on from there: it begins anew.
    503 where the documents have not come to that version yet."""
    owner(request)
    lines = (f"{line}\n" for line in _provider(request).snapshot(name, version).lines())
    return StreamingResponse(lines, media_type=_NDJSON)


@router.get("/repositories/{name}/batches")
@allowed(ANYBODY)
async def batches(
    request: Request, name: str, stream: str, after: Number = 0, wait: Seconds = 0, format: str = "ndjson"
) -> Response:
    """The batches of a stream behind a number, in their order: `format=ndjson`, those that are there, or the first that
    come within `wait` seconds; or `sse`, a stream that goes on, and resumes by Last-Event-ID. 410 where the stream does
    not go on there: a snapshot comes first."""
    provider, streams = _provider(request), request.app.state.streams
    if format == "sse":
        last = request.headers.get("last-event-id", "")
        begin = int(last) if last.isascii() and last.isdecimal() and len(last) < 19 else after
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        events = _events(streams, provider, name, stream, begin)
        return StreamingResponse(events, media_type="text/event-stream", headers=headers)
    if format != "ndjson":
        raise Problem(400, f"there is no format {format[:20]!r}", "known: sse, ndjson")
    lines = await streams.awaited(name, partial(provider.batches, name, stream, after), wait)
    if lines is None:
        raise Problem(GONE, "the stream does not go on there", "take a snapshot")
    return _lines(lines)


@router.post("/repositories/{name}/acknowledged")
@allowed(OWNER)
def acknowledge(request: Request, name: str, body: Acknowledged) -> dict[str, Any]:
    """A repository has all batches up to a number; they are forgotten."""
    owner(request)
    _provider(request).acknowledge(name, body.stream, body.number)
    return {"acknowledged": body.number}


async def _events(streams: Streams, provider: Provider, name: str, stream: str, after: int) -> AsyncIterator[str]:
    yield f"retry: {RETRY}\n\n"
    while not streams.is_ending:
        lines = await streams.awaited(name, partial(provider.batches, name, stream, after), PING)
        if lines is None:
            yield "event: gone\ndata: take a snapshot\n\n"
            return
        for line in lines:
            after += 1  # batches of a stream have no gaps
            yield f"id: {after}\ndata: {line}\n\n"
        if not lines:
            yield ": ping\n\n"

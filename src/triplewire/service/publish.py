"""The doors that take publications: `/publish` for good, `/match` and `/explain` as dry runs."""

from __future__ import annotations

import email
import email.policy
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool

from triplewire.broker.broker import Taken
from triplewire.broker.publications import Came, read_body
from triplewire.errors import ReadError
from triplewire.model.match import bindings_to_json
from triplewire.service.access import (
    OWNER,
    PUBLISHER,
    allowed,
    broker,
    owner,
    owner_or_none,
    settings,
    subscription,
)
from triplewire.service.problems import Problem, details

router = APIRouter(tags=["publications"])


@router.post("/publish", status_code=202)
@allowed(PUBLISHER)
async def publish(request: Request, wait: int = 0, readers: str | None = None, source: str = "") -> Response:
    """Publish a document in any syntax: RDF, a feed, or `multipart/related` with attachments. With `wait=1` the answer
    says how many subscriptions each publication matches. `readers` are the owners who may see it; `source` names where
    it comes from."""
    body = await request.body()
    return await run_in_threadpool(_publish, request, body, bool(wait), readers, source)


def _publish(request: Request, body: bytes, wait: bool, readers: str | None, source: str) -> Response:
    if owner_or_none(request) is None:
        raise Problem(401, "an API token is needed", "send the header Authorization: Bearer TOKEN")
    of = broker(request)
    came = came_in(body, request.headers.get("content-type", ""), of.settings)
    may_see = None if readers is None else [name for name in readers.split(",") if name]
    taken = of.publish(came.publications, source=source, readers=may_see)
    refused = [details(400, refusal.reason, refusal.remedy, where=refusal.where) for refusal in came.refusals]
    counts = of.wait([one.number for one in taken if one.is_new], settings(request).wait_seconds) if wait else {}
    if refused and not taken:
        return JSONResponse(refused[0], 400, media_type="application/problem+json")
    answers = [_told(one, counts, wait) for one in taken]
    answer: Any = answers[0] if len(answers) == 1 else answers
    if refused and len(answers) != 1:
        answer = [*answers, *refused]
    return JSONResponse(answer, 202)


def _told(one: Taken, counts: dict[int, int], wait: bool) -> dict[str, Any]:
    """What is said of a publication: by how many subscriptions it was matched now."""
    said: dict[str, Any] = {"publication": one.id, "new": one.is_new}
    if wait and (not one.is_new or one.number in counts):
        said["matched"] = counts.get(one.number, 0)
    return said


def came_in(body: bytes, content_type: str, settings: Any) -> Came:
    """The publications of a body. Of `multipart/related` (RFC 2387) the first part is the document, and the others are
    attachments by their Content-ID or Content-Location. Raises `ReadError`."""
    if not content_type.lower().startswith("multipart/"):
        return read_body(body, "", settings)
    head = b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n"
    message = email.message_from_bytes(head + body, policy=email.policy.HTTP)
    parts = list(message.iter_parts())
    if not parts:
        raise ReadError("the body has no parts", remedy="multipart/related: the document first, then attachments")
    came = read_body(_content(parts[0]), "", settings)
    for number, part in enumerate(parts[1:], 1):
        name = part.get("Content-ID", part.get("Content-Location", part.get_filename() or f"attachment-{number}"))
        for publication in came.publications:
            publication.attachments[name.strip("<> ")] = _content(part)  # type: ignore[index]  # of its own
    return came


def _content(part: Any) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


class DryRun(BaseModel):
    """A query and a publication that are kept nowhere."""

    model_config = ConfigDict(extra="forbid")

    query: str
    language: str = "sparql"
    prefixes: dict[str, str] = {}
    publication: str
    content_type: str = ""


@router.post("/match")
@allowed(OWNER)
def match(request: Request, body: DryRun) -> dict[str, Any]:
    """Does a query match a publication? Nothing is kept."""
    owner(request)
    of = broker(request)
    came = came_in(body.publication.encode("utf-8", "surrogatepass"), body.content_type, of.settings)
    if not came.publications:
        raise ReadError(came.refusals[0].reason, remedy=came.refusals[0].remedy)
    with of.probe(body.query, body.language, body.prefixes or None) as engine:
        result = engine.match(came.publications)
        matches = list(result)
    bindings = [binding for one in matches for binding in bindings_to_json(one.bindings)]
    return {"matched": bool(matches), "bindings": bindings, "refused": [str(refusal) for refusal in result.refusals]}


class WhyNot(BaseModel):
    """A subscription and a publication that is kept nowhere."""

    model_config = ConfigDict(extra="forbid")

    subscription: str
    publication: str
    content_type: str = ""


@router.post("/explain")
@allowed(OWNER)
def explain(request: Request, body: WhyNot) -> dict[str, Any]:
    """Why a subscription matches a publication, or not: its parts, and for a miss the nearest query that matches.
    Nothing is kept."""
    row: Any = subscription(request, body.subscription)
    of = broker(request)
    came = came_in(body.publication.encode("utf-8", "surrogatepass"), body.content_type, of.settings)
    if not came.publications:
        raise ReadError(came.refusals[0].reason, remedy=came.refusals[0].remedy)
    explanation = of.explain(row, came.publications[0]).to_dict()
    said = {"matched": explanation["matched"], "reasons": explanation["parts"], "unknown": explanation["unknown"]}
    return said | {name: explanation[name] for name in ("nearest", "solution", "calls") if explanation.get(name)}

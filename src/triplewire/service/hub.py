"""The doors of WebSub: the hub of our own feeds (5.1), and the callback of our subscriptions at foreign hubs (5.3, 7).

What subscribers ask the hub for is done later, once their callback has confirmed it: `triplewire.broker.feeds.websub`.
A hub of foreign feeds it is not: that would have third parties asked for anybody. Refusals are plain text (5.1.2). What
the callback is for: `triplewire.broker.incoming.websub_subscriber`.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from starlette.concurrency import run_in_threadpool

from triplewire.broker.feeds.formats import FORMATS
from triplewire.broker.feeds.websub import (
    LEASE,
    LONGEST_LEASE,
    SHORTEST_LEASE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    Intent,
    ask,
)
from triplewire.broker.incoming import websub_subscriber
from triplewire.broker.tickets import sealed
from triplewire.service.access import ANYBODY, KEY, allowed, base_of, broker
from triplewire.service.problems import Problem
from triplewire.service.subscriptions import check_address

_MOST_BODY, _MOST_FIELDS, _MOST_ADDRESS = 1 << 14, 64, 2_048
_MOST_SECRET = 200  # bytes, less than

router = APIRouter(tags=["hub"])


_NAMES = ("hub.mode", "hub.topic", "hub.callback", "hub.lease_seconds", "hub.secret")
_SCHEMA = {"type": "object", "required": ["hub.mode"], "properties": {name: {"type": "string"} for name in _NAMES}}
_BODY = {"required": True, "content": {"application/x-www-form-urlencoded": {"schema": _SCHEMA}}}


@router.post("/hub", status_code=202, response_class=PlainTextResponse, openapi_extra={"requestBody": _BODY})
@allowed(ANYBODY)
async def hub(request: Request) -> Response:
    """Subscribe a callback to a feed, or unsubscribe it: `hub.mode`, `hub.topic`, `hub.callback`, `hub.lease_seconds`
    and `hub.secret` as a form. `hub.mode=publish` with a feed of ours is accepted: it is told of anyway."""
    body = await request.body()
    try:
        return await run_in_threadpool(_answer, request, body)
    except Problem as problem:
        return refused(problem)


def refused(problem: Problem) -> Response:
    """A refusal of the hub."""
    return PlainTextResponse(f"{problem}\n", problem.status_code, problem.headers)


def _answer(request: Request, body: bytes) -> Response:
    fields = _fields(request, body)
    mode = _one(fields, "hub.mode")
    if mode == "publish":
        _topic(request, fields.get("hub.topic") or _one(fields, "hub.url"))
        return PlainTextResponse("", 202)
    if mode not in (SUBSCRIBE, UNSUBSCRIBE):
        raise Problem(400, f"hub.mode {mode[:40]!r} is not known", f"{SUBSCRIBE} or {UNSUBSCRIBE}")
    topic, callback = _one(fields, "hub.topic"), _one(fields, "hub.callback")
    number, form = _topic(request, topic)
    check_address(request, callback)
    secret = fields.get("hub.secret", "")
    if len(secret.encode("utf-8", "surrogatepass")) >= _MOST_SECRET:
        raise Problem(400, f"hub.secret has {_MOST_SECRET} bytes or more")
    of = broker(request)
    intent = Intent(mode, number, form, topic, callback, _lease(fields), sealed(secret, of.secret))
    if not ask(of.database, intent):
        raise Problem(429, "too many callbacks of this host wait", headers={"Retry-After": "600"})
    return PlainTextResponse("", 202)


def _fields(request: Request, body: bytes) -> dict[str, str]:
    """The fields of the form; of one that comes twice, the first. Raises `Problem`."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Problem(415, "the body is no form", "Content-Type: application/x-www-form-urlencoded")
    if len(body) > _MOST_BODY:
        raise Problem(413, f"the form has more than {_MOST_BODY:,} bytes")
    try:
        read = parse_qs(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:  # no UTF-8, or too many fields
        raise Problem(400, f"the form cannot be read: {error}") from None
    return {name: values[0] for name, values in read.items()}


def _one(fields: dict[str, str], name: str) -> str:
    """A field that has to be there. Raises `Problem`."""
    value = fields.get(name, "")
    if not value or len(value) > _MOST_ADDRESS:
        raise Problem(400, f"{name} is missing, or longer than {_MOST_ADDRESS:,} characters")
    return value


def _topic(request: Request, topic: str) -> tuple[int, str]:
    """The subscription whose feed a topic is, and its form. Raises `Problem` (404)."""
    start = f"{base_of(request)}/s/"
    key, _, form = topic.removeprefix(start).rpartition(".")
    row = broker(request).by_feed_key(key) if topic.startswith(start) and form in FORMATS else None
    if row is None:
        raise Problem(404, "hub.topic is no feed of this service", "the address of a feed as its rel=self has it")
    return int(row.number), form


def _lease(fields: dict[str, str]) -> float:
    """The seconds of a lease: as asked for, within bounds. Raises `Problem` for what is no positive decimal integer."""
    text = fields.get("hub.lease_seconds", "")
    if not text:
        return LEASE
    if not (text.isascii() and text.isdecimal()) or not text.strip("0"):
        raise Problem(400, "hub.lease_seconds is no positive decimal integer")
    return min(max(float(text[:12]) if len(text) <= 12 else LONGEST_LEASE, SHORTEST_LEASE), LONGEST_LEASE)


# --- the callback -----------------------------------------------------------------------------------------------------


@router.get("/websub/{number}/{key}", response_class=PlainTextResponse)
@allowed(KEY)
def verify(request: Request, number: int, key: str) -> Response:
    """A hub asks whether we mean it: its challenge, where we do. Nothing else that it sends is ever sent back."""
    of, asked = broker(request), request.query_params
    names = ("hub.mode", "hub.topic", "hub.challenge", "hub.lease_seconds")
    mode, topic, challenge, seconds = (asked.get(name, "") for name in names)
    try:
        lease = websub_subscriber.lease_of(of, number, key)
    except ValueError:
        lease = None
    if lease is None or not websub_subscriber.verify(of, lease, mode, topic, challenge, seconds):
        return PlainTextResponse("nothing of this kind was asked for\n", 404)
    return PlainTextResponse("" if mode == "denied" else challenge)


@router.post("/websub/{number}/{key}", status_code=202, response_class=PlainTextResponse)
@allowed(KEY)
async def receive(request: Request, number: int, key: str) -> Response:
    """A hub sends a feed. The answer does not say whether the signature was right."""
    body = await request.body()
    return await run_in_threadpool(_receive, request, number, key, body)


def _receive(request: Request, number: int, key: str, body: bytes) -> Response:
    of, headers = broker(request), request.headers
    try:
        lease = websub_subscriber.lease_of(of, number, key)
    except ValueError:
        return PlainTextResponse("there is no such callback\n", 404)
    if lease is None:
        return PlainTextResponse("the subscription has ended\n", 410)
    signature = headers.get("x-hub-signature", "")
    websub_subscriber.receive(of, lease, body, headers.get("content-type", ""), signature)
    return PlainTextResponse("", 202)
